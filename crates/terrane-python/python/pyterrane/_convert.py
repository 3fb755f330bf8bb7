"""Rasters and arrays to terrane files, and back."""

from __future__ import annotations

import json
import os
import re
import warnings
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pyterrane import _pyterrane
from pyterrane._coordinates import is_data_array, placed
from pyterrane._terrain import Path, check_whole, location


class EpsgSystem(Protocol):
    """A coordinate reference system of pyproj or rasterio."""

    def to_epsg(self) -> int | None:
        """Its EPSG code."""


class Report(NamedTuple):
    """What was written, and how far it is from the source."""

    path: str
    bytes: int
    pixels: int
    rmse_m: float
    max_error_m: float
    not_heights: int = 0
    """Pixels that hold neither a height nor nodata (infinity, or 1e30 and more) and have no data in the file."""
    reached: str = "target"
    """How the file stands to ``rmse`` or ``bpp``: it has the ``"target"``, it is ``"lossless"`` (which takes no more bytes than what
    was asked for), or it is the ``"smallest"`` that there is (and has less error than was asked for)."""

    @property
    def bpp(self) -> float:
        """Bits per pixel with data."""
        return self.bytes * 8 / max(self.pixels, 1)


def is_path(source: Any) -> bool:
    """Whether a source is the name of a file."""
    return isinstance(source, (str, os.PathLike))


def paths(source: Any) -> list[str]:
    """One name or several as a list."""
    names = [source] if is_path(source) else list(source)
    return [os.fspath(name) for name in names]


def encode(
    source: Path | Sequence[Path] | ArrayLike,
    out: Path,
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
    transform: Sequence[float] | None = None,
    crs: int | str | EpsgSystem | None = None,
    nodata: float | None = None,
    vertical_unit: str | None = None,
    band: int | None = None,
    bbox: Sequence[float] | None = None,
    resumable: bool = False,
    overwrite: bool = False,
    any_extension: bool = False,
    jobs: int | None = None,
    memory_limit: float | None = None,
    progress: Callable[[int, int], object] | None = None,
) -> Report:
    """Encodes a GeoTIFF, several as a mosaic, or an array to a terrane file.

    The target is one of ``max_error`` (metres, guaranteed at every valid pixel), ``rmse`` (metres), ``bpp`` (bits per pixel) and
    ``lossless``; without any it is ``max_error=0.1``. ``rmse`` and ``bpp`` are of the whole file, or of every tile with
    ``per_tile``. ``method`` is "context" or "integers", or the name of a network, whose tokens have so many ``bits``, of
    ``fixed_width`` or entropy-coded. ``profile`` is "fast", "standard" or "best", ``effort`` 0 to 3, ``tile`` the side of a tile in
    pixels. ``model`` is the file of a model other than the package's own; ``embed_model`` puts it into the file.

    An array has rows from the north, with its ``transform`` in the order of rasterio and its ``crs`` as an EPSG code or name;
    what is NaN, masked or ``nodata`` has no data. It is copied part by part; what another thread writes to it meanwhile is in
    the file or is not. An xarray ``DataArray`` brings these along: its dimensions are known by CF's attributes or by names
    such as ``x``, ``lon`` and ``easting``, in any order; coordinates are those of pixel centres, from north to south or the other
    way, and must be evenly spaced; its system is that of its grid mapping, such as ``spatial_ref``.

    Of rasters ``crs``, ``nodata``, the ``vertical_unit`` ("m", "ft", "us-ft") of their heights and the ``band`` that holds them, from
    1, count before what the files state; ``bbox`` is the part to encode in the raster's coordinates: left, bottom, right, top.
    :func:`verify` and :func:`repair` take the same.

    ``out`` must not be the source, and its name must not end as a raster's does without ``any_extension``. With ``resumable``
    the tiles that are done are kept beside ``out``, so that the same call goes on where it was stopped. ``memory_limit`` is the
    gigabytes that the encoding may take.

    ``progress`` is called with the number of tiles done and of all; an exception in it stops the encoding.

    >>> import numpy as np, pyterrane
    >>> y, x = np.mgrid[0:200, 0:300]
    >>> hills = (500 + 20 * np.sin(x / 30) * np.cos(y / 20)).astype("float32")
    >>> report = pyterrane.encode(hills, "hills.trn", max_error=0.05,
    ...                           transform=(1, 0, 2600000, 0, -1, 1200000), crs="EPSG:2056")
    >>> bool(np.abs(pyterrane.open("hills.trn").read() - hills).max() <= 0.05)
    True
    """
    check_whole(255, effort=effort, bits=bits)
    check_whole(tile=tile, jobs=jobs)
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
    path = os.fspath(out)
    is_files = is_path(source) or (
        isinstance(source, (list, tuple)) and len(source) > 0 and all(map(is_path, source))
    )
    if is_files:
        if transform is not None:
            raise ValueError("`transform` is for arrays: a raster has its own")
        written = _pyterrane.encode(
            paths(source),
            path,
            settings,
            resumable=resumable,
            overwrite=overwrite,
            any_extension=any_extension,
            jobs=jobs,
            memory_limit=memory_limit,
            progress=progress,
            reading=reading(crs, nodata, vertical_unit, band, bbox),
        )
        return _warned(Report(path, *written))
    if vertical_unit is not None or band is not None or bbox is not None:
        raise ValueError("`vertical_unit`, `band` and `bbox` are for rasters: an array holds metres")
    if resumable:
        raise ValueError("`resumable` is for rasters: an array has no name to know it by")
    array: Any = source
    if is_data_array(array):
        array, transform, crs, own_nodata = placed(array, transform, crs)
        nodata = own_nodata if nodata is None else nodata
    heights, mask = heights_of(array)
    if nodata is None and heights.dtype.kind == "f":
        nodata = float("nan")
    epsg, vertical_epsg = _codes(crs)
    written = _pyterrane.encode_array(
        heights,
        mask,
        path,
        settings,
        transform=None if transform is None else [float(value) for value in list(transform)[:6]],
        epsg=epsg,
        vertical_epsg=vertical_epsg,
        nodata=nodata,
        overwrite=overwrite,
        any_extension=any_extension,
        jobs=jobs,
        memory_limit=memory_limit,
        progress=progress,
    )
    return _warned(Report(path, *written))


