"""Terrane files for xarray: ``xarray.open_dataset("dem.trn", engine="terrane")``.

>>> import xarray as xr
>>> dataset = xr.open_dataset("dem.trn", engine="terrane", chunks={})
>>> dataset.height.dims, dataset.height.shape
(('y', 'x'), (280, 300))
>>> point = dataset.height.sel(x=2600100.5, y=1199900.5)      # one tile is decoded
>>> bool(abs(dataset.height.mean() - dataset.height.load().mean()) < 1e-3)
True
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable
from typing import Any

import numpy as np
import xarray as xr
from xarray.backends import BackendArray, BackendEntrypoint
from xarray.core import indexing

from pyterrane._pyterrane import shown
from pyterrane._terrain import Path, Terrain


class TerrainArray(BackendArray):
    """One level of a file: decoded where it is read, and sent to other processes by its name."""

    def __init__(self, terrain: Terrain, level: int, dtype: np.dtype[Any]) -> None:
        self.terrain = terrain
        self.level = level
        self.shape = terrain.levels[level]
        self.dtype = dtype

    def __getitem__(self, key: indexing.ExplicitIndexer) -> Any:
        if isinstance(key, indexing.VectorizedIndexer) and all(
            isinstance(part, np.ndarray) for part in key.tuple
        ):
            return self._points(*np.broadcast_arrays(*key.tuple))
        return indexing.explicit_indexing_adapter(
            key, self.shape, indexing.IndexingSupport.BASIC, self._part
        )

    def _part(self, key: tuple[int | slice, ...]) -> Any:
        """A rectangle, by integers and slices."""
        starts: list[int] = []
        counts: list[int] = []
        picks: list[int | slice] = []
        for part, size in zip(key, self.shape):
            if isinstance(part, slice):
                numbers = range(size)[part]
                if len(numbers) == 0:
                    starts.append(0)
                    counts.append(0)
                    picks.append(slice(0, 0))
                    continue
                first, last = min(numbers[0], numbers[-1]), max(numbers[0], numbers[-1])
                starts.append(first)
                counts.append(last - first + 1)
                picks.append(slice(None, None, numbers.step))
            else:
                number = int(part) % size
                starts.append(number)
                counts.append(1)
                picks.append(0)
        if 0 in counts:
            heights = np.empty(counts, self.dtype)
        else:
            heights = self.terrain.window(
                starts[1], starts[0], counts[1], counts[0], level=self.level, dtype=self.dtype
            )
        return heights[tuple(picks)]

    def _points(self, rows: np.ndarray[Any, Any], columns: np.ndarray[Any, Any]) -> Any:
        """Single pixels, tile by tile: far ones do not cost what lies between them."""
        side = self.terrain.tile
        shape = rows.shape
        rows, columns = rows.ravel() % self.shape[0], columns.ravel() % self.shape[1]
        values = np.empty(rows.shape, self.dtype)
        tiles = rows // side * -(-self.shape[1] // side) + columns // side
        order = np.argsort(tiles, kind="stable")
        borders = np.flatnonzero(np.diff(tiles[order])) + 1
        for part in np.split(order, borders) if len(order) else []:
            row, column = rows[part], columns[part]
            top, left = row.min(), column.min()
            heights = self.terrain.window(
                int(left),
                int(top),
                int(column.max() - left + 1),
                int(row.max() - top + 1),
                level=self.level,
                dtype=self.dtype,
            )
            values[part] = heights[row - top, column - left]
        return values.reshape(shape)


class TerraneBackend(BackendEntrypoint):
    """Opens terrane files lazily, one dask chunk per tile, with what rioxarray needs."""

    description = "Terrane files (.trn)"
    url = "docs/python.md"
    open_dataset_parameters = ("filename_or_obj", "drop_variables", "mask_and_scale", "level", "model")

    def guess_can_open(self, filename_or_obj: Any) -> bool:
        """Whether a name ends as a terrane file's does."""
        if not isinstance(filename_or_obj, (str, os.PathLike)):
            return False
        return os.fspath(filename_or_obj).endswith(".trn")

    def open_dataset(
        self,
        filename_or_obj: Any,
        *,
        drop_variables: str | Iterable[str] | None = None,
        mask_and_scale: bool = True,
        level: int = 0,
        model: Path | None = None,
    ) -> xr.Dataset:
        """A dataset with the variable ``height`` in metres; ``level`` is an overview.

        Heights are floats, and NaN where there is no data. With ``mask_and_scale=False`` those of a lossless file of integers
        are the integers themselves, with their number for no data as ``_FillValue``. The attribute ``bound_m`` is the
        guaranteed error at full resolution, and ``max_error_m`` the greatest that was measured.
        """
        terrain = Terrain(filename_or_obj, model=model)
        if not 0 <= level < len(terrain.levels):
            raise IndexError(f"there is no level {level}: the last is {len(terrain.levels) - 1}")
        attributes: dict[str, Any] = {"units": "m", "long_name": "height"}
        if terrain.bound_m is not None and level == 0:
            attributes["bound_m"] = terrain.bound_m
            attributes["max_error_m"] = terrain.max_error_m
        encoding: dict[str, Any] = {"_FillValue": np.nan}
        dtype = terrain.dtype
        if not mask_and_scale and level == 0 and terrain.integers is not None:
            dtype, nodata = terrain.integers
            encoding = {}
            if nodata is not None:
                attributes["_FillValue"] = dtype.type(nodata)
        array = TerrainArray(terrain, level, dtype)
        height = xr.Variable(
            ("y", "x"),
            indexing.LazilyIndexedArray(array),
            attributes,
            encoding={
                **encoding,
                "grid_mapping": "spatial_ref",
                "preferred_chunks": {"y": terrain.tile, "x": terrain.tile},
                "source": shown(terrain.path),
            },
        )
        dataset = xr.Dataset({"height": height}, coords=coordinates(terrain, level))
        dataset.set_close(terrain.close)
        dropped = [drop_variables] if isinstance(drop_variables, str) else drop_variables
        return dataset.drop_vars(dropped or [], errors="ignore")


