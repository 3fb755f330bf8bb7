"""Contour lines of `terrane contour` beside those of `gdal_contour`.

    python3 tools/contours.py check target/release/terrane             # counts of lines, heights of points, ends of lines
    python3 tools/contours.py simple target/release/terrane dem.tif…   # lines as written that cross or touch, and their heights
    python3 tools/contours.py time target/release/terrane dem.tif      # both on a raster of yours

`simple` reads what is written in every format and system (pip install pyogrio shapely), and fails where shapely finds a line that is not
simple, two lines that have a point in common, or a point off its height by more than 1 mm and what 0.1 mm across makes on the slope there.

The check makes a smooth terrain by itself, waves of 40 pixels and more: where lines are pixels apart, two tracers can only find the same.
On rough ground they may join two lines through a saddle otherwise, since terrane asks its surface and gdal_contour the mean of four
pixels. It needs gdal_contour and gdal_translate (Debian: gdal-bin) and nothing of Python beyond itself.
"""

import csv
import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from math import cos, sin
from pathlib import Path

#: Metres between lines of the check.
INTERVAL = 5
#: Columns and rows of its terrain.
SIZE = 900, 700
PIXEL = 2
EDGES = 2600000, 1200000, 2600000 + PIXEL * SIZE[0], 1200000 + PIXEL * SIZE[1]


def write_waves(path: Path) -> None:
    """A smooth terrain as an ASCII grid."""
    columns, rows = SIZE
    with path.open("w") as file:
        file.write(f"ncols {columns}\nnrows {rows}\nxllcorner {EDGES[0]}\nyllcorner {EDGES[1]}\ncellsize {PIXEL}\n")
        for y in range(rows):
            waves = (
                500 + 60 * sin(x / 97) * cos(y / 83) + 23 * sin((x + 2 * y) / 61) + 7 * cos((2 * x - y) / 29)
                for x in range(columns)
            )
            file.write(" ".join(f"{height:.4f}" for height in waves) + "\n")


def run(*command: object) -> str:
    words = [str(word) for word in command]
    done = subprocess.run(words, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(words)}: {done.stderr.strip()}")
    return done.stdout


def lines(path: Path) -> list[tuple[float, list[list[float]]]]:
    """Heights and points of all lines of a GeoJSON."""
    features = json.loads(path.read_text())["features"]
    return [(feature["properties"]["height_m"], feature["geometry"]["coordinates"]) for feature in features]


def closed(found: list[tuple[float, list[list[float]]]]) -> Counter[float]:
    """How many lines of each height are closed, without those in the outer half of the outermost pixels: there gdal_contour takes the
    ground for level, and terrane continues it."""
    left, bottom, right, top = EDGES
    return Counter(
        height
        for height, points in found
        if len(points) > 3
        and points[0] == points[-1]
        and all(left + PIXEL <= x <= right - PIXEL and bottom + PIXEL <= y <= top - PIXEL for x, y in points)
    )