def reading(
    crs: int | str | EpsgSystem | None,
    nodata: float | None,
    vertical_unit: str | None,
    band: int | None,
    bbox: Sequence[float] | None,
) -> list[tuple[str, str]]:
    """How rasters are read: what is given, by name and as text."""
    given: list[tuple[str, str]] = []
    if crs is not None:
        horizontal, vertical = _codes(crs)
        given.append(("crs", f"EPSG:{horizontal}" + (f"+{vertical}" if vertical else "")))
    if nodata is not None:
        given.append(("nodata", repr(float(nodata))))
    if vertical_unit is not None:
        given.append(("vertical_unit", vertical_unit))
    if band is not None:
        given.append(("band", str(band)))
    if bbox is not None:
        given.append(("bbox", ",".join(repr(float(number)) for number in bbox)))
    return given


def _warned(report: Report) -> Report:
    """A report, after a warning where pixels were taken for pixels without data that nobody declared so."""
    if report.not_heights:
        warnings.warn(
            f"{report.not_heights} pixels hold infinity or 1e30 and more, which is no height; "
            "they have no data in the file",
            stacklevel=3,
        )
    return report


def heights_of(source: ArrayLike) -> tuple[NDArray[np.number[Any]], NDArray[np.bool_] | None]:
    """Heights of a type that a raster may have, and which of them are masked; copied only where the type is another."""
    array: np.ma.MaskedArray[Any, Any] = np.ma.asanyarray(source)
    kind = array.dtype
    if array.ndim != 2:
        raise ValueError(f"an array of heights has two axes, not {array.ndim}")
    if kind.kind not in "iuf":
        raise ValueError(f"heights must be numbers, not {kind}")
    if kind.kind in "iu" and kind.itemsize > 4:
        limits = np.iinfo(np.int32)
        if array.size and (array.min() < limits.min or array.max() > limits.max):
            raise ValueError("integers of heights must fit 32 bits")
        kind = np.dtype(np.int32)
    elif kind.kind == "f" and kind.itemsize < 4:
        kind = np.dtype(np.float32)
    elif kind.itemsize > 8:
        raise ValueError(f"heights must be integers of at most 32 bits or floats of at most 64, not {kind}")
    # NumPy knows arrays of the other byte order, or at odd addresses, which no processor reads in place.
    heights = np.require(array.data, kind.newbyteorder("="), "A")
    mask = np.ma.getmask(array)
    return heights, mask if isinstance(mask, np.ndarray) else None


