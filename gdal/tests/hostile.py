"""Damaged and hostile files in GDAL: an error or a picture, never a crash.

Usage: GDAL_DRIVER_PATH=<folder of plugins> python3 hostile.py [changes per file, 200 without it] [first seed]

Every golden file, and two that are made here, is cut short, has bytes flipped, overwritten and repeated, also in its head with the checksum made right
again; each is opened, described, and read at all levels. A crash ends this program with a signal, which whoever runs it sees.
"""

from __future__ import annotations

import random
import struct
import sys
from pathlib import Path

from osgeo import gdal

from rasters import made

gdal.UseExceptions()
GOLDEN = sorted((Path(__file__).resolve().parents[2] / "conformance").glob("*/input.trn"))
# No more pixels of a level than this are read.
MOST = 4 << 20


def crc32c(data: bytes) -> int:
    value = 0xFFFFFFFF
    for byte in data:
        value ^= byte
        for _ in range(8):
            value = (value >> 1) ^ (0x82F63B78 if value & 1 else 0)
    return value ^ 0xFFFFFFFF


def changed(data: bytes, random_: random.Random) -> bytes:
    kind = random_.randrange(6)
    out = bytearray(data)
    if kind == 0:
        return data[: random_.randrange(len(data))]
    if kind == 1:
        for _ in range(random_.randrange(1, 9)):
            out[random_.randrange(len(out))] ^= 1 << random_.randrange(8)
    elif kind == 2:
        start = random_.randrange(len(out))
        for index in range(start, min(len(out), start + random_.randrange(1, 64))):
            out[index] = random_.randrange(256)
    elif kind == 3:
        # The head with a right checksum: what a hostile writer would make.
        (length,) = struct.unpack_from("<H", out, 10)
        if 24 < length <= len(out):
            for _ in range(random_.randrange(1, 4)):
                at = random_.randrange(14, length - 4)
                width = random_.choice((1, 2, 4, 8))
                value = random_.choice((0, 1, 0x7F, 0xFF, random_.randrange(256)))
                out[at : min(at + width, length - 4)] = bytes([value] * (min(at + width, length - 4) - at))
            struct.pack_into("<I", out, length - 4, crc32c(bytes(out[: length - 4])))
    elif kind == 4:
        start = random_.randrange(len(out))
        out += out[start:]
    else:
        out = bytearray(out[:8]) + bytearray(random_.randbytes(random_.randrange(4000)))
    return bytes(out)


def read(path: str) -> str:
    try:
        dataset = gdal.Open(path)
    except RuntimeError:
        return "refused"
    state = "read"
    try:
        gdal.Info(dataset, format="json")
    except (RuntimeError, ValueError):
        # A system that PROJ does not know, a transform of infinite numbers, which GDAL writes into its JSON.
        state = "odd"
    band = dataset.GetRasterBand(1)
    for level in [band] + [band.GetOverview(index) for index in range(band.GetOverviewCount())]:
        try:
            if level.XSize * level.YSize <= MOST:
                level.ReadAsArray()
            else:
                level.ReadAsArray(level.XSize // 2, level.YSize // 2, 1, 1)
        except (RuntimeError, MemoryError):
            state = "damaged"
    return state


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else 1
    if gdal.GetDriverByName("TRN") is None:
        sys.exit("the driver TRN is not there: set GDAL_DRIVER_PATH to the folder of plugins")
    files = {golden.parent.name: golden.read_bytes() for golden in GOLDEN}
    # Most bytes of golden files are their models; these two have none inside.
    for name, option in (("made-bound", "MAX_Z_ERROR=0.05"), ("made-lossless", "LOSSLESS=YES")):
        made(Path("/vsimem/made.tif"), kind=gdal.GDT_Float32, epsg="EPSG:2056", nodata=-9999.0)
        copy = gdal.GetDriverByName("TRN").CreateCopy("/vsimem/made.trn", gdal.Open("/vsimem/made.tif"), options=[option, "BLOCKSIZE=64"])
        copy = None
        file = gdal.VSIFOpenL("/vsimem/made.trn", "rb")
        files[name] = bytes(gdal.VSIFReadL(1, gdal.VSIStatL("/vsimem/made.trn").size, file))
        gdal.VSIFCloseL(file)
    total: dict[str, int] = {}
    for name, data in files.items():
        random_ = random.Random(f"{name} {seed}")
        found: dict[str, int] = {}
        for _ in range(count):
            gdal.FileFromMemBuffer("/vsimem/hostile.trn", changed(data, random_))
            state = read("/vsimem/hostile.trn")
            gdal.Unlink("/vsimem/hostile.trn")
            found[state] = found.get(state, 0) + 1
            total[state] = total.get(state, 0) + 1
        print(f"ok {name}: {found}", flush=True)
    if not total.get("refused") or not total.get("damaged"):
        sys.exit(f"these changes test nothing: {total}")
    print(f"all of it holds: {total} of {count * len(files)}")


if __name__ == "__main__":
    main()
