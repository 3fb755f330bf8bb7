"""Checks rasters that the test `written_cogs_for_gdal` wrote: valid COGs for rio-cogeo, and the same pixels for GDAL.

    python check_cogs.py FOLDER      (needs rasterio, rio-cogeo, numpy)
"""
import pathlib
import sys

import numpy as np
import rasterio
from rio_cogeo.cogeo import cog_validate

folder = pathlib.Path(sys.argv[1])
heights = np.fromfile(folder / "heights.f64").reshape(900, 1300)
SWISS = (1.0, 0.0, 2600000.0, 0.0, -1.0, 1200000.0)
PLACE = {
    "slope": ("EPSG:2056", SWISS),
    "hillshade": ("EPSG:2056", SWISS),
    "rotated": ("EPSG:32632", (1.0, 0.3, 500000.0, 0.2, -1.0, 5000000.0)),
    "geographic": ("EPSG:7844", (1e-5, 0.0, 8.0, 0.0, -1e-5, 47.0)),
    "projected4647": ("EPSG:4647", (1.0, 0.0, 32500000.0, 0.0, -1.0, 5000000.0)),
}
# GDAL gives a band that states no unit that of the vertical system.
UNIT = {"centimetres": "m", "slope": "degree", "hillshade": "", "rotated": "", "geographic": "", "projected4647": ""}
files = sorted(folder.glob("*.tif"))
assert len(files) == 9, files
for path in files:
    valid, errors, warnings = cog_validate(path, strict=True)
    assert valid and not errors and not warnings, (path.name, errors, warnings)
    with rasterio.open(path) as raster:
        assert raster.tags(ns="IMAGE_STRUCTURE")["LAYOUT"] == "COG", path.name
        assert raster.overviews(1) == [2, 4, 8], (path.name, raster.overviews(1))
        crs, transform = PLACE.get(path.stem, ("EPSG:2056+5728", SWISS))
        assert raster.crs == rasterio.CRS.from_user_input(crs), (path.name, raster.crs)
        assert tuple(raster.transform)[:6] == transform, (path.name, raster.transform)
        read = raster.read(1, masked=True)
        z = read.data * raster.scales[0] + raster.offsets[0]
        missing = np.isnan(heights)
        assert (np.ma.getmaskarray(read) == missing).all(), path.name
        bound = 0.005 + 1e-9 if path.stem == "centimetres" else 0.0
        worst = np.abs(z - heights)[~missing].max()
        assert worst <= bound, (path.name, worst)
        if path.stem == "centimetres":
            assert (raster.scales, raster.offsets, raster.units, raster.descriptions) == ((0.01,), (100.0,), ("m",), ("height",))
        assert (raster.units[0] or "") == UNIT.get(path.stem, "metre"), (path.name, raster.units)
    print(f"{path.name}: valid COG, same pixels (largest difference {worst:g} m)")
