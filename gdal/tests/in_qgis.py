"""terrane files in QGIS without a screen: file filter, layer, identify, statistics, hillshade, and damaged files.

Usage: GDAL_DRIVER_PATH=<folder of plugins> TERRANE=<the program> python3 in_qgis.py [picture.png]

Needs python3-qgis. A real raster is used where it is there, a made one else.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import tempfile
from pathlib import Path

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

from osgeo import gdal
from qgis.core import (
    Qgis,
    QgsApplication,
    QgsHillshadeRenderer,
    QgsMapRendererParallelJob,
    QgsMapSettings,
    QgsPointXY,
    QgsProviderRegistry,
    QgsRaster,
    QgsRasterBandStats,
    QgsRasterLayer,
)
from qgis.PyQt.QtCore import QSize

from rasters import DATA, made

TERRANE = os.environ.get("TERRANE", "terrane")


def check(condition: bool, what: str) -> None:
    if not condition:
        raise AssertionError(what)


def run(*command: object) -> str:
    return subprocess.run([str(part) for part in command], check=True, capture_output=True, text=True).stdout


def main() -> None:
    picture = Path(sys.argv[1]) if len(sys.argv) > 1 else None
    QgsApplication.setPrefixPath("/usr", True)
    application = QgsApplication([], False)
    application.initQgis()
    print(f"QGIS {Qgis.QGIS_VERSION}, GDAL {gdal.VersionInfo('RELEASE_NAME')}")
    check("*.trn" in QgsProviderRegistry.instance().fileRasterFilters(), "the file filter has no *.trn")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        raster = DATA / "m1_si_tm1_564_146.tif"
        if not raster.exists():
            print("skipped: a real raster; a made one is used")
            raster = made(folder / "made.tif", kind=gdal.GDT_Float32, epsg="EPSG:2056", nodata=-9999.0)
        trn = folder / "dem.trn"
        run(TERRANE, "encode", raster, trn, "--max-error", 0.1)
        layer = QgsRasterLayer(str(trn), "dem")
        check(layer.isValid(), layer.error().message())
        provider = layer.dataProvider()
        info = json.loads(run(TERRANE, "info", trn, "--json"))
        check((layer.width(), layer.height()) == (info["width"], info["height"]), "size")
        check(layer.crs().authid() == f"EPSG:{info['horizontal_epsg']}", layer.crs().authid())

        # Identify gives the pixel, which the surface passes through.
        extent, worst = layer.extent(), 0.0
        random_ = random.Random(7)
        points = []
        while len(points) < 40:
            column, row = random_.randrange(layer.width()), random_.randrange(layer.height())
            x = extent.xMinimum() + (column + 0.5) * layer.rasterUnitsPerPixelX()
            y = extent.yMaximum() - (row + 0.5) * layer.rasterUnitsPerPixelY()
            found = provider.identify(QgsPointXY(x, y), QgsRaster.IdentifyFormatValue).results()[1]
            if found is not None:
                points.append((x, y, found))
        arguments = [part for x, y, _ in points for part in ("--at", f"{x:.6f},{y:.6f}")]
        answers = json.loads(run(TERRANE, "query", trn, *arguments, "--json"))
        for (_, _, found), answer in zip(points, answers, strict=True):
            worst = max(worst, abs(found - answer["height_m"]))
        check(worst < 0.001, f"identify is {worst} m off terrane query")

        statistics = provider.bandStatistics(1, QgsRasterBandStats.All)
        check(abs(statistics.minimumValue - info["lowest_m"]) < 0.001 and abs(statistics.maximumValue - info["highest_m"]) < 0.001,
              f"statistics {statistics.minimumValue} to {statistics.maximumValue}")
        pyramids = [level for level in provider.buildPyramidList() if level.getExists()]
        check(len(pyramids) >= 1, "no pyramids")

        layer.setRenderer(QgsHillshadeRenderer(provider, 1, 315, 45))
        settings = QgsMapSettings()
        settings.setLayers([layer])
        settings.setDestinationCrs(layer.crs())
        settings.setExtent(extent)
        settings.setOutputSize(QSize(600, 600 * layer.height() // layer.width()))
        job = QgsMapRendererParallelJob(settings)
        job.start()
        job.waitForFinished()
        image = job.renderedImage()
        check(not job.errors(), str(job.errors()))
        greys = {image.pixelColor(x, y).red() for x in range(0, 600, 7) for y in range(0, image.height(), 7)}
        check(len(greys) > 50, f"a hillshade of {len(greys)} greys")
        if picture:
            image.save(str(picture))
        print(f"ok layer, filter, {len(points)} identified within {worst * 1000:.4f} mm of terrane query, {len(pyramids)} pyramids, "
              f"{len(greys)} greys")

        # Damaged files are no layers, or layers with gaps.
        data = trn.read_bytes()
        valid = 0
        for turn in range(60):
            broken = bytearray(data[: random_.randrange(len(data))] if turn % 3 == 0 else data)
            for _ in range(turn % 5 * 3):
                broken[random_.randrange(len(broken))] ^= 1 << random_.randrange(8)
            path = folder / f"broken-{turn}.trn"
            path.write_bytes(broken)
            hurt = QgsRasterLayer(str(path), "broken")
            if hurt.isValid():
                valid += 1
                hurt.dataProvider().block(1, hurt.extent(), 200, 200)
                hurt.dataProvider().identify(hurt.extent().center(), QgsRaster.IdentifyFormatValue)
        check(0 < valid < 60, f"{valid} of 60 damaged files are layers")
        print(f"ok 60 damaged files: {60 - valid} refused, {valid} read as far as they are whole")
        layer = provider = hurt = None
    application.exitQgis()
    print("all of it holds")


if __name__ == "__main__":
    main()
