from collections.abc import Callable, Mapping, Sequence
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "File",
    "TerraneError",
    "TileCoder",
    "__version__",
    "decode",
    "describe",
    "encode",
    "encode_array",
    "shard_encode",
    "shard_merge",
    "shard_plan",
    "shown",
    "verify",
]

__version__: str

_Options = Mapping[str, Any]
_Written = tuple[int, int, float, float, int]
_Merged = tuple[int, int, float, float]
_Transform = tuple[float, float, float, float, float, float]
_Path = Any

class TerraneError(Exception): ...

@final
class File:
    def __new__(
        cls,
        path: _Path,
        model: _Path | None = None,
        jobs: int | None = None,
        memory_limit: float | None = None,
        remote_timeout: float | None = None,
    ) -> File: ...
    def describe(self) -> str: ...
    def transform(self, level: int) -> _Transform: ...
    def dtype(self) -> str: ...
    def window(
        self, level: int, corner: tuple[int, int], size: tuple[int, int]
    ) -> NDArray[Any]: ...
    def read(
        self,
        bbox: tuple[float, float, float, float] | None,
        resolution: float | None,
        level: int,
    ) -> tuple[NDArray[Any], _Transform]: ...
    def sample(
        self, name: str, x: NDArray[np.float64], y: NDArray[np.float64]
    ) -> NDArray[np.float64]: ...
    def record(self, level: int, column: int, row: int) -> bytes | None: ...

@final
class TileCoder:
    def __new__(cls, options: _Options, is_f32: bool) -> TileCoder: ...
    @property
    def model(self) -> str | None: ...
    def encode(self, heights: NDArray[np.float64]) -> bytes: ...
    def decode(self, bytes: bytes, shape: tuple[int, int]) -> NDArray[np.float64]: ...

def describe(path: _Path) -> str: ...
def shown(path: _Path) -> str: ...
def encode(
    sources: Sequence[_Path], output: Mapping[str, Any], options: _Options
) -> _Written: ...
def encode_array(
    heights: NDArray[np.float64],
    place: Mapping[str, Any],
    output: Mapping[str, Any],
    options: _Options,
) -> _Written: ...
def decode(
    path: _Path,
    out: _Path,
    *,
    bbox: tuple[float, float, float, float] | None,
    resolution: float | None,
    level: int,
    model: _Path | None,
    overwrite: bool,
    any_extension: bool,
    jobs: int | None,
    memory_limit: float | None,
) -> tuple[int, int]: ...
def verify(
    path: _Path,
    against: Sequence[_Path],
    *,
    model: _Path | None,
    jobs: int | None,
    memory_limit: float | None,
) -> tuple[str, list[str]]: ...
def shard_plan(
    sources: Sequence[_Path],
    plan: _Path,
    options: _Options,
    *,
    shards: int | None,
    shard_tiles: int,
    hash: bool,
    overwrite: bool,
) -> int: ...
def shard_encode(
    plan: _Path,
    shard: int,
    folder: _Path,
    *,
    model: _Path | None,
    jobs: int | None,
    progress: Callable[[int, int], object] | None,
) -> tuple[str, int, bool, int, float]: ...
def shard_merge(
    plan: _Path,
    folder: _Path,
    out: _Path,
    *,
    model: _Path | None,
    overwrite: bool,
    jobs: int | None,
    progress: Callable[[int, int], object] | None,
) -> _Merged: ...
