"""An open terrane file."""

from __future__ import annotations

import json
import os
from functools import cached_property
from html import escape
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from pyterrane._pyterrane import File, shown

#: The name of a file.
Path = str | os.PathLike[str]


def is_address(path: str) -> bool:
    """Whether a path is an address (https://…, s3://…) rather than a file of this machine."""
    return "://" in path


def location(path: Path) -> str:
    """A path that means the same in every folder, so that a file can be sent to another process."""
    text = os.fspath(path)
    return text if is_address(text) else os.path.abspath(text)


def check_whole(most: int = (1 << 16) - 1, **values: int | None) -> None:
    """Refuses numbers that no setting has, by the setting's name."""
    for name, value in values.items():
        if value is not None and not 0 <= value <= most:
            raise ValueError(f"`{name}` must be a whole number from 0 to {most}, not {value}")


def open(
    path: Path,
    *,
    model: Path | None = None,
    jobs: int | None = None,
    memory_limit: float | None = None,
    remote_timeout: float | None = None,
) -> Terrain:
    """Opens a terrane file of this machine or at an address (https://…, s3://…).

    Reads the head alone; tiles are fetched and decoded when they are needed. ``model`` is the file of its model, where it is
    neither in the file nor in this package; ``jobs`` is the number of threads, all cores without it; ``memory_limit`` the
    gigabytes that the file may take, half of what there is and 4.3 at most without it; ``remote_timeout`` is the number of
    seconds that a web server or a store may take for one read, 30 without it.

    >>> import pyterrane
    >>> with pyterrane.open("dem.trn") as terrain:
    ...     terrain.method, terrain.bound_m
    ('context', 0.1)
    """
    return Terrain(
        path, model=model, jobs=jobs, memory_limit=memory_limit, remote_timeout=remote_timeout
    )


class Contour(NamedTuple):
    """A contour line."""

    height: float
    """In metres."""
    is_index: bool
    """Whether it is one of those that maps draw bold."""
    points: NDArray[np.float64]
    """Points of the map, a row for each: x and y."""

    @property
    def closed(self) -> bool:
        """Whether it ends where it starts."""
        return len(self.points) > 3 and bool((self.points[0] == self.points[-1]).all())


