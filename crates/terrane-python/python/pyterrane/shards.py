"""An encoding in independent pieces: the merged file is the one that ``terrane.encode`` writes, byte for byte.

>>> import terrane
>>> from terrane import shards
>>> shards.plan("dem.tif", "plan.json", shards=3, tile=64, max_error=0.1)
3
>>> for number in range(shards.count("plan.json")):          # anywhere, in any order, as often as needed
...     report = shards.encode("plan.json", number)
>>> report = shards.merge("plan.json", "merged.trn")
>>> whole = terrane.encode("dem.tif", "whole.trn", tile=64, max_error=0.1)
>>> open("merged.trn", "rb").read() == open("whole.trn", "rb").read()
True
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from terrane import _terrane
from terrane._convert import Path, Report, options, paths


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
    **settings: Any,
) -> int:
    """Divides the encoding of a raster, or of several as a mosaic, into shards; returns their number.

    ``shards`` is their number, or else ``shard_tiles`` the tiles across each, a power of two. With ``hash`` workers know
    rasters again by their bytes instead of their time. The other settings are those of :func:`terrane.encode`; ``rmse`` and
    ``bpp`` of a whole file need all tiles at once and are refused without ``per_tile``.
    """
    return _terrane.shard_plan(
        paths(source),
        os.fspath(plan),
        options(**settings),
        shards=shards,
        shard_tiles=shard_tiles,
        hash=hash,
        overwrite=overwrite,
    )


def count(plan: Path) -> int:
    """The number of a plan's shards."""
    with open(plan, encoding="utf-8") as file:
        return len(json.load(file)["shards"])


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
    target = folder_of(plan, folder)
    made = _terrane.shard_encode(
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
    written = _terrane.shard_merge(
        os.fspath(plan),
        folder_of(plan, folder),
        os.fspath(out),
        model=model,
        overwrite=overwrite,
        jobs=jobs,
        progress=progress,
    )
    return Report(os.fspath(out), *written)