def check(terrane: str) -> None:
    if shutil.which("gdal_contour") is None:
        print("skipped: gdal_contour is not installed (Debian: gdal-bin)")
        return
    with tempfile.TemporaryDirectory() as folder:
        at = Path(folder)
        write_waves(at / "smooth.asc")
        translate = ("gdal_translate", "-q", "-a_srs", "EPSG:2056", "-ot", "Float64")
        run(*translate, at / "smooth.asc", at / "smooth.tif")
        run(terrane, "encode", at / "smooth.tif", at / "smooth.trn", "--max-error", "0.01")
        run(terrane, "decode", at / "smooth.trn", at / "decoded.tif")
        run(terrane, "contour", at / "smooth.trn", at / "ours.geojson", "--interval", INTERVAL, "--crs", "own")
        run("gdal_contour", "-q", "-a", "height_m", "-i", INTERVAL, at / "decoded.tif", at / "gdal.geojson")
        ours, theirs = lines(at / "ours.geojson"), lines(at / "gdal.geojson")
        print(f"lines: terrane {len(ours)}, gdal_contour {len(theirs)}")
        print(f"closed: terrane {closed(ours).total()}, gdal_contour {closed(theirs).total()}")
        if closed(ours) != closed(theirs):
            sys.exit(f"closed lines by height differ: {closed(ours) - closed(theirs)} {closed(theirs) - closed(ours)}")
        with (at / "points.csv").open("w") as file:
            writer = csv.writer(file)
            writer.writerow(["x", "y"])
            writer.writerows(point for _, points in ours for point in points)
        heights = [height for height, points in ours for _ in points]
        found = json.loads(run(terrane, "query", at / "smooth.trn", "--points", at / "points.csv", "--json"))
        off = max(abs(sample["height_m"] - height) for sample, height in zip(found, heights, strict=True))
        print(f"heights at {len(heights)} points: at most {off * 1000:.3f} mm off")
        if off > 1e-3:
            sys.exit("a point is not on the surface")
        left, bottom, right, top = EDGES
        ends = [end for _, points in ours if points[0] != points[-1] for end in (points[0], points[-1])]
        inside = [(x, y) for x, y in ends if x not in (left, right) and y not in (bottom, top)]
        print(f"ends of lines: {len(ends) - len(inside)} at the edge of the raster, {len(inside)} inside")
        if inside:
            sys.exit("a line ends inside the raster")


#: Metres between lines that are to be simple.
INTERVALS = 1, 5, 10
#: Vertices of the pieces that lines are compared in, and of those whose heights are asked for.
PIECE, ASKED = 8, 20_000
#: Metres that a point may be off its height, and across.
OFF, ACROSS = 1e-3, 1e-4


def touching(path: Path) -> tuple[int, int, int, int]:
    """How many lines of a file there are, their points, those that are not simple, and pairs of lines that have a point in common."""
    import numpy as np
    import pyogrio
    import shapely

    lines = shapely.from_wkb(pyogrio.raw.read(path, columns=[])[2])
    points, of = shapely.get_coordinates(lines, return_index=True)
    not_simple = int((~shapely.is_simple(lines)).sum())
    # All of them together are simple where no two have more in common than their ends; a ring has one.
    starts = np.searchsorted(of, np.arange(len(lines)))
    first, last = points[starts], points[np.append(starts[1:], len(points)) - 1]
    ends = np.concatenate([first, last[(first != last).any(axis=1)]])
    if shapely.is_simple(shapely.multilinestrings(lines)) and len(np.unique(ends, axis=0)) == len(ends):
        return len(lines), len(points), not_simple, 0
    # Which they are: long lines fill half of the raster each, so pieces of a few vertices are compared with what is near.
    place = np.arange(len(of)) - starts[of]
    first = place % PIECE == 0
    inner = first & (place > 0)
    ends = np.nonzero(inner)[0]
    coordinates = np.insert(points, ends, points[ends], axis=0)
    piece = np.insert(np.cumsum(first) - 1, ends, np.cumsum(first)[ends] - 2)
    kept = np.bincount(piece)[piece] > 1
    coordinates, piece = coordinates[kept], np.unique(piece[kept], return_inverse=True)[1]
    owner = np.insert(of, ends, of[ends])[kept]
    pieces = shapely.linestrings(coordinates, indices=piece)
    owner = owner[np.searchsorted(piece, np.arange(len(pieces)))]
    left, right = shapely.STRtree(pieces).query(pieces)
    others = owner[left] < owner[right]
    left, right = left[others], right[others]
    touch = shapely.intersects(pieces[left], pieces[right])
    pairs = set(zip(owner[left[touch]].tolist(), owner[right[touch]].tolist(), strict=True))
    return len(lines), len(points), not_simple, len(pairs)


