"""terrane files in rasterio through the plugin that pyterrane registers.

Usage: TERRANE=<the program> python3 in_rasterio.py <folder of plugins>

Needs rasterio and numpy; pyterrane may be installed, or is taken from this repository.
"""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import rasterio
import rasterio.shutil
from rasterio.enums import Resampling
from rasterio.windows import Window

REPOSITORY = Path(__file__).resolve().parents[2]
DATA = REPOSITORY.parent / "shared" / "data"
TERRANE = os.environ.get("TERRANE", "terrane")


def registration():
    """`pyterrane.gdal`, which needs nothing of the compiled package."""
    path = REPOSITORY / "crates/terrane-python/python/pyterrane/gdal.py"
    spec = importlib.util.spec_from_file_location("pyterrane_gdal", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def check(condition: bool, what: str) -> None:
    if not condition:
        raise AssertionError(what)


def main() -> None:
    gdal = registration()
    plugins = Path(sys.argv[1])
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        # Without a plugin, or with one of another version, the sentence says what is needed.
        minor = ".".join(rasterio.__gdal_version__.split(".")[:2])
        others = [path for path in plugins.glob("*/gdal_TRN.so") if path.parent.name != minor]
        for wrong in [folder, *others]:
            try:
                gdal.register(wrong)
                check(False, f"{wrong} was registered")
            except gdal.NoPluginError as error:
                check(f"needs a plugin built for GDAL {minor}" in str(error), str(error))
        if not (plugins / minor / "gdal_TRN.so").exists():
            print(f"skipped: rasterio {rasterio.__version__} needs a plugin for GDAL {minor}")
            return
        path = gdal.register(plugins)
        check(gdal.register(plugins) == path, "registering again")
        raster = DATA / "m1_si_tm1_564_146.tif"
        if not raster.exists():
            print("skipped: a real raster; a made one is used")
            raster = folder / "made.tif"
            y, x = np.mgrid[0:700, 0:900]
            heights = (500 + 40 * np.sin(x / 30) * np.cos(y / 50)).astype("float32")
            with rasterio.open(raster, "w", driver="GTiff", width=900, height=700, count=1, dtype="float32", crs="EPSG:2056",
                               transform=rasterio.Affine(1, 0, 2600000, 0, -1, 1200000)) as out:
                out.write(heights, 1)
        trn, tif, copy = folder / "dem.trn", folder / "dem.tif", folder / "copy.trn"
        subprocess.run([TERRANE, "encode", raster, trn, "--max-error", "0.1"], check=True, capture_output=True)
        subprocess.run([TERRANE, "decode", trn, tif], check=True, capture_output=True)
        with rasterio.open(trn) as ours, rasterio.open(tif) as theirs:
            check(ours.driver == "TRN" and ours.crs == theirs.crs and ours.transform == theirs.transform, "profile")
            check(ours.dtypes == theirs.dtypes and ours.nodata == theirs.nodata, "type")
            check(bool(np.array_equal(ours.read(1), theirs.read(1))), "values of terrane decode")
            check(bool(np.array_equal(ours.read_masks(1), theirs.read_masks(1))), "mask")
            window = Window(100, 200, 50, 40)
            check(bool(np.array_equal(ours.read(1, window=window), theirs.read(1, window=window))), "window")
            overviews = ours.overviews(1)
            check(overviews[:1] == [2], str(overviews))
            small = ours.read(1, out_shape=(ours.height // 4, ours.width // 4), resampling=Resampling.average)
            check(small.shape == (ours.height // 4, ours.width // 4), "smaller")
        with rasterio.open(raster) as source:
            profile = source.profile
            rasterio.shutil.copy(source, copy, driver="TRN", MAX_Z_ERROR=0.1)
        with rasterio.open(copy) as made:
            error = float(np.abs(made.read(1, masked=True) - rasterio.open(raster).read(1, masked=True)).max())
            check(error <= 0.1 + 1e-4 and made.crs == profile["crs"], f"a copy {error} m off")
        print(f"ok rasterio {rasterio.__version__} with GDAL {rasterio.__gdal_version__}: {Path(path).name} of {minor}, overviews {overviews}, "
              f"a copy within {error:.4f} m")
    print("all of it holds")


if __name__ == "__main__":
    main()
