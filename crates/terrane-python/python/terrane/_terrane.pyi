from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

__version__: str

Options = Mapping[str, Any]
Written = tuple[int, int, float, float]
Transform = tuple[float, float, float, float, float, float]
Path = Any

class TerraneError(Exception): ...

class File:
    def __new__(cls, path: Path, model: Path | None = None, jobs: int | None = None) -> File: ...
    def describe(self) -> str: ...
    def transform(self, level: int) -> Transform: ...
    def dtype(self) -> str: ...
    def window(
        self, level: int, corner: tuple[int, int], size: tuple[int, int]
    ) -> NDArray[Any]: ...
    def read(
        self,
        bbox: tuple[float, float, float, float] | None,
        resolution: float | None,
        level: int,
    ) -> tuple[NDArray[Any], Transform]: ...
    def sample(
        self, name: str, x: NDArray[np.float64], y: NDArray[np.float64]
    ) -> NDArray[np.float64]: ...
    def record(self, level: int, column: int, row: int) -> bytes | None: ...

class TileCoder:
    def __new__(cls, options: Options, is_f32: bool) -> TileCoder: ...
    @property
    def model(self) -> str | None: ...
    def encode(self, heights: NDArray[np.float64]) -> bytes: ...
    def decode(self, bytes: bytes, shape: tuple[int, int]) -> NDArray[np.float64]: ...

def describe(path: Path) -> str: ...
def encode(
    sources: Sequence[Path], output: Mapping[str, Any], options: Options
) -> Written: ...
def encode_array(
    heights: NDArray[np.float64],
    place: Mapping[str, Any],
    output: Mapping[str, Any],
    options: Options,
) -> Written: ...
def decode(
    path: Path,
    out: Path,
    *,
    bbox: tuple[float, float, float, float] | None,
    resolution: float | None,
    level: int,
    model: Path | None,
    overwrite: bool,
    jobs: int | None,
) -> tuple[int, int]: ...
def verify(
    path: Path, against: Sequence[Path], *, model: Path | None, jobs: int | None
) -> tuple[str, list[str]]: ...
def shard_plan(
    sources: Sequence[Path],
    plan: Path,
    options: Options,
    *,
    shards: int | None,
    shard_tiles: int,
    hash: bool,
    overwrite: bool,
) -> int: ...
def shard_encode(
    plan: Path,
    shard: int,
    folder: Path,
    *,
    model: Path | None,
    jobs: int | None,
    progress: Callable[[int, int], object] | None,
) -> tuple[str, int, bool, int, float]: ...
def shard_merge(
    plan: Path,
    folder: Path,
    out: Path,
    *,
    model: Path | None,
    overwrite: bool,
    jobs: int | None,
    progress: Callable[[int, int], object] | None,
) -> Written: ...
