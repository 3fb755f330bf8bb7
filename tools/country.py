"""A country of 41,000 km² at 1 m as empty rasters of a square kilometre each: how long its plan takes, and how large it is.

Needs rasterio and the command: python3 tools/country.py path/to/terrane FOLDER
"""

import os
import resource
import struct
import subprocess
import sys
import time
from pathlib import Path

import rasterio
from rasterio.transform import from_origin

WIDTH_KM, HEIGHT_KM = 350, 150
WEST, NORTH = 2_480_000.0, 1_300_000.0


def is_land(column: int, row: int) -> bool:
    """An ellipse that fills its box."""
    x, y = (column + 0.5) / WIDTH_KM - 0.5, (row + 0.5) / HEIGHT_KM - 0.5
    return x * x + y * y <= 0.25


def make(folder: Path) -> list[str]:
    """Rasters without blocks, all but their place the same."""
    template = folder / "template.tif"
    profile = dict(driver="GTiff", width=1000, height=1000, count=1, dtype="float32", nodata=-9999, crs="EPSG:2056",
                   transform=from_origin(WEST, NORTH, 1, 1), tiled=True, compress="deflate", predictor=3, SPARSE_OK=True)
    with rasterio.open(template, "w", **profile):
        pass
    data = template.read_bytes()
    place = struct.pack("<6d", 0, 0, 0, WEST, NORTH, 0)
    assert data.count(place) == 1
    names = []
    for row in range(HEIGHT_KM):
        for column in range(WIDTH_KM):
            if is_land(column, row):
                path = folder / f"{column:03}_{row:03}.tif"
                moved = struct.pack("<6d", 0, 0, 0, WEST + 1000 * column, NORTH - 1000 * row, 0)
                path.write_bytes(data.replace(place, moved))
                names.append(path.name)
    return names


def main() -> None:
    """Prints what was measured."""
    command, folder = Path(sys.argv[1]).absolute(), Path(sys.argv[2])
    folder.mkdir(parents=True, exist_ok=True)
    names = make(folder)
    start = time.monotonic()
    subprocess.run([command, "shard", "plan", *names, "plan.json", "--overwrite"], cwd=folder, check=True)
    took = time.monotonic() - start
    memory = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    print(f"{len(names)} rasters planned in {took:.1f} s and {memory:.0f} MB; "
          f"the plan has {os.path.getsize(folder / 'plan.json')} bytes")


if __name__ == "__main__":
    main()
