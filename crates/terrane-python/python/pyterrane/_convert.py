"""Rasters and arrays to neural terrain files, and back."""

from __future__ import annotations

import json
import os
import re
import warnings
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from terrane import _terrane
from terrane._terrain import location

Path = str | os.PathLike[str]


class Report(NamedTuple):
    """What was written, and how far it is from the source."""

    path: str
    bytes: int
    pixels: int
    rmse_m: float
    max_error_m: float
    not_heights: int = 0
    """Pixels that hold neither a height nor nodata (infinity, or 1e30 and more) and have no data in the file."""

    @property
    def bpp(self) -> float:
        """Bits per pixel with data."""
        return self.bytes * 8 / max(self.pixels, 1)


def options(
    *,
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
) -> dict[str, Any]:
    """The options of an encoding, all of them; each as ``terrane encode --help`` describes it."""
    return dict(
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


def is_path(source: Any) -> bool:
    """Whether a source is the name of a file."""
    return isinstance(source, (str, os.PathLike))


def paths(source: Any) -> list[str]:
    """One name or several as a list."""
    names = [source] if is_path(source) else list(source)
    return [os.fspath(name) for name in names]


def encode(
    source: Any,
    out: Path,
    *,
    transform: Sequence[float] | None = None,
    crs: Any = None,
    nodata: float | None = None,
    resumable: bool = False,
    overwrite: bool = False,
    any_extension: bool = False,
    jobs: int | None = None,
    memory_limit: float | None = None,
    progress: Callable[[int, int], object] | None = None,
    **settings: Any,
) -> Report:
    """Encodes a GeoTIFF, several as a mosaic, or an array to a neural terrain file.

    The rate is one of ``max_error`` (metres, guaranteed at every valid pixel), ``rmse``, ``bpp`` and ``lossless``; without
    any it is ``max_error=0.1``. The other settings are those of the command: ``method``, ``profile`` ("fast", "standard",
    "best"), ``effort``, ``model``, ``embed_model``, ``per_tile``, ``bits``, ``fixed_width``, ``tile``.

    An array has rows from the north, with its ``transform`` in the order of rasterio and its ``crs`` as an EPSG code or name;
    what is NaN, masked or ``nodata`` has no data. An xarray ``DataArray`` with rioxarray's accessor brings these along.

    ``out`` must not be the source, and its name must not end as a raster's does without ``any_extension``.
    ``memory_limit`` is the gigabytes that the encoding may take.

    ``progress`` is called with the number of tiles done and of all; an exception in it stops the encoding.

    >>> import numpy as np, terrane
    >>> y, x = np.mgrid[0:200, 0:300]
    >>> hills = (500 + 20 * np.sin(x / 30) * np.cos(y / 20)).astype("float32")
    >>> report = terrane.encode(hills, "hills.trn", max_error=0.05,
    ...                         transform=(1, 0, 2600000, 0, -1, 1200000), crs="EPSG:2056")
    >>> bool(np.abs(terrane.open("hills.trn").read() - hills).max() <= 0.05)
    True
    """
    path = os.fspath(out)
    output = dict(
        out=path,
        overwrite=overwrite,
        any_extension=any_extension,
        resumable=resumable,
        jobs=jobs,
        memory_limit=memory_limit,
        progress=progress,
    )
    choices = options(**settings)
    is_files = is_path(source) or (
        isinstance(source, (list, tuple)) and len(source) > 0 and all(map(is_path, source))
    )
    if is_files:
        if transform is not None or crs is not None or nodata is not None:
            raise ValueError("transform, crs and nodata are for arrays: a raster has its own")
        return _warned(Report(path, *_terrane.encode(paths(source), output, choices)))
    if resumable:
        raise ValueError("resumable is for rasters: an array has no name to know it by")
    if hasattr(source, "rio"):
        transform = source.rio.transform()[:6] if transform is None else transform
        crs = source.rio.crs if crs is None else crs
        nodata = source.rio.nodata if nodata is None else nodata
        values = source.values
        source = values[0] if values.ndim == 3 and values.shape[0] == 1 else values
    heights, kind, nodata = _heights(source, nodata)
    epsg, vertical = _codes(crs)
    place = dict(
        transform=None if transform is None else [float(value) for value in list(transform)[:6]],
        epsg=epsg,
        vertical_epsg=vertical,
        sample_type=kind,
        nodata=nodata,
    )
    return _warned(Report(path, *_terrane.encode_array(heights, place, output, choices)))


def _warned(report: Report) -> Report:
    """A report, after a warning where pixels were taken for pixels without data that nobody declared so."""
    if report.not_heights:
        warnings.warn(
            f"{report.not_heights} pixels hold infinity or 1e30 and more, which is no height; "
            "they have no data in the file",
            stacklevel=3,
        )
    return report


def _heights(source: Any, nodata: float | None) -> tuple[np.ndarray[Any, Any], str, float | None]:
    """Heights as floats with NaN where there is no data, the type they had, and what stood for no data."""
    array = np.ma.asanyarray(source)
    if array.ndim != 2:
        raise ValueError(f"an array of heights has two axes, not {array.ndim}")
    if array.dtype.kind not in "iuf":
        raise ValueError(f"heights must be numbers, not {array.dtype}")
    if array.dtype.itemsize > 4 and array.dtype.kind in "iu":
        limits = np.iinfo(np.int32)
        if array.size and (array.min() < limits.min or array.max() > limits.max):
            raise ValueError("integers of heights must fit 32 bits")
        kind = "int32"
    else:
        kind = "float32" if array.dtype == np.float16 else array.dtype.name
    heights = np.ma.filled(array.astype(np.float64), np.nan)
    if nodata is not None and not np.isnan(nodata):
        heights = np.where(heights == nodata, np.nan, heights)
    if nodata is None and array.dtype.kind == "f":
        nodata = float("nan")
    return np.ascontiguousarray(heights), kind, nodata


def _codes(crs: Any) -> tuple[int | None, int | None]:
    """EPSG codes of the horizontal and the vertical system."""
    if crs is None:
        return None, None
    parts: list[int | None] = [None, None]
    if isinstance(crs, int):
        parts[0] = crs
    elif hasattr(crs, "to_epsg"):
        crs = _parted(crs)
        below = getattr(crs, "sub_crs_list", [])
        parts = [part.to_epsg() for part in below] if len(below) == 2 else [crs.to_epsg(), None]
    elif found := re.fullmatch(r"(?i:EPSG:)?(\d+)(?:\+(\d+))?", str(crs).strip()):
        parts = [int(found[1]), int(found[2]) if found[2] else None]
    if parts[0] is None:
        raise ValueError(f"crs must have an EPSG code, such as EPSG:2056, and is {crs}")
    return parts[0], parts[1]


def _parted(crs: Any) -> Any:
    """A system that knows its parts: pyproj's, where rasterio's is given and pyproj is there."""
    if hasattr(crs, "sub_crs_list") or not hasattr(crs, "to_wkt"):
        return crs
    try:
        from pyproj import CRS
    except ImportError:
        return crs
    return CRS.from_wkt(crs.to_wkt())


def decode(
    path: Path,
    out: Path,
    *,
    bbox: tuple[float, float, float, float] | None = None,
    resolution: float | None = None,
    level: int = 0,
    model: Path | None = None,
    overwrite: bool = False,
    any_extension: bool = False,
    jobs: int | None = None,
    memory_limit: float | None = None,
) -> tuple[int, int]:
    """Decodes a file to a COG; returns its rows and columns.

    >>> import terrane
    >>> terrane.decode("dem.trn", "fine.tif", bbox=(2600010, 1199900, 2600050, 1199920), resolution=0.25)
    (80, 160)
    """
    width, height = _terrane.decode(
        location(path),
        os.fspath(out),
        bbox=bbox,
        resolution=resolution,
        level=level,
        model=model,
        overwrite=overwrite,
        any_extension=any_extension,
        jobs=jobs,
        memory_limit=memory_limit,
    )
    return height, width


def verify(
    path: Path,
    against: Path | Sequence[Path] = (),
    *,
    model: Path | None = None,
    jobs: int | None = None,
    memory_limit: float | None = None,
) -> dict[str, Any]:
    """Checks every checksum and every tile; with the source also every height, the place and the promise.

    ``holds`` says whether all is well, ``failures`` what is not. A damaged file raises :class:`TerraneError`.

    >>> import terrane
    >>> report = terrane.verify("dem.trn", against="dem.tif")
    >>> report["holds"], report["max_error_m"] <= 0.1
    (True, True)
    """
    text, failures = _terrane.verify(
        location(path), paths(against), model=model, jobs=jobs, memory_limit=memory_limit
    )
    report: dict[str, Any] = json.loads(text)
    return {**report, "failures": failures}


def info(path: Path) -> dict[str, Any]:
    """What a file says of itself; needs no model.

    >>> import terrane
    >>> terrane.info("dem.trn")["promise"]
    'no error above 0.1 m'
    """
    description: dict[str, Any] = json.loads(_terrane.describe(location(path)))
    return description