def _codes(crs: int | str | EpsgSystem | None) -> tuple[int | None, int | None]:
    """EPSG codes of the horizontal and the vertical system."""
    if crs is None:
        return None, None
    parts: list[int | None] = [None, None]
    if isinstance(crs, int):
        parts[0] = crs
    elif hasattr(crs, "to_epsg"):
        system = _parted(crs)
        below = getattr(system, "sub_crs_list", [])
        parts = [part.to_epsg() for part in below] if len(below) == 2 else [system.to_epsg(), None]
    elif found := re.fullmatch(r"(?i:EPSG:)?(\d+)(?:\+(\d+))?", str(crs).strip()):
        parts = [int(found[1]), int(found[2]) if found[2] else None]
    if parts[0] is None:
        raise ValueError(f"crs must have an EPSG code, such as EPSG:2056, and is {crs}")
    for code in parts:
        if code is not None and not 0 < code < 1 << 16:
            raise ValueError(f"`crs`: EPSG:{code} is not known here")
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

    >>> import pyterrane
    >>> pyterrane.decode("dem.trn", "fine.tif", bbox=(2600010, 1199900, 2600050, 1199920), resolution=0.25)
    (80, 160)
    """
    check_whole(255, level=level)
    check_whole(jobs=jobs)
    width, height = _pyterrane.decode(
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


def derive(
    path: Path,
    out: Path,
    *,
    product: str,
    mode: str = "analytic",
    model: Path | None = None,
    overwrite: bool = False,
    any_extension: bool = False,
    jobs: int | None = None,
    memory_limit: float | None = None,
) -> tuple[int, int]:
    """Derives a product such as "slope" as a COG at full resolution; returns its rows and columns.

    Products and modes are those of :meth:`Terrain.derive`.

    >>> import pyterrane
    >>> pyterrane.derive("dem.trn", "shade.tif", product="hillshade")
    (280, 300)
    """
    check_whole(jobs=jobs)
    width, height = _pyterrane.derive(
        location(path),
        os.fspath(out),
        product=product,
        mode=mode,
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
    crs: int | str | EpsgSystem | None = None,
    nodata: float | None = None,
    vertical_unit: str | None = None,
    band: int | None = None,
    bbox: Sequence[float] | None = None,
    model: Path | None = None,
    jobs: int | None = None,
    memory_limit: float | None = None,
) -> dict[str, Any]:
    """Checks every checksum and every tile; with the source also every height, the georeference and the error bound.

    ``holds`` says whether all is well, ``failures`` what is not, and ``damaged`` lists every damaged part with the tiles that it
    reaches; only a file without damage is compared with its source, which is read as for :func:`encode`. One that cannot be opened raises :class:`TerraneError`.

    >>> import pyterrane
    >>> report = pyterrane.verify("dem.trn", against="dem.tif")
    >>> report["holds"], report["max_error_m"] <= 0.1
    (True, True)
    """
    check_whole(jobs=jobs)
    text, failures = _pyterrane.verify(
        location(path),
        paths(against),
        model=model,
        jobs=jobs,
        memory_limit=memory_limit,
        reading=reading(crs, nodata, vertical_unit, band, bbox),
    )
    report: dict[str, Any] = json.loads(text)
    return {**report, "failures": failures}


def repair(
    path: Path,
    source: Path | Sequence[Path],
    out: Path | None = None,
    *,
    max_error: float | None = None,
    rmse: float | None = None,
    bpp: float | None = None,
    lossless: bool = False,
    per_tile: bool = False,
    method: str | None = None,
    profile: str | None = None,
    effort: int | None = None,
    model: Path | None = None,
    tile: int | None = None,
    bits: int | None = None,
    fixed_width: bool = False,
    crs: int | str | EpsgSystem | None = None,
    nodata: float | None = None,
    vertical_unit: str | None = None,
    band: int | None = None,
    bbox: Sequence[float] | None = None,
    overwrite: bool = False,
    any_extension: bool = False,
    jobs: int | None = None,
    memory_limit: float | None = None,
) -> dict[str, Any]:
    """Makes a damaged file whole again, byte for byte, from the raster or rasters that it was made from.

    Without ``out`` the damaged file is replaced once the whole one is complete. The report says what was damaged: ``was_whole``,
    ``head`` ("whole", "mended" or "anew"), ``pages`` of the index, ``records``, ``model``, ``length``; ``unproven`` counts
    records of which nothing had survived to compare with. Another raster than the file's raises :class:`TerraneError`, and
    nothing is written.

    The file states nearly all of how it was encoded. ``max_error`` and the other settings are those of :func:`encode`, for a file
    whose head is lost.

    >>> import pathlib, pyterrane
    >>> file = pathlib.Path("dem.trn")
    >>> whole = file.read_bytes()
    >>> damaged = bytearray(whole)
    >>> damaged[len(whole) // 2] ^= 1
    >>> _ = pathlib.Path("damaged.trn").write_bytes(damaged)
    >>> pyterrane.repair("damaged.trn", "dem.tif")["records"]
    1
    >>> pathlib.Path("damaged.trn").read_bytes() == whole
    True
    """
    check_whole(255, effort=effort, bits=bits)
    check_whole(tile=tile, jobs=jobs)
    text = _pyterrane.repair(
        os.fspath(path),
        paths(source),
        None if out is None else os.fspath(out),
        max_error=max_error,
        rmse=rmse,
        bpp=bpp,
        lossless=lossless,
        per_tile=per_tile,
        method=method,
        profile=profile,
        effort=effort,
        model=model,
        tile=tile,
        bits=bits,
        fixed_width=fixed_width,
        overwrite=overwrite,
        any_extension=any_extension,
        jobs=jobs,
        memory_limit=memory_limit,
        reading=reading(crs, nodata, vertical_unit, band, bbox),
    )
    report: dict[str, Any] = json.loads(text)
    return report


def info(path: Path) -> dict[str, Any]:
    """What a file says of itself; needs no model.

    >>> import pyterrane
    >>> pyterrane.info("dem.trn")["error_bound"]
    'no error above 0.1 m'
    """
    description: dict[str, Any] = json.loads(_pyterrane.describe(location(path)))
    return description
