"""A country of 41,000 km² at 1 m: how long its plan takes and how large it is, and how long its shards take to merge.

The rasters are empty, a square kilometre each. The shards are made up: records of random bytes of a real length, and smooth heights for the
coarse levels, which the merge really encodes. Needs rasterio and google-crc32c:

    python3 tools/country.py path/to/terrane FOLDER [WIDTH_KM HEIGHT_KM]
"""

import hashlib
import json
import os
import resource
import struct
import subprocess
import sys
import time
from pathlib import Path

import google_crc32c
import numpy as np
import rasterio
from rasterio.transform import from_origin

WEST, NORTH = 2_480_000.0, 1_300_000.0
#: Bytes of the record of a tile of 512 pixels across at 0.1 m: half a bit per pixel.
RECORD = 16_384


def is_land(x, y):
    """An ellipse that fills its box of one by one."""
    return (x - 0.5) ** 2 + (y - 0.5) ** 2 <= 0.25


def make_rasters(folder: Path, width: int, height: int) -> list[str]:
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
    for row in range(height):
        for column in range(width):
            if is_land((column + 0.5) / width, (row + 0.5) / height):
                path = folder / f"{column:03}_{row:03}.tif"
                moved = struct.pack("<6d", 0, 0, 0, WEST + 1000 * column, NORTH - 1000 * row, 0)
                path.write_bytes(data.replace(place, moved))
                names.append(path.name)
    return names


def halved(size: int, times: int) -> int:
    """A size after so many halvings, rounded up."""
    return -(-size // (1 << times))


def make_shards(plan_file: Path, folder: Path) -> int:
    """Shards of a plan as the command writes them; their bytes in all."""
    plan = json.loads(plan_file.read_text())
    compact = json.dumps(plan, separators=(",", ":"), ensure_ascii=False)
    identity = hashlib.sha256(compact.encode()).digest()
    width, height = plan["header"]["pyramid"]["width"], plan["header"]["pyramid"]["height"]
    side, top = plan["header"]["pyramid"]["side"], plan["division"]["top"]
    grids = [(-(-halved(width, level) // side), -(-halved(height, level) // side))
             for level in range(plan["header"]["pyramid"]["levels"])]
    firsts = np.cumsum([0] + [columns * rows for columns, rows in grids])
    noise = np.random.default_rng(1).bytes(RECORD - 4)
    folder.mkdir(exist_ok=True)
    for shard, area in enumerate(plan["division"]["areas"]):
        head = b"\x89TRS\r\n\x1a\n" + struct.pack("<II", 1, shard) + identity
        index = bytearray()
        with open(folder / f"shard-{shard:06}.trs", "wb") as file:
            file.write(head)
            for level in range(top + 1):
                for row in range(area["row"] >> level, halved(area["row"] + area["rows"], level)):
                    for column in range(area["column"] >> level, halved(area["column"] + area["columns"], level)):
                        across = side << level
                        if not is_land((column + 0.5) * across / width, (row + 0.5) * across / height):
                            continue
                        number = int(firsts[level]) + row * grids[level][0] + column
                        checksum = google_crc32c.value(struct.pack("<Q", number) + noise)
                        file.write(struct.pack("<I", checksum) + noise)
                        index += struct.pack("<QQQ4d", number, RECORD, side * side, 1.0, 0.1, 200.0, 4600.0)
            left, above, pixel = area["column"] * side, area["row"] * side, 1 << (top + 1)
            rows = halved(min(area["rows"] * side, height - above), top + 1)
            columns = halved(min(area["columns"] * side, width - left), top + 1)
            y, x = np.mgrid[0:rows, 0:columns]
            x, y = left + (x + 0.5) * pixel, above + (y + 0.5) * pixel
            heights = 2000 + 900 * np.sin(x / 9000) * np.cos(y / 7000)
            heights += 40 * (np.sin(x / 130) * np.sin(y / 170) + np.sin(x * y / 1e6))
            heights = np.where(is_land(x / width, y / height), heights, np.nan).astype("<f8").tobytes()
            tail = struct.pack("<QQ", len(index) // 56, rows * columns)
            tail += hashlib.sha256(head + index + heights + tail).digest()
            file.write(index + heights + tail)
    return sum(path.stat().st_size for path in folder.iterdir())


def index_bytes(path: Path) -> int:
    """Bytes of all pages of a file's index."""
    with open(path, "rb") as file:
        head = file.read(16_384)
    start = head.index(b"ROOT")
    count = struct.unpack_from("<I", head, start + 4)[0] // 16
    return sum(struct.unpack_from("<QII", head, start + 8 + 16 * page)[1] for page in range(count))


def timed(command: list, folder: Path) -> str:
    """Runs a command; its seconds and the most memory of any so far."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    start = time.monotonic()
    subprocess.run(command, cwd=folder, check=True)
    took, after = time.monotonic() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    cores = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return f"{took:.1f} s, {cores:.1f} s of cores, {after.ru_maxrss / 1024:.0f} MB"


def main() -> None:
    """Prints what was measured."""
    command, folder = Path(sys.argv[1]).absolute(), Path(sys.argv[2])
    width, height = (int(value) for value in sys.argv[3:5]) if len(sys.argv) > 4 else (350, 150)
    folder.mkdir(parents=True, exist_ok=True)
    names = make_rasters(folder, width, height)
    figures = timed([command, "shard", "plan", *names, "plan.json", "--overwrite"], folder)
    print(f"plan of {len(names)} rasters: {figures}, {os.path.getsize(folder / 'plan.json')} bytes")
    size = make_shards(folder / "plan.json", folder / "plan.shards")
    merge = [command, "shard", "merge", "plan.json", "country.trn", "--overwrite", "--progress", "none"]
    figures = timed(merge, folder)
    print(f"merge of {size} bytes: {figures}, index of {index_bytes(folder / 'country.trn')} bytes")


if __name__ == "__main__":
    main()
