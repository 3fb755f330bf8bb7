"""What changed between two files, and what of it is proven."""

from __future__ import annotations

import json
import warnings
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pyterrane._terrain import Path, Terrain, open


class Change(NamedTuple):
    """What changed from an old file to a new one."""

    difference: NDArray[np.float32]
    """New minus old in metres; NaN where one of them has no data."""
    proven: NDArray[np.bool_] | None
    """Where a change is proven: the difference exceeds both bounds together. ``None`` where nothing can be proven."""
    bound_m: float | None
    """How far a difference is from that of the source rasters at most; ``None`` where nothing can be proven."""
    transform: tuple[float, float, float, float, float, float]
    """From pixel corners to the map, in rasterio's order."""
    report: dict[str, Any]
    """Volumes and areas with their bounds, as ``terrane diff --json`` prints them, and why nothing is proven."""


def diff(new: Path | Terrain, old: Path | Terrain, *, resolution: float | None = None) -> Change:
    """Compares two files at the pixels of the new one, or on blocks of them.

    Where both files have the same pixels and guarantee a bound (``max_error`` or ``lossless``), a difference above both bounds
    together proves that the rasters they were made from differ. Otherwise the old file's surface is asked at the new file's
    pixels, and ``proven`` and ``bound_m`` are ``None``. ``resolution`` is a whole multiple of the new file's pixel size, whose
    differences are averaged.

    >>> import pyterrane
    >>> change = pyterrane.diff("dem.trn", "dem.trn")
    >>> change.bound_m, int(change.proven.sum()), change.report["fill_m3"]
    (0.2, 0, 0.0)
    """
    newer, older = (file if isinstance(file, Terrain) else open(file) for file in (new, old))
    difference, proven, (a, b, c, d, e, f), text = newer._file.diff(older._file, resolution)
    report: dict[str, Any] = json.loads(text)
    for warning in report["warnings"]:
        warnings.warn(warning, stacklevel=2)
    return Change(difference, proven, report["bound_m"], (a, b, c, d, e, f), report)
