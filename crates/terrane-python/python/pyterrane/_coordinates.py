"""Where a DataArray lies, by the names and meanings of its dimensions and coordinates."""

from __future__ import annotations

import importlib
import re
import sys
from collections.abc import Hashable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

_Transform = tuple[float, float, float, float, float, float]

#: What says that a dimension runs across, and what that it runs down: CF's `axis`, `standard_name` and `units`, and names.
_AXES = {"x": {"X"}, "y": {"Y"}}
_STANDARD_NAMES = {
    "x": {"projection_x_coordinate", "longitude", "grid_longitude"},
    "y": {"projection_y_coordinate", "latitude", "grid_latitude"},
}
_UNITS = {
    "x": {"degrees_east", "degree_east", "degrees_e", "degree_e", "degreese", "degreee"},
    "y": {"degrees_north", "degree_north", "degrees_n", "degree_n", "degreesn", "degreen"},
}
_NAMES = {
    "x": {"x", "lon", "long", "longitude", "easting", "eastings", "east"},
    "y": {"y", "lat", "latitude", "northing", "northings", "north"},
}
_METRES = {"m", "metre", "metres", "meter", "meters"}
#: How far coordinates may be from evenly spaced ones, in pixels.
_TOLERANCE = 0.01


class Placed(NamedTuple):
    """The heights of a DataArray, rows by columns, and where they lie."""

    heights: Any
    transform: _Transform | None
    crs: Any
    nodata: float | None


def is_data_array(source: Any) -> bool:
    """Whether a source is a DataArray of xarray, which is imported where there is one."""
    xarray = sys.modules.get("xarray")
    if xarray is not None and isinstance(source, xarray.Dataset):
        raise ValueError("a Dataset may hold several variables: give one of them, such as `dataset.height`")
    return xarray is not None and isinstance(source, xarray.DataArray)


def placed(array: Any, transform: Any = None, crs: Any = None) -> Placed:
    """Takes a DataArray apart. A transform and a system that are given stand for its own."""
    array = _plane(array)
    _check_values(array)
    names = _spatial(array)
    if names is None:
        return Placed(array.values, transform, crs if crs is not None else _system(array), _nodata(array))
    array = array.transpose(names["y"], names["x"])
    if crs is None:
        crs = _system(array)
    if transform is None:
        transform = _transform(array, names, crs is not None)
    return Placed(array.values, transform, crs, _nodata(array))


def _plane(array: Any) -> Any:
    """An array of two dimensions: a band or a time that is alone is left out."""
    extra = [name for name in array.dims if array.sizes[name] == 1 and _meaning(array, name) is None]
    for name in extra:
        if array.ndim > 2:
            array = array.isel({name: 0})
    if array.ndim != 2:
        sizes = ", ".join(f"{name}: {array.sizes[name]}" for name in array.dims)
        raise ValueError(f"a DataArray of heights has two dimensions, and this one has ({sizes}): choose with `isel` or `sel`")
    return array


def _check_values(array: Any) -> None:
    """Refuses numbers that are no metres."""
    scale, offset = array.attrs.get("scale_factor", 1.0), array.attrs.get("add_offset", 0.0)
    if (scale, offset) != (1.0, 0.0):
        raise ValueError(
            f"the numbers of the DataArray are packed (scale_factor {scale}, add_offset {offset}): "
            "open it with `mask_and_scale=True`"
        )
    units = str(array.attrs.get("units", "m")).strip()
    word = units.split()[0].lower() if units else "m"
    if word not in _METRES:
        raise ValueError(
            f"the units of the DataArray are {units!r}, and heights are in metres: convert them, or drop the attribute `units`"
        )


