"""Elevation rasters as compact neural terrain files, with a guaranteed error and analytic derivatives.

>>> import terrane
>>> report = terrane.encode("dem.tif", "alps.trn", max_error=0.1)
>>> report.max_error_m <= 0.1
True
>>> terrain = terrane.open("alps.trn")                    # lazy; also https:// and s3://
>>> terrain.shape, terrain.crs
((280, 300), 'EPSG:2056+5728')
>>> heights = terrain.read()                              # NaN where there is no data
>>> x, y = terrain.xy(140, 150)                           # the centre of a pixel
>>> bool(abs(terrain.height(x, y) - heights[140, 150]) < 1e-3)
True
>>> bool(0 <= terrain.slope(x, y) < 90)                   # degrees, of the continuous surface
True

``xarray.open_dataset("alps.trn", engine="terrane")`` opens a file lazily, for rioxarray and dask; ``terrane.zarr``
has a codec for Zarr, ``terrane.shards`` encodes in independent pieces, ``terrane.ray`` and ``terrane.dask`` spread them.
"""

from terrane._convert import Report, decode, encode, info, verify
from terrane._terrain import Terrain, open
from terrane._terrane import TerraneError, __version__

__all__ = [
    "Report",
    "Terrain",
    "TerraneError",
    "__version__",
    "decode",
    "encode",
    "info",
    "open",
    "verify",
]
