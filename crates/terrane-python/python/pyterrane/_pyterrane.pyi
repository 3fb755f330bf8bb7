import os
from collections.abc import Callable, Sequence
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "File",
    "Settings",
    "TerraneError",
    "TiffBytes",
    "TileCoder",
    "__version__",
    "decode",
    "derive",
    "describe",
    "encode",
    "encode_array",
    "has_networks",
    "repair",
    "shard_count",
    "shard_encode",
    "shard_merge",
    "shard_plan",
    "shown",
    "verify",
]

__version__: str
has_networks: bool

_Path = str | os.PathLike[str]
_Box = tuple[float, float, float, float]
_Transform = tuple[float, float, float, float, float, float]
_Progress = Callable[[int, int], object]
_Written = tuple[int, int, float, float, int]
_Merged = tuple[int, int, float, float]

class TerraneError(Exception): ...

@final
class Settings:
    def __new__(
        cls,
        *,
        max_error: float | None = None,
        rmse: float | None = None,
        bpp: float | None = None,
        lossless: bool = False,
        method: str | None = None,
        profile: str = "standard",
        effort: int = 1,
        model: _Path | None = None,
        embed_model: bool = False,
        per_tile: bool = False,
        bits: int | None = None,
        fixed_width: bool = False,
        tile: int | None = None,
    ) -> Settings: ...

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
    def limit_time(self, seconds: float | None) -> None: ...
    def describe(self) -> str: ...
    def parts(self) -> str: ...
    def transform(self, level: int) -> _Transform: ...
    def dtype(self) -> str: ...
    def integer_dtype(self) -> tuple[str, float | None] | None: ...
    def window(
        self, level: int, corner: tuple[int, int], size: tuple[int, int], dtype: str | None
    ) -> NDArray[np.floating[Any]]: ...
    def read(
        self,
        bbox: _Box | None,
        resolution: float | None,
        level: int,
        dtype: str | None,
    ) -> tuple[NDArray[np.floating[Any]], _Transform]: ...
    def derive(self, product: str, mode: str) -> NDArray[np.float32]: ...
    def contours(
        self,
        heights: tuple[float, float],
        bbox: _Box | None,
        level: int,
        min_length: float,
        index: int,
    ) -> list[tuple[float, bool, NDArray[np.float64]]]: ...
    def diff(
        self, old: File, resolution: float | None
    ) -> tuple[NDArray[np.float32], NDArray[np.bool_] | None, _Transform, str]: ...
    def sample(
        self, name: str, x: NDArray[np.float64], y: NDArray[np.float64]
    ) -> NDArray[np.float64]: ...
    def record(self, level: int, column: int, row: int) -> bytes | None: ...

@final
class TiffBytes:
    def __new__(
        cls,
        path: _Path,
        model: _Path | None = None,
        memory_limit: float | None = None,
        remote_timeout: float | None = None,
    ) -> TiffBytes: ...
    def length(self) -> int: ...
    def read(self, offset: int, length: int) -> bytes: ...
    def decoded(self) -> int: ...

@final
class TileCoder:
    def __new__(cls, settings: Settings, is_f32: bool) -> TileCoder: ...
    @property
    def model(self) -> str | None: ...
    def encode(self, heights: NDArray[np.number[Any]]) -> bytes: ...
    def decode(self, bytes: bytes, shape: tuple[int, int]) -> NDArray[np.floating[Any]]: ...

def describe(path: _Path) -> str: ...
def shown(path: _Path) -> str: ...
def encode(
    sources: Sequence[_Path],
    out: _Path,
    settings: Settings,
    *,
    resumable: bool,
    overwrite: bool,
    any_extension: bool,
    jobs: int | None,
    memory_limit: float | None,
    progress: _Progress | None,
    reading: Sequence[tuple[str, str]] | None = None,
) -> _Written: ...
def encode_array(
    heights: NDArray[np.number[Any]],
    mask: NDArray[np.bool_] | None,
    out: _Path,
    settings: Settings,
    *,
    transform: Sequence[float] | None,
    epsg: int | None,
    vertical_epsg: int | None,
    nodata: float | None,
    overwrite: bool,
    any_extension: bool,
    jobs: int | None,
    memory_limit: float | None,
    progress: _Progress | None,
) -> _Written: ...
def decode(
    path: _Path,
    out: _Path,
    *,
    bbox: _Box | None,
    resolution: float | None,
    level: int,
    model: _Path | None,
    overwrite: bool,
    any_extension: bool,
    jobs: int | None,
    memory_limit: float | None,
) -> tuple[int, int]: ...
def derive(
    path: _Path,
    out: _Path,
    *,
    product: str,
    mode: str,
    model: _Path | None,
    overwrite: bool,
    any_extension: bool,
    jobs: int | None,
    memory_limit: float | None,
) -> tuple[int, int]: ...
def repair(
    path: _Path,
    sources: Sequence[_Path],
    out: _Path | None,
    *,
    max_error: float | None,
    rmse: float | None,
    bpp: float | None,
    lossless: bool,
    per_tile: bool,
    method: str | None,
    profile: str | None,
    effort: int | None,
    model: _Path | None,
    tile: int | None,
    bits: int | None,
    fixed_width: bool,
    overwrite: bool,
    any_extension: bool,
    jobs: int | None,
    memory_limit: float | None,
    reading: Sequence[tuple[str, str]] | None = None,
) -> str: ...
def verify(
    path: _Path,
    against: Sequence[_Path],
    *,
    model: _Path | None,
    jobs: int | None,
    memory_limit: float | None,
    reading: Sequence[tuple[str, str]] | None = None,
) -> tuple[str, list[str]]: ...
def shard_plan(
    sources: Sequence[_Path],
    plan: _Path,
    settings: Settings,
    *,
    shards: int | None,
    shard_tiles: int,
    hash: bool,
    overwrite: bool,
    reading: Sequence[tuple[str, str]] | None = None,
) -> int: ...
def shard_count(plan: _Path) -> int: ...
def shard_encode(
    plan: _Path,
    shard: int,
    folder: _Path,
    *,
    model: _Path | None,
    jobs: int | None,
    progress: _Progress | None,
) -> tuple[os.PathLike[str], int, bool, int, float]: ...
def shard_merge(
    plan: _Path,
    folder: _Path,
    out: _Path,
    *,
    model: _Path | None,
    overwrite: bool,
    jobs: int | None,
    progress: _Progress | None,
) -> _Merged: ...