def _meaning(array: Any, name: Hashable) -> str | None:
    """Whether a dimension is "x" or "y", or neither as far as it says."""
    attributes = array.coords[name].attrs if name in array.coords else {}
    axis = str(attributes.get("axis", "")).upper()
    standard_name = str(attributes.get("standard_name", ""))
    units = str(attributes.get("units", "")).lower()
    for said, meanings in (
        (axis, _AXES),
        (standard_name, _STANDARD_NAMES),
        (units, _UNITS),
        (str(name).lower(), _NAMES),
    ):
        for which in ("x", "y"):
            if said in meanings[which]:
                return which
    return None


def _spatial(array: Any) -> dict[str, Hashable] | None:
    """The dimensions by their meaning; None where there is no word of it at all, and rows and columns are meant."""
    meanings = {name: _meaning(array, name) for name in array.dims}
    found = {meaning: name for name, meaning in meanings.items() if meaning is not None}
    if len(found) == 2:
        return found
    # What `rio.set_spatial_dims` was told.
    accessor = getattr(array, "rio", None) if "rioxarray" in sys.modules else None
    try:
        told = None if accessor is None else {"x": accessor.x_dim, "y": accessor.y_dim}
    except Exception:  # noqa: BLE001 rioxarray has an error of its own for dimensions that it does not know.
        told = None
    if told is not None and set(told.values()) == set(array.dims):
        return told
    if not found and not any(name in array.coords for name in array.dims) and not _grid_mapping(array):
        return None
    names = ", ".join(str(name) for name in array.dims)
    raise ValueError(
        f"the dimensions of the DataArray ({names}) do not say which runs across and which down: "
        'rename them, as in `array.rename({"row": "y", "col": "x"})`'
    )


def _transform(array: Any, names: dict[str, Hashable], has_system: bool) -> _Transform | None:
    """The transform from pixel corners: of the coordinates, which are those of centres, or stated."""
    stated = _stated_transform(array)
    missing = [name for name in names.values() if name not in array.coords]
    if missing:
        if stated is not None:
            return stated
        curved = [name for name in array.coords if array.coords[name].ndim == 2]
        if curved or has_system or len(missing) == 1:
            raise ValueError(
                f"the DataArray has no coordinates along {missing[0]!r}: give `transform`, "
                "or resample it to a regular grid where its coordinates are curved"
            )
        return None
    sizes = {} if stated is None else {"x": stated[0], "y": stated[4]}
    is_turned = stated is not None and (stated[1], stated[3]) != (0.0, 0.0)
    (x, width), (y, height) = (
        _regular(array.coords[names[which]], sizes.get(which)) for which in ("x", "y")
    )
    found = (width, 0.0, x - width / 2, 0.0, height, y - height / 2)
    if stated is None or is_turned:
        return found
    # A part of an array has its coordinates, and may have the transform of the whole.
    rows, columns = array.shape
    for column, row in ((0, 0), (columns, rows)):
        if (
            abs(stated[0] * column + stated[2] - found[0] * column - found[2]) > _TOLERANCE * abs(width)
            or abs(stated[4] * row + stated[5] - found[4] * row - found[5]) > _TOLERANCE * abs(height)
        ):
            return found
    # The numbers that were written, before they became coordinates.
    return stated


def _regular(coordinate: Any, stated: float | None) -> tuple[float, float]:
    """The first of some coordinates, and from each to the next; refused where they are not evenly spaced."""
    name = coordinate.name
    if coordinate.dtype.kind not in "iuf":
        raise ValueError(f"the coordinates along {name!r} are no numbers")
    kind = coordinate.dtype
    values: NDArray[np.float64] = np.asarray(coordinate.values, dtype=np.float64)
    if not np.isfinite(values).all():
        raise ValueError(f"the coordinates along {name!r} have gaps")
    factor = _factor(coordinate)
    if len(values) == 1:
        if stated is None:
            raise ValueError(f"there is one coordinate along {name!r}, which does not say how large a pixel is: give `transform`")
        return float(values[0]) * factor, stated
    step = float(values[-1] - values[0]) / (len(values) - 1)
    even = values[0] + step * np.arange(len(values))
    # Coordinates of 32 bits are rounded.
    rounded = 2 * float(np.finfo(kind).eps) * float(np.abs(values).max()) if kind.kind == "f" else 0.0
    worst = int(np.abs(values - even).argmax())
    if step == 0.0 or abs(values[worst] - even[worst]) > _TOLERANCE * abs(step) + rounded:
        raise ValueError(
            f"the coordinates along {name!r} are not evenly spaced: number {worst} is {values[worst]} and would be {even[worst]}; "
            "interpolate to a regular grid first"
        )
    return float(values[0]) * factor, step * factor


