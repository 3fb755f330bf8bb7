"""Elevation rasters as compact terrane files, with a guaranteed error and analytic derivatives.

>>> import pyterrane
>>> report = pyterrane.encode("dem.tif", "alps.trn", max_error=0.1)
>>> report.max_error_m <= 0.1
True
>>> terrain = pyterrane.open("alps.trn")                    # lazy; also https:// and s3://
>>> terrain.shape, terrain.crs
((280, 300), 'EPSG:2056+5728')
>>> heights = terrain.read()                              # NaN where there is no data
>>> x, y = terrain.xy(140, 150)                           # the centre of a pixel
>>> bool(abs(terrain.height(x, y) - heights[140, 150]) < 1e-3)
True
>>> bool(0 <= terrain.slope(x, y) < 90)                   # degrees, of the continuous surface
True

``xarray.open_dataset("alps.trn", engine="terrane")`` opens a file lazily, for rioxarray and dask;
``rasterio.open("alps.trn", opener=pyterrane.opener)`` reads it as a GeoTIFF, without a plugin of GDAL. ``pyterrane.zarr``
has a codec for Zarr, ``pyterrane.shards`` encodes in independent pieces, ``pyterrane.ray`` and ``pyterrane.dask`` spread them.
"""

from pyterrane._change import Change, diff
from pyterrane._convert import Report, decode, derive, encode, info, repair, verify
from pyterrane._opener import TiffFile, opener
from pyterrane._pyterrane import TerraneError, __version__, has_networks
from pyterrane._terrain import Contour, Terrain, open

__all__ = [
    "Change",
    "Contour",
    "Report",
    "Terrain",
    "TerraneError",
    "TiffFile",
    "__version__",
    "decode",
    "derive",
    "diff",
    "encode",
    "has_networks",
    "info",
    "open",
    "opener",
    "repair",
    "verify",
]