class Terrain:
    """A terrane file: heights on its grid, and a continuous surface between them.

    >>> import pyterrane
    >>> terrain = pyterrane.open("dem.trn")
    >>> terrain
    <pyterrane.Terrain 'dem.trn': 300 x 280 pixels, EPSG:2056+5728, context, within 0.1 m>
    """

    def __init__(
        self,
        path: Path,
        *,
        model: Path | None = None,
        jobs: int | None = None,
        memory_limit: float | None = None,
        remote_timeout: float | None = None,
    ) -> None:
        check_whole(jobs=jobs)
        self.path = location(path)
        self._model = None if model is None else location(model)
        self._jobs = jobs
        self._limits = (memory_limit, remote_timeout)
        self._open: File | None = File(self.path, self._model, jobs, *self._limits)

    @property
    def _file(self) -> File:
        if self._open is None:
            raise ValueError("the file is closed")
        return self._open

    def limit_time(self, seconds: float | None) -> None:
        """From now on all work on the file together may take so many seconds, and then raises :class:`TerraneError`; None for any
        time. A file of a few megabytes may say that it has 10¹⁶ pixels."""
        self._file.limit_time(seconds)

    def close(self) -> None:
        """Closes the file and forgets its tiles."""
        self._open = None

    def __enter__(self) -> Terrain:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __reduce__(self) -> tuple[Any, ...]:
        # Another process opens the file again.
        return _reopen, (self.path, self._model, self._jobs, *self._limits)

    def __repr__(self) -> str:
        name = os.path.basename(shown(self.path))
        if self._open is None:
            return f"<pyterrane.Terrain {name!r}: closed>"
        rows, columns = self.shape
        parts = [f"{columns} x {rows} pixels", self.crs or "no CRS", self.method]
        if self.lossless:
            parts.append("lossless")
        elif self.bound_m is not None:
            parts.append(f"within {self.bound_m} m")
        return f"<pyterrane.Terrain {name!r}: {', '.join(parts)}>"

    def _repr_html_(self) -> str:
        """A table for notebooks."""
        rows: list[tuple[str, str]] = []
        if self._open is not None:
            height, width = self.shape
            low, high = self.info["lowest_m"], self.info["highest_m"]
            bound = "lossless" if self.lossless else f"{self.bound_m} m" if self.bound_m is not None else "none"
            rows = [
                ("pixels", f"{width} × {height}, {len(self.levels) - 1} overviews"),
                ("reference system", self.crs or "none with a code"),
                ("bounds", ", ".join(f"{value:.10g}" for value in self.bounds)),
                ("heights", "none" if low is None else f"{low:.10g} to {high:.10g} m"),
                ("guaranteed error", bound),
                ("measured error", f"{self.max_error_m:.4g} m at most, {self.rmse_m:.4g} m root mean square"),
                ("bytes", f"{self.info['bytes']:,}"),
            ]
        name = os.path.basename(shown(self.path)) + (" (closed)" if self._open is None else "")
        cells = "".join(f"<tr><th>{escape(key)}</th><td>{escape(value)}</td></tr>" for key, value in rows)
        return f"<table><caption>pyterrane.Terrain {escape(name)}</caption>{cells}</table>"

    @cached_property
    def info(self) -> dict[str, Any]:
        """All that the file says of itself, as ``terrane info --json`` prints it."""
        description: dict[str, Any] = json.loads(self._file.describe())
        return description

    def parts(self) -> dict[str, Any]:
        """Where the bytes of the file are, as ``terrane info --parts --json`` prints it; all of the file is read.

        Bytes of the head, the index, the model and, for all records and for each of ``levels``, of roots, details, residuals,
        masks, flat areas and framing. Together they are all ``bytes`` of the file.

        >>> import pyterrane
        >>> parts = pyterrane.open("dem.trn").parts()
        >>> parts["bytes"] == parts["head"] + parts["index"] + parts["model"] + sum(level["bytes"] for level in parts["levels"])
        True
        """
        parts: dict[str, Any] = json.loads(self._file.parts())
        return parts

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns at full resolution."""
        return self.info["height"], self.info["width"]

    @property
    def levels(self) -> list[tuple[int, int]]:
        """Rows and columns of full resolution and of each overview, every one half of the one before."""
        return [(height, width) for width, height in self.info["levels"]]

    @property
    def tile(self) -> int:
        """The side of a tile in pixels."""
        return int(self.info["tile"])

    @property
    def method(self) -> str:
        """How heights became symbols."""
        return str(self.info["method"])

    @property
    def dtype(self) -> np.dtype[Any]:
        """What :meth:`read` gives: the source's floats, and for integers floats as fine as they or the error bound need."""
        return np.dtype(self._file.dtype())

    @property
    def integers(self) -> tuple[np.dtype[Any], int | None] | None:
        """The type of the source's integers and their number for no data, if any, where the heights are exactly those.

        >>> import numpy as np, pyterrane
        >>> report = pyterrane.encode(np.full((20, 30), 7, "int16"), "seven.trn", lossless=True, overwrite=True)
        >>> terrain = pyterrane.open("seven.trn")
        >>> terrain.dtype, terrain.integers, terrain.read(dtype="int16").dtype
        (dtype('float32'), (dtype('int16'), None), dtype('int16'))
        """
        found = self._file.integer_dtype()
        return None if found is None else (np.dtype(found[0]), None if found[1] is None else int(found[1]))

    @property
    def crs(self) -> str | None:
        """The coordinate reference system, as ``EPSG:2056`` or, with a vertical one, ``EPSG:2056+5728``; ``None`` without a code."""
        name = str(self.info["crs"])
        return name if name.startswith("EPSG:") else None

    @property
    def transform(self) -> tuple[float, float, float, float, float, float]:
        """The transform from pixel corners, in the order of rasterio and ``affine.Affine``."""
        return self.level_transform(0)

    def level_transform(self, level: int) -> tuple[float, float, float, float, float, float]:
        """The transform of an overview."""
        self._check_level(level)
        a, b, c, d, e, f = self._file.transform(level)
        return a, b, c, d, e, f

    @property
    def bounds(self) -> tuple[float, float, float, float]:
        """Left, bottom, right and top."""
        rows, columns = self.shape
        a, b, c, d, e, f = self.transform
        corners = [(0, 0), (columns, 0), (0, rows), (columns, rows)]
        xs = [c + a * column + b * row for column, row in corners]
        ys = [f + d * column + e * row for column, row in corners]
        return min(xs), min(ys), max(xs), max(ys)

    @property
    def nodata(self) -> float | None:
        """The source's value of pixels without data; they are NaN here."""
        value: float | None = self.info["nodata"]
        return value

    @property
    def bound_m(self) -> float | None:
        """The guarantee: no valid pixel is farther off than so many metres. What was measured is :attr:`max_error_m`."""
        value: float | None = self.info["bound_m"]
        return value

    @property
    def lossless(self) -> bool:
        """Whether every height is the source's."""
        return bool(self.info["lossless"])

    @property
    def rmse_m(self) -> float:
        """The root mean square error that was measured when the file was made."""
        return float(self.info["rmse_m"])

    @property
    def max_error_m(self) -> float:
        """The greatest error in metres that was measured when the file was made; within :attr:`bound_m`."""
        return float(self.info["max_error_m"])

    def _check_level(self, level: int) -> None:
        if not 0 <= level < len(self.levels):
            raise IndexError(f"there is no level {level}: the last is {len(self.levels) - 1}")

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> NDArray[Any]:
        """All heights, as :meth:`read` gives them, for ``np.asarray(terrain)``.

        >>> import numpy as np, pyterrane
        >>> np.asarray(pyterrane.open("dem.trn")).shape
        (280, 300)
        """
        if copy is False:
            raise ValueError("the heights of a file are decoded, and never there without a copy")
        heights = self.read()
        return heights if dtype is None else heights.astype(dtype, copy=False)

    def xy(self, row: ArrayLike, column: ArrayLike) -> tuple[Any, Any]:
        """Map coordinates of the centres of pixels.

        >>> import pyterrane
        >>> pyterrane.open("dem.trn").xy(0, 0)
        (2600000.5, 1199999.5)
        """
        a, b, c, d, e, f = self.transform
        rows, columns = _numbers(row) + 0.5, _numbers(column) + 0.5
        return _plain(c + a * columns + b * rows), _plain(f + d * columns + e * rows)

    def read(
        self,
        bbox: tuple[float, float, float, float] | None = None,
        resolution: float | None = None,
        level: int = 0,
        dtype: DTypeLike | None = None,
    ) -> NDArray[np.floating[Any]]:
        """Heights in metres on a grid, NaN where there is no data.

        ``bbox`` is left, bottom, right, top in map units; ``resolution`` any pixel size in map units (finer ones sample the
        surface, coarser ones take means); ``level`` an overview instead. ``dtype`` is float32 or float64, and :attr:`dtype`
        without it; at full resolution it may be that of :attr:`integers` too, whose number for no data then stands for NaN.
        Beside the array, a few rows of tiles are in memory.

        >>> import pyterrane
        >>> terrain = pyterrane.open("dem.trn")
        >>> terrain.read(bbox=(2600010, 1199900, 2600050, 1199920), resolution=0.5).shape
        (40, 80)
        >>> terrain.read(level=1).shape
        (140, 150)
        """
        return self.grid(bbox, resolution, level, dtype)[0]

    def grid(
        self,
        bbox: tuple[float, float, float, float] | None = None,
        resolution: float | None = None,
        level: int = 0,
        dtype: DTypeLike | None = None,
    ) -> tuple[NDArray[np.floating[Any]], tuple[float, float, float, float, float, float]]:
        """As :meth:`read`, with the transform of the grid."""
        if resolution is not None and level:
            raise ValueError("give `resolution` or `level`")
        if bbox is not None:
            left, bottom, right, top = (float(value) for value in bbox)
            if not (left < right and bottom < top):
                raise ValueError("`bbox` must be left, bottom, right, top")
            bbox = left, bottom, right, top
        self._check_level(level)
        heights, (a, b, c, d, e, f) = self._file.read(bbox, resolution, level, _name(dtype))
        return heights, (a, b, c, d, e, f)

    def window(
        self,
        column: int,
        row: int,
        width: int,
        height: int,
        level: int = 0,
        dtype: DTypeLike | None = None,
    ) -> NDArray[np.floating[Any]]:
        """Heights of a window in pixels; what is asked for twice is decoded once, for a few tiles."""
        self._check_level(level)
        if min(column, row, width, height) < 0 or max(column, row, width, height) >= 1 << 32:
            raise ValueError(f"a window must be inside the raster, not {width}x{height} at column {column}, row {row} of level {level}")
        return self._file.window(level, (column, row), (width, height), _name(dtype))

    def derive(self, product: str, mode: str = "analytic") -> NDArray[np.float32]:
        """A product at every pixel, NaN where there is none.

        Products are "slope" and "aspect" in degrees, "hillshade" from 1 to 255, "laplacian", "profile-curvature" and
        "plan-curvature" in 1/m, and "tri", "tpi" and "roughness" in metres. The ``mode`` "analytic" takes them from the continuous
        surface, where they have one there, and "grid" from pixels, as gdaldem does.

        >>> import pyterrane
        >>> slope = pyterrane.open("dem.trn").derive("slope")
        >>> slope.shape, slope.dtype
        ((280, 300), dtype('float32'))
        """
        return self._file.derive(product, mode)

    def contours(
        self,
        interval: float,
        *,
        base: float = 0.0,
        bbox: tuple[float, float, float, float] | None = None,
        level: int = 0,
        min_length: float = 0.0,
        index: int = 5,
    ) -> list[Contour]:
        """Contour lines of the continuous surface, ``interval`` metres apart, counted from ``base``.

        A line has its height, whether it is an index line, which every fifth is (every ``index``-th, 0 for none), and an array of
        points of the map, x and y, with the higher ground on the right. A closed line ends with its first point; others end at
        the edge of the raster, of the ``bbox`` or of the data. ``level`` takes the coarser surface of an overview; lines
        shorter than ``min_length`` metres on the ground are left out.

        >>> import pyterrane
        >>> terrain = pyterrane.open("dem.trn")
        >>> line = terrain.contours(10, min_length=100)[0]
        >>> line.points.shape[1], float(line.height) % 10
        (2, 0.0)
        >>> bool(abs(terrain.height(*line.points[5]) - line.height) < 1e-3)
        True
        """
        self._check_level(level)
        check_whole(index=index)
        lines = self._file.contours((interval, base), bbox, level, min_length, index)
        return [Contour(*line) for line in lines]

    def _sample(self, name: str, x: ArrayLike, y: ArrayLike) -> Any:
        xs, ys = np.broadcast_arrays(_numbers(x), _numbers(y))
        values = self._file.sample(name, xs.ravel(), ys.ravel())
        return _plain(values.reshape(xs.shape))

    def height(self, x: ArrayLike, y: ArrayLike) -> Any:
        """Heights of the surface in metres at map coordinates: numbers or arrays, NaN where there is no data.

        >>> import numpy as np, pyterrane
        >>> terrain = pyterrane.open("dem.trn")
        >>> terrain.height(np.array([2600100.0, 0.0]), 1199900.0).shape
        (2,)
        >>> bool(np.isnan(terrain.height(0.0, 0.0)))
        True
        """
        return self._sample("height", x, y)

    def slope(self, x: ArrayLike, y: ArrayLike) -> Any:
        """Slopes in degrees, analytic."""
        return self._sample("slope", x, y)

    def aspect(self, x: ArrayLike, y: ArrayLike) -> Any:
        """Where the ground falls to, in degrees clockwise from north; NaN where it is level."""
        return self._sample("aspect", x, y)

    def gradient(self, x: ArrayLike, y: ArrayLike) -> tuple[Any, Any]:
        """Metres of height per metre to the east and to the north."""
        return self._sample("gradient_east", x, y), self._sample("gradient_north", x, y)

    def laplacian(self, x: ArrayLike, y: ArrayLike) -> Any:
        """The sum of the second derivatives in 1/m, positive where the ground is hollow."""
        return self._sample("laplacian", x, y)

    def profile_curvature(self, x: ArrayLike, y: ArrayLike) -> Any:
        """Curvature along the slope in 1/m, positive where the ground is convex."""
        return self._sample("profile_curvature", x, y)

    def plan_curvature(self, x: ArrayLike, y: ArrayLike) -> Any:
        """Curvature of contour lines in 1/m, positive where the ground is convex; NaN where it is level."""
        return self._sample("plan_curvature", x, y)


def _reopen(
    path: str,
    model: str | None,
    jobs: int | None,
    memory_limit: float | None,
    remote_timeout: float | None,
) -> Terrain:
    return Terrain(
        path, model=model, jobs=jobs, memory_limit=memory_limit, remote_timeout=remote_timeout
    )


def _name(dtype: DTypeLike | None) -> str | None:
    return None if dtype is None else np.dtype(dtype).name


def _numbers(values: ArrayLike) -> NDArray[np.float64]:
    return np.asarray(values, dtype=np.float64)


def _plain(values: NDArray[np.float64]) -> Any:
    """A number for a number, an array for an array."""
    return float(values) if np.ndim(values) == 0 else values