def worst_height(terrane: str, terrain: Path, path: Path) -> float:
    """By how much the farthest vertex is off its height, in parts of what it may be."""
    import math

    import pyogrio
    import shapely

    _, _, lines, (heights,) = pyogrio.raw.read(path, columns=["height_m"])
    points, of = shapely.get_coordinates(shapely.from_wkb(lines), return_index=True)
    step = max(1, len(points) // ASKED)
    asked = path.with_suffix(".csv")
    with asked.open("w") as file:
        csv.writer(file).writerows([("x", "y"), *points[::step].tolist()])
    found = json.loads(run(terrane, "query", terrain, "--points", asked, "--json"))
    worst = 0.0
    for sample, height in zip(found, heights[of[::step]], strict=True):
        # On the edge itself, whatever a number's last digit makes of it.
        if sample["height_m"] is None:
            continue
        across = ACROSS * math.hypot(sample["gradient_east"], sample["gradient_north"])
        worst = max(worst, abs(sample["height_m"] - height) / (OFF + across))
    return worst


def simple(terrane: str, rasters: list[str]) -> None:
    wrong = 0
    for raster in rasters:
        with tempfile.TemporaryDirectory() as folder:
            terrain = Path(folder) / "x.trn"
            run(terrane, "encode", raster, terrain, "--lossless")
            for interval in INTERVALS:
                for name, crs in [("own.fgb", "own"), ("map.fgb", "EPSG:4326"), ("own.geojson", "own"), ("map.geojson", "EPSG:4326")]:
                    path = Path(folder) / name
                    words = [terrane, "contour", terrain, path, "--interval", interval, "--crs", crs, "--overwrite"]
                    done = subprocess.run([str(word) for word in words], capture_output=True, text=True)
                    if done.returncode:
                        print(f"{Path(raster).name} {interval} m {name}: {done.stderr.strip()}")
                        continue
                    count, points, bad, pairs = touching(path)
                    off = worst_height(terrane, terrain, path) if name == "own.fgb" else 0.0
                    wrong += bad + pairs + (off > 1)
                    heights = f", heights off by {off:.3f} of what they may be" if name == "own.fgb" else ""
                    print(f"{Path(raster).name} {interval} m {name}: {count} lines, {points} points, {bad} not simple, {pairs} pairs touch{heights}", flush=True)
    if wrong:
        sys.exit(f"{wrong} times wrong")


def timed(*command: object) -> float:
    started = time.perf_counter()
    run(*command)
    return time.perf_counter() - started


def compare(terrane: str, raster: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        at = Path(folder)
        run(terrane, "encode", raster, at / "x.trn", "--max-error", "0.1")
        decode = timed(terrane, "decode", at / "x.trn", at / "x.tif")
        for interval in (1, 5):
            for jobs in (1, 2):
                fgb = ("contour", at / "x.trn", at / "x.fgb", "--interval", interval, "--overwrite", "--jobs", jobs)
                print(f"interval {interval} m, terrane contour to FlatGeobuf, {jobs} threads: {timed(terrane, *fgb):.2f} s")
            (at / "gdal.fgb").unlink(missing_ok=True)
            gdal = timed("gdal_contour", "-q", "-f", "FlatGeobuf", "-a", "height_m", "-i", interval, at / "x.tif", at / "gdal.fgb")
            print(f"interval {interval} m, gdal_contour of the decoded raster: {gdal:.2f} s, after {decode:.2f} s of decoding")
            sizes = [(at / name).stat().st_size for name in ("x.fgb", "gdal.fgb")]
            print(f"interval {interval} m, bytes: terrane {sizes[0]}, gdal_contour {sizes[1]}")


def main() -> None:
    match sys.argv[1:]:
        case ["check", terrane]:
            check(terrane)
        case ["simple", terrane, _, *_]:
            simple(terrane, sys.argv[3:])
        case ["time", terrane, raster]:
            compare(terrane, raster)
        case _:
            sys.exit(__doc__)


if __name__ == "__main__":
    main()
