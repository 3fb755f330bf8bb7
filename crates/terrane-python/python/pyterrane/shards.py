"""An encoding in independent pieces: the merged file is the one that ``pyterrane.encode`` writes, byte for byte.

>>> import pyterrane
>>> from pyterrane import shards
>>> shards.plan("dem.tif", "plan.json", shards=3, tile=16, max_error=0.1)
3
>>> for number in range(shards.count("plan.json")):          # anywhere, in any order, as often as needed
...     report = shards.encode("plan.json", number)
>>> report = shards.merge("plan.json", "merged.trn")
>>> whole = pyterrane.encode("dem.tif", "whole.trn", tile=16, max_error=0.1)
>>> open("merged.trn", "rb").read() == open("whole.trn", "rb").read()
True
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import NamedTuple

from pyterrane import _pyterrane
from pyterrane._convert import EpsgSystem, Report, paths, reading
from pyterrane._terrain import Path, check_whole


class Shard(NamedTuple):
    """A shard that is there now."""

    number: int
    path: str
    bytes: int
    was_there: bool
    pixels: int
    max_error_m: float


def plan(
    source: Path | Sequence[Path],
    plan: Path,
    *,
    shards: int | None = None,
    shard_tiles: int = 16,
    hash: bool = False,
    overwrite: bool = False,
    max_error: float | None = None,
    rmse: float | None = None,
    bpp: float | None = None,
    lossless: bool = False,
    method: str | None = None,
    profile: str = "standard",
    effort: int = 1,
    model: Path | None = None,
    embed_model: bool = False,
    per_tile: bool = False,
    bits: int | None = None,
    fixed_width: bool = False,
    tile: int | None = None,
    crs: int | str | EpsgSystem | None = None,
    nodata: float | None = None,
    vertical_unit: str | None = None,
    band: int | None = None,
    bbox: Sequence[float] | None = None,
) -> int:
    """Divides the encoding of a raster, or of several as a mosaic, into shards; returns their number.

    ``shards`` is their number, or else ``shard_tiles`` the tiles across each, a power of two. With ``hash`` workers know
    rasters again by their bytes instead of their time. The other settings are those of :func:`pyterrane.encode`; ``rmse`` and
    ``bpp`` of a whole file need all tiles at once and are refused without ``per_tile``.
    """
    check_whole(255, effort=effort, bits=bits)
    check_whole(tile=tile, shards=shards, shard_tiles=shard_tiles)
    settings = _pyterrane.Settings(
        max_error=max_error,
        rmse=rmse,
        bpp=bpp,
        lossless=lossless,
        method=method,
        profile=profile,
        effort=effort,
        model=model,
        embed_model=embed_model,
        per_tile=per_tile,
        bits=bits,
        fixed_width=fixed_width,
        tile=tile,
    )
    return _pyterrane.shard_plan(
        paths(source),
        os.fspath(plan),
        settings,
        shards=shards,
        shard_tiles=shard_tiles,
        hash=hash,
        overwrite=overwrite,
        reading=reading(crs, nodata, vertical_unit, band, bbox),
    )


def count(plan: Path) -> int:
    """The number of a plan's shards."""
    return _pyterrane.shard_count(os.fspath(plan))


def folder_of(plan: Path, folder: Path | None = None) -> str:
    """Where the shards of a plan are: a folder that is given, or the plan's name with the ending ``.shards``."""
    if folder is not None:
        return os.fspath(folder)
    return os.path.splitext(os.fspath(plan))[0] + ".shards"


def encode(
    plan: Path,
    shard: int,
    folder: Path | None = None,
    *,
    model: Path | None = None,
    jobs: int | None = 1,
    progress: Callable[[int, int], object] | None = None,
) -> Shard:
    """Encodes one shard; one that is there and whole is left as it is.

    The file appears under its name when it is complete, so a worker may be killed, and two may do the same. One thread
    without ``jobs``, since workers are many.
    """
    check_whole((1 << 32) - 1, shard=shard, jobs=jobs)
    target = folder_of(plan, folder)
    made = _pyterrane.shard_encode(
        os.fspath(plan), shard, target, model=model, jobs=jobs, progress=progress
    )
    return Shard(shard, os.fspath(made[0]), *made[1:])


def merge(
    plan: Path,
    out: Path,
    folder: Path | None = None,
    *,
    model: Path | None = None,
    overwrite: bool = False,
    jobs: int | None = None,
    progress: Callable[[int, int], object] | None = None,
) -> Report:
    """Checks all shards of a plan and merges them."""
    check_whole(jobs=jobs)
    written = _pyterrane.shard_merge(
        os.fspath(plan),
        folder_of(plan, folder),
        os.fspath(out),
        model=model,
        overwrite=overwrite,
        jobs=jobs,
        progress=progress,
    )
    return Report(os.fspath(out), *written)
