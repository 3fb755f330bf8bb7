"""Compares what the test `derivatives_for_gdal` derived from rasters with what gdaldem derives from the same files.

    python check_derivatives.py FOLDER      (needs rasterio, numpy, and gdaldem: Debian's gdal-bin)

gdaldem adds heights in single precision, and so do we, in the same order: results must agree to a few units in the last
place of a float32, whatever the heights.
"""
import collections
import pathlib
import shutil
import subprocess
import sys

import numpy as np
import rasterio

ROUNDING = 2.0**-24  # the largest relative error of one operation in single precision
RELATIVE = 8 * ROUNDING  # of a result: its own rounding and gdaldem's functions
SHADE = 1e-3  # of 255; gdaldem takes an approximate root
MODES = {"slope": "slope", "aspect": "aspect", "hillshade": "hillshade", "tri": "TRI", "tpi": "TPI", "roughness": "roughness"}


def windows(z):
    """The nine heights around each pixel, row by row; missing beyond the edge."""
    padded = np.pad(z, 1, constant_values=np.nan)
    return [padded[r : r + z.shape[0], c : c + z.shape[1]] for r in range(3) for c in range(3)]


def bounds(z, cell, exact):
    """What each product may differ by, the shade before rounding, and where gdaldem may take ground as level."""
    n = windows(z)
    largest = np.max(np.abs(n), axis=0)
    # Two sums of four terms, three roundings each, none of more than four heights; then one difference.
    error = 0.0 if exact else 24 * largest * ROUNDING
    east = (n[2] + 2 * n[5] + n[8]) - (n[0] + 2 * n[3] + n[6])
    north = (n[0] + 2 * n[1] + n[2]) - (n[6] + 2 * n[7] + n[8])
    p, q = east / (8 * cell[0]), north / (8 * cell[1])
    root = np.sqrt(1 + p * p + q * q)
    off = error * np.hypot(1 / cell[0], 1 / cell[1]) / 8
    steep, turned = np.hypot(east, north), np.sqrt(2) * error
    with np.errstate(divide="ignore", invalid="ignore"):
        turn = np.where(steep > turned, np.degrees(np.arcsin(np.minimum(1, turned / steep))), 180.0)
    tri = np.sqrt(sum((m - z) ** 2 for m in n))
    return (
        {
            "slope": RELATIVE * np.degrees(np.arctan(np.hypot(p, q))) + np.degrees(off) + 1e-9,
            "aspect": RELATIVE * 450 + turn,
            "hillshade": SHADE + 254 * 2 * off,
            "tri": RELATIVE * tri,
            # Seven additions of up to eight heights, divided by eight, and a difference.
            "tpi": RELATIVE * np.abs(z - (sum(n) - z) / 8) + (0.0 if exact else 8 * largest * ROUNDING),
            "roughness": RELATIVE * (np.max(n, axis=0) - np.min(n, axis=0)),
        },
        1 + 254 * np.maximum(0, (np.sqrt(0.5) + p / 2 - q / 2) / root),
        steep <= turned,
    )


folder = pathlib.Path(sys.argv[1])
if shutil.which("gdaldem") is None:
    sys.exit("gdaldem is not installed; on Debian it is in the package gdal-bin")
print(subprocess.run(["gdaldem", "--version"], capture_output=True, text=True).stdout.splitlines()[0])
files = sorted(folder.glob("*.tif"))
assert len(files) >= 5, files
if not any(path.name.startswith("real_") for path in files):
    print("skipped: no real data beside the project")
worst = collections.defaultdict(float)
shades = collections.Counter()
for path in files:
    with rasterio.open(path) as raster:
        z = raster.read(1, masked=True).astype("float64").filled(np.nan)
        metres = 111120.0 if raster.crs and raster.crs.is_geographic else 1.0
        cell = (raster.transform.a * metres, -raster.transform.e * metres)
    heights = z[~np.isnan(z)]
    exact = bool((heights * 64 % 1 == 0).all() and np.abs(heights).max() < 2**15)
    kind = ("real" if path.name.startswith("real_") else "generated") + (", exact sums" if exact else ", rounded sums")
    allowed, unrounded, level = bounds(z, cell, True)
    # The shade before rounding is computed here in double precision: where sums are rounded it may be off by that much.
    allowed["hillshade"] = bounds(z, cell, exact)[0]["hillshade"]
    missing = np.isnan(sum(windows(z)))
    for product, mode in MODES.items():
        out = folder / "gdaldem.out"
        scale = ["-s", str(metres)] if product in ("slope", "hillshade") else []
        subprocess.run(["gdaldem", mode, path, out, "-q", "-of", "GTiff", *scale], check=True)
        with rasterio.open(out) as raster:
            theirs = raster.read(1, masked=True).astype("float64").filled(np.nan)
        ours = np.fromfile(path.with_suffix("." + product)).reshape(z.shape)
        undefined = missing
        if product == "aspect":
            # gdaldem takes pixels as square here: the direction on the ground follows from its own.
            turn = np.radians(theirs)
            if cell[0] != cell[1]:
                theirs = np.degrees(np.arctan2(np.sin(turn) / cell[0], np.cos(turn) / cell[1])) % 360
            assert (np.isnan(theirs) == np.isnan(ours))[~level].all(), (path.name, product)
            undefined = missing | np.isnan(theirs) | np.isnan(ours)
        assert np.isnan(ours)[missing].all() and np.isnan(theirs)[missing].all(), (path.name, product)
        assert not np.isnan(ours - theirs)[~undefined].any(), (path.name, product)
        difference = np.abs(ours - theirs)
        if product == "aspect":
            assert not (ours >= 360).any() and not (ours < 0).any(), path.name
            difference = np.minimum(difference, 360 - difference)
        if product == "hillshade":
            differs = (difference > 0) & ~missing
            to_half = np.abs(unrounded % 1 - 0.5)
            assert (difference[differs] == 1).all() and (to_half <= allowed[product])[differs].all(), path.name
            shades[kind, "differ"] += int(differs.sum())
            shades[kind, "of"] += int((~missing).sum())
        else:
            over = (difference > allowed[product]) & ~undefined
            assert not over.any(), (path.name, product, difference[over].max(), int(over.sum()))
        largest = float(difference[~undefined].max())
        worst[kind, product] = max(worst[kind, product], largest)
    print(f"{path.name}: {kind}, {int((~missing).sum())} pixels agree, {int(missing.sum())} without a result")
for (kind, product), largest in sorted(worst.items()):
    note = f" ({shades[kind, 'differ']} of {shades[kind, 'of']} pixels, each at a half)" if product == "hillshade" else ""
    print(f"{kind}: {product}: largest difference {largest:g}{note}")