def _factor(coordinate: Any) -> float:
    """What turns coordinates into those of their system: satellites' and polar grids have kilometres."""
    units = str(coordinate.attrs.get("units", "")).strip().lower()
    if units in ("rad", "radian", "radians"):
        raise ValueError(f"the coordinates along {coordinate.name!r} are in radians: convert them to the unit of the system")
    return 1000.0 if units in ("km", "kilometre", "kilometres", "kilometer", "kilometers") else 1.0


def _grid_mapping(array: Any) -> dict[str, Any]:
    """The attributes of the variable that states the system: the one that is named, or what GDAL and rioxarray call it."""
    named = array.encoding.get("grid_mapping") or array.attrs.get("grid_mapping")
    for name in (named, "spatial_ref", "crs"):
        if name is not None and str(name) in array.coords and array.coords[str(name)].attrs:
            attributes: dict[str, Any] = dict(array.coords[str(name)].attrs)
            return attributes
    return {}


def _stated_transform(array: Any) -> _Transform | None:
    """GDAL's transform, where the array has one, in the order of rasterio."""
    stated = _grid_mapping(array).get("GeoTransform")
    if stated is None:
        return None
    try:
        c, a, b, f, d, e = (float(number) for number in str(stated).split())
    except ValueError:
        return None
    return a, b, c, d, e, f


def _system(array: Any) -> Any:
    """The system that an array states."""
    stated = _grid_mapping(array)
    text = stated.get("crs_wkt") or stated.get("spatial_ref")
    if text:
        return of_text(str(text))
    if "grid_mapping_name" in stated:
        try:
            from pyproj import CRS
        except ImportError:
            raise ValueError("the DataArray states its system by CF parameters, which needs pyproj: give `crs`") from None
        return CRS.from_cf(stated)
    if array.attrs.get("crs"):
        return of_text(str(array.attrs["crs"]))
    accessor = getattr(array, "rio", None) if "rioxarray" in sys.modules else None
    return None if accessor is None else accessor.crs


def of_text(text: str) -> Any:
    """A system by its name or WKT, as something that knows its codes; a name remains one."""
    if re.fullmatch(r"(?i)(\+init=)?epsg:\d+(\+\d+)?", text.strip()):
        return re.sub(r"(?i)\+init=", "", text.strip())
    try:
        from pyproj import CRS
    except ImportError:
        pass
    else:
        return CRS.from_user_input(text)
    try:
        return importlib.import_module("rasterio.crs").CRS.from_string(text)
    except ImportError:
        pass
    # The code of the whole stands at its end.
    found = re.search(r'(?:ID|AUTHORITY)\["EPSG",\s*"?(\d+)"?\]\s*\]\s*$', text)
    if found is None:
        raise ValueError("the system of the DataArray has no EPSG code at its end, and neither pyproj nor rasterio is there to find it")
    return f"EPSG:{found[1]}"


def _nodata(array: Any) -> float | None:
    """The number of pixels without data."""
    for name in ("_FillValue", "missing_value", "nodata"):
        if array.attrs.get(name) is not None:
            return float(np.asarray(array.attrs[name]).ravel()[0])
    accessor = getattr(array, "rio", None) if "rioxarray" in sys.modules else None
    nodata = None if accessor is None else accessor.nodata
    return None if nodata is None else float(nodata)
