"""Rasters for the tests of the GDAL driver: real ones where the data is there, and made ones for what they lack."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
from osgeo import gdal, osr

gdal.UseExceptions()

REPOSITORY = Path(__file__).resolve().parents[2]
DATA = REPOSITORY.parent / "shared" / "data"
# Nodata, geographic, 16-bit integers, no system, a system without a code, and the largest of few tiles.
REAL = [
    "m1_si_tm1_564_146.tif",
    "m05_us_nv_tahoe.tif",
    "m30_eu_sonny_n67e022.tif",
    "m1_gb_london_barbican.tif",
    "m1_mars_mmgis_test.tif",
    "m1_us_ky_wolf_creek.tif",
]


def hills(width: int, height: int) -> np.ndarray:
    """Hills with a gap."""
    y, x = np.mgrid[0:height, 0:width].astype(float)
    heights = 800 + 90 * np.sin(x / 47) * np.cos(y / 31) + 15 * np.sin((x + 2 * y) / 9)
    heights[height // 3 : height // 2, width // 4 : width // 3] = np.nan
    return heights


def made(path: Path, *, kind: int, epsg: str, nodata: float | None, point: bool = False, scale: float = 1.0, offset: float = 0.0,
         unit: str = "", transform: tuple[float, ...] = (2600000, 2, 0, 1200000, 0, -2)) -> Path:
    """A GeoTIFF of hills."""
    heights = hills(701, 467)
    numbers = (heights / (0.3048 if unit == "ft" else 1.0) - offset) / scale
    if nodata is None:
        numbers = np.where(np.isnan(numbers), 800, numbers)
    else:
        numbers = np.where(np.isnan(numbers), nodata, numbers)
    dataset = gdal.GetDriverByName("GTiff").Create(str(path), 701, 467, 1, kind, ["TILED=YES", "GEOTIFF_VERSION=1.1"])
    system = osr.SpatialReference()
    system.SetFromUserInput(epsg)
    dataset.SetSpatialRef(system)
    dataset.SetGeoTransform(transform)
    band = dataset.GetRasterBand(1)
    if nodata is not None:
        band.SetNoDataValue(nodata)
    if scale != 1.0 or offset != 0.0:
        band.SetScale(scale)
        band.SetOffset(offset)
    if unit:
        band.SetUnitType(unit)
    band.SetDescription("bare earth")
    if point:
        dataset.SetMetadataItem("AREA_OR_POINT", "Point")
    if kind != gdal.GDT_Float32 and kind != gdal.GDT_Float64:
        numbers = np.round(numbers)
    band.WriteArray(numbers)
    dataset = None
    return path


def all_of(folder: Path) -> list[Path]:
    """Every raster that there is to test with."""
    found = [DATA / name for name in REAL if (DATA / name).exists()]
    if not found:
        print(f"skipped: real rasters, since {DATA.name} is not there")
    return found + [
        made(folder / "compound.tif", kind=gdal.GDT_Float32, epsg="EPSG:2056+5728", nodata=-9999.0),
        made(folder / "point.tif", kind=gdal.GDT_Float32, epsg="EPSG:4326", nodata=-9999.0, point=True,
             transform=(9.0, 1 / 3600, 0, 47.0, 0, -1 / 3600)),
        made(folder / "feet.tif", kind=gdal.GDT_Float64, epsg="EPSG:2264+6360", nodata=-9999.0, unit="ft"),
        made(folder / "nan.tif", kind=gdal.GDT_Float32, epsg="EPSG:25832", nodata=math.nan),
        made(folder / "scaled.tif", kind=gdal.GDT_UInt16, epsg="EPSG:25832", nodata=65535, scale=0.1, offset=-100.0),
        made(folder / "custom.tif", kind=gdal.GDT_Float32, epsg="+proj=tmerc +lat_0=1 +lon_0=9.5 +k=0.9996 +x_0=1000 +ellps=bessel +units=m",
             nodata=None),
    ]


def values(source: str | Path | gdal.Dataset) -> np.ndarray:
    """The numbers of the first band, NaN where its mask says that there is no data."""
    dataset = source if isinstance(source, gdal.Dataset) else gdal.Open(str(source))
    band = dataset.GetRasterBand(1)
    return np.where(band.GetMaskBand().ReadAsArray() == 0, np.nan, band.ReadAsArray().astype(float))


def same(one: np.ndarray, other: np.ndarray) -> bool:
    return one.shape == other.shape and bool(np.array_equal(one, other, equal_nan=True))