def coordinates(terrain: Terrain, level: int) -> dict[str, xr.Variable]:
    """Coordinates of pixel centres, where rows and columns run along the axes, and the system."""
    rows, columns = terrain.levels[level]
    a, b, c, d, e, f = terrain.level_transform(level)
    found: dict[str, xr.Variable] = {}
    if b == 0.0 and d == 0.0:
        x = xr.Variable("x", c + a * (np.arange(columns) + 0.5))
        y = xr.Variable("y", f + e * (np.arange(rows) + 0.5))
        names = ("projection_x_coordinate", "projection_y_coordinate")
        if terrain.crs is not None and _is_geographic(terrain.crs):
            names = ("longitude", "latitude")
        for variable, axis, name in ((x, "X", names[0]), (y, "Y", names[1])):
            variable.attrs = {"axis": axis, "standard_name": name}
        found = {"x": x, "y": y}
    attributes: dict[str, Any] = {
        "GeoTransform": " ".join(repr(float(value)) for value in (c, a, b, f, d, e))
    }
    if terrain.crs is not None:
        attributes |= _system(terrain.crs)
    found["spatial_ref"] = xr.Variable((), 0, attributes)
    return found


def _system(name: str) -> dict[str, Any]:
    """A system as CF conventions have it, where pyproj is there, which rioxarray needs too."""
    try:
        from pyproj import CRS
    except ImportError:
        return {"spatial_ref": name, "crs_wkt": name}
    crs = CRS.from_user_input(name)
    wkt = crs.to_wkt()
    with warnings.catch_warnings():
        # What CF's parameters cannot say is in the WKT.
        warnings.simplefilter("ignore")
        return {**crs.to_cf(), "spatial_ref": wkt, "crs_wkt": wkt}


def _is_geographic(name: str) -> bool:
    try:
        from pyproj import CRS
    except ImportError:
        return False
    return bool(CRS.from_user_input(name).is_geographic)
