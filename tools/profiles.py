"""Measures the models of the context codec beside other codecs: what a tile costs in bits and in time, whole rasters, and no loss.

    pip install numpy imagecodecs rasterio av        (av for HEVC; without it that row is left out)
    cargo build --release -p terrane-context --example curve && cargo build --release -p terrane-codec --example rate

    profiles.py cut SHARED/data test.f32
    profiles.py tiles test.f32 --curve target/release/examples/curve --out FOLDER fast=FAST.safetensors best=BEST.safetensors
                [--lambda 0.12] [--dead-zone 0] [--old "fast 0.1.0=3.5,0.92" …] [--reuse others|all]
    profiles.py figure FOLDER [--old …]
    profiles.py lossless test.f32 --rate target/release/examples/rate --out FOLDER fast=FAST.safetensors …
    profiles.py whole RASTER… --terrane target/release/terrane --out FOLDER [--profiles fast standard best] [--max-error 0.1]

`cut` takes the tiles of 256×256 on a plain grid, all of them with heights throughout, from the rasters of a split of catalog.csv.

`tiles` writes points.tsv (every tile and quality), times.tsv and table.tsv, and draws profiles.svg. Rates count every byte: payload and
record of ours, whole streams and 8 bytes of offset and scale of the others. Measures at a rate are interpolated tile by tile and then
averaged; a rate that fewer than nine tiles in ten reach is left empty. Times are taken at 0.5 bits per pixel in turns: three rounds
over all codecs, three codings of a tile in each, on ten tiles; the quickest of the nine, and the median over tiles. They are those of
the library's call alone (ours with the wavelet and the division by the step; the others without the rounding to integers).
A call that is interrupted seems slow, and a long one is interrupted sooner than a short one, so that times are only good on an idle
machine: core_share is the processor time against the clock (of the best round), and what is below 0.9 is told.
`--reuse` takes points from an earlier points.tsv in the folder: those of the other codecs, or all, which takes the times anew.
`--old` gives earlier profiles as decoding time in times of OpenJPEG's and gain in dB, for hollow marks in the figure.

`whole` measures commands that read a file and write one: terrane as a process of its own, the others in this one. All decode to a COG
with overviews (deflate, predictor 3). Speeds are per second of processor time; the quickest of the rounds, which take turns.

Everything runs on one core (`--core`).
"""

import argparse
import csv
import json
import math
import os
import resource
import subprocess
import sys
import tempfile
import time
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace

import imagecodecs
import numpy as np

try:
    import av
except ImportError:
    av = None

SIDE = 256
OFFSET_AND_SCALE = 8
RATES = [0.125, 0.25, 0.5, 0.82, 1.0, 2.0]
GAIN_RATES = [0.25, 0.5, 0.82, 1.0]
DETAIL_RATE = 0.82
TIMED_RATE = 0.5
TIMED_TILES, ROUNDS, CODINGS = 10, 3, 3
LEAST_SHARE = 0.9
LEAST_CORE_SHARE = 0.9
STEPS = np.geomspace(1.2e-4, 0.12, 24)
ERRORS = np.geomspace(1e-5, 6e-2, 24)
MEASURES = ["psnr_db", "rmse_m", "gradient_rmse", "laplacian_rmse", "max_error_m"]
OPENJPEG = "JPEG 2000 9/7"


# Peers: settings and sweeps of the benchmark's own table.


def integers(heights, bits):
    low, scale, most = np.float32(heights.min()), np.float32(np.ptp(heights)), (1 << bits) - 1
    symbols = np.round((heights - low) / scale * most).astype(np.uint16)
    return symbols, lambda decoded: decoded.reshape(heights.shape).astype(np.float64) / most * scale + low


def floats(heights):
    return heights.astype(np.float32), lambda decoded: decoded.astype(np.float64)


def peer(version, prepare, encode, decode, qualities, side=OFFSET_AND_SCALE, of_range=False):
    return SimpleNamespace(**locals())


def hevc_encode(symbols, quality):
    encoder = av.CodecContext.create("libx265", "w")
    encoder.height, encoder.width = symbols.shape
    encoder.pix_fmt = "gray12le"
    encoder.time_base = Fraction(1, 25)
    tuning = "keyint=1:log-level=none:pools=1:frame-threads=1:info=0:psy-rd=0:psy-rdoq=0:aq-mode=0:ipratio=1:tune=psnr"
    encoder.options = {"preset": "slow", "x265-params": f"qp={round(quality)}:{tuning}"}
    packets = encoder.encode(av.VideoFrame.from_ndarray(symbols, format="gray12le")) + encoder.encode(None)
    return b"".join(bytes(packet) for packet in packets)


def hevc_decode(stream):
    decoder = av.CodecContext.create("hevc", "r")
    decoder.thread_count = 1
    frames = [frame for packet in decoder.parse(stream) + decoder.parse(b"") for frame in decoder.decode(packet)]
    return (frames + decoder.decode(None))[0].to_ndarray(format="gray12le")


def avif_encode(symbols, quality):
    # Three equal channels coded as one: a grey image would be stored without loss, whatever the level.
    return imagecodecs.avif_encode(
        np.stack([symbols] * 3, -1), level=round(quality), bitspersample=12, speed=3, pixelformat="400", numthreads=1
    )


def jpeg_xl(effort, count):
    return peer(
        imagecodecs.jpegxl_version(),
        lambda heights: integers(heights, 16),
        lambda symbols, distance: imagecodecs.jpegxl_encode(
            symbols, distance=distance, effort=effort, usecontainer=False, numthreads=1
        ),
        lambda stream: imagecodecs.jpegxl_decode(stream, numthreads=1),
        np.geomspace(0.01, 12, count),
    )


def peers():
    """Codecs by name; those that cannot be run here are told on standard error."""
    sixteen, twelve = lambda heights: integers(heights, 16), lambda heights: integers(heights, 12)
    all_peers = {
        OPENJPEG: lambda: peer(
            imagecodecs.jpeg2k_version(),
            sixteen,
            lambda symbols, level: imagecodecs.jpeg2k_encode(
                symbols, level=level, codecformat="j2k", reversible=False, resolutions=6, numthreads=1
            ),
            lambda stream: imagecodecs.jpeg2k_decode(stream, numthreads=1),
            np.arange(34, 100, 2.5),
        ),
        "HTJ2K 9/7": lambda: peer(
            imagecodecs.htj2k_version(),
            sixteen,
            lambda symbols, level: imagecodecs.htj2k_encode(symbols, level=level, reversible=False),
            imagecodecs.htj2k_decode,
            np.geomspace(3e-5, 6e-2, 20),
        ),
        "SPERR": lambda: peer(
            imagecodecs.sperr_version(),
            floats,
            lambda values, level: imagecodecs.sperr_encode(values, level, "psnr", numthreads=1),
            lambda stream: imagecodecs.sperr_decode(stream, numthreads=1),
            np.arange(24, 97, 3.0),
            side=0,
        ),
        "JPEG XL, effort 7": lambda: jpeg_xl(7, 18),
        "JPEG XL, effort 9": lambda: jpeg_xl(9, 14),
        "LERC + zstd": lambda: peer(
            imagecodecs.lerc_version(),
            floats,
            lambda values, error: imagecodecs.lerc_encode(
                values, level=error, compression="zstd", compressionargs={"level": 19}
            ),
            imagecodecs.lerc_decode,
            ERRORS,
            side=0,
            of_range=True,
        ),
        "AVIF, 12 bits": lambda: peer(
            imagecodecs.avif_version(),
            twelve,
            avif_encode,
            lambda stream: imagecodecs.avif_decode(stream, numthreads=1).reshape(SIDE, SIDE, -1)[..., 0],
            [5, 20, 35, 50, 60, 70, 78, 84, 88, 91, 93, 95, 97, 98, 99],
        ),
        "HEVC intra, 12 bits": lambda: peer(
            f"x265 slow, av {av.__version__}", twelve, hevc_encode, hevc_decode, [0, 2, 4, 8, 12, 16, 20, 24, 28, 32, 36, 40]
        ),
    }
    probe = np.add.outer(np.arange(SIDE), np.arange(SIDE)) * 0.1
    found = {}
    for name, make in all_peers.items():
        try:
            made = make()
            made.decode(made.encode(made.prepare(probe)[0], float(made.qualities[len(made.qualities) // 2])))
            found[name] = made
        except Exception as error:
            print(f"{name} is left out: {error!r}", file=sys.stderr)
    return found


# Measures of tiles.


def derivatives(heights):
    down, right = np.gradient(heights)
    inner = heights[1:-1, 1:-1]
    laplacian = heights[1:-1, :-2] + heights[1:-1, 2:] + heights[:-2, 1:-1] + heights[2:, 1:-1] - 4 * inner
    return down[1:-1, 1:-1], right[1:-1, 1:-1], laplacian


def measures(heights, decoded):
    difference = decoded - heights
    square = float(np.mean(difference**2))
    down, right, laplacian = derivatives(difference)
    return [
        10 * math.log10(float(np.ptp(heights)) ** 2 / max(square, 1e-20)),
        square**0.5,
        float(np.sqrt(np.mean(down**2 + right**2))),
        float(np.sqrt(np.mean(laplacian**2))),
        float(np.abs(difference).max()),
    ]


def scaled(codec, heights, quality):
    return float(quality) * (float(np.ptp(heights)) if codec.of_range else 1.0)


def sweep_peer(name, codec, tiles):
    for index, heights in enumerate(tiles):
        symbols, back = codec.prepare(heights)
        for quality in codec.qualities:
            try:
                stream = codec.encode(symbols, scaled(codec, heights, quality))
                decoded = back(codec.decode(stream))
            except Exception as error:  # a quality that a codec refuses is a missing point, never a nought
                print(f"{name} at {quality:.4g}: {error!r}", file=sys.stderr)
                continue
            yield [name, index, float(quality), len(stream) + codec.side, *measures(heights, decoded)]


class Curve:
    """The program `curve` with a model."""

    def __init__(self, arguments, model):
        self.program, self.model = arguments.curve, model
        self.settings = [str(arguments.rate_weight), str(arguments.dead_zone)]

    def run(self, tiles, steps):
        """Its lines, and the decoded heights of each."""
        with tempfile.TemporaryDirectory() as folder:
            source, out = Path(folder, "tiles.f32"), Path(folder, "out.f32")
            np.asarray(tiles).astype("<f4").tofile(source)
            command = [
                self.program,
                self.model,
                source,
                str(SIDE),
                *self.settings,
                out,
                "1",
                *[f"{step:.6g}" for step in steps],
            ]
            lines = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
            return [json.loads(line) for line in lines], np.fromfile(out, "<f4").reshape(-1, SIDE, SIDE).astype(np.float64)


def sweep_model(name, curve, tiles):
    lines, decoded = curve.run(tiles, STEPS)
    for line, heights in zip(lines, decoded, strict=True):
        yield [name, line["tile"], line["step"], line["bytes"], *measures(tiles[line["tile"]], heights)]


def bits_per_pixel(size):
    return size * 8 / SIDE**2


def hull(points):
    """Points in the order of their rates, without those that a smaller one beats."""
    kept, best = [], -math.inf
    for point in sorted(points, key=lambda point: point[3]):
        if point[4] > best:
            kept.append(point)
            best = point[4]
    return kept


def at_rate(points, rate):
    """Measures at a rate: PSNR by the logarithm of the rate, errors by logarithms of both; none outside the curve."""
    rates = np.array([bits_per_pixel(point[3]) for point in points])
    if len(points) < 2 or not rates[0] <= rate <= rates[-1]:
        return None
    columns = np.array([point[4:] for point in points])
    columns[:, 1:] = np.log(np.maximum(columns[:, 1:], 1e-9))
    found = np.array([np.interp(math.log(rate), np.log(rates), column) for column in columns.T])
    found[1:] = np.exp(found[1:])
    return found


def quality_at(points, rate):
    """The quality that gives about a rate."""
    points = sorted(points, key=lambda point: point[3])
    rates = np.log([bits_per_pixel(point[3]) for point in points])
    return float(np.interp(math.log(rate), rates, [point[2] for point in points]))


# Times.


def timed_peer(codec, heights, quality):
    symbols, _ = codec.prepare(heights)
    level = scaled(codec, heights, quality)
    for _ in range(CODINGS):
        cpu, start = time.process_time(), time.perf_counter()
        stream = codec.encode(symbols, level)
        middle = time.perf_counter()
        codec.decode(stream)
        end = time.perf_counter()
        share = (time.process_time() - cpu) / (end - start)
        yield len(stream) + codec.side, (middle - start) * 1e3, (end - middle) * 1e3, share


def timed_model(curve, heights, quality):
    cpu, start = processor_seconds(), time.perf_counter()
    lines, _ = curve.run([heights], [quality] * CODINGS)
    share = (processor_seconds() - cpu) / (time.perf_counter() - start)
    for line in lines:
        yield line["bytes"], line["encode_ms"], line["decode_ms"], share


def processor_seconds():
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime + time.process_time()


def take_times(codecs, tiles, curves_of):
    """Rows of codec, tile, bits per pixel, quickest encoding and decoding in milliseconds, and the greatest share of the core."""
    rows = []
    for index in sorted({int(tile) for tile in np.linspace(0, len(tiles) - 1, TIMED_TILES)}):
        qualities = {name: quality_at(curves_of[name][index], TIMED_RATE) for name in codecs}
        taken = {name: [] for name in codecs}
        for _ in range(ROUNDS):
            for name, codec in codecs.items():
                timed = timed_model if isinstance(codec, Curve) else timed_peer
                taken[name] += timed(codec, tiles[index], qualities[name])
        for name, values in taken.items():
            size, encode_ms, decode_ms, _ = np.array(values).min(0)
            rows.append(
                [name, index, bits_per_pixel(size), encode_ms, decode_ms, min(1.0, max(value[3] for value in values))]
            )
        print(f"times of tile {index}", file=sys.stderr)
    return rows


# Tables.


def write_table(path, head, rows):
    with open(path, "w", newline="") as file:
        writer = csv.writer(file, delimiter="\t", lineterminator="\n")
        writer.writerow(head)
        writer.writerows([[shown(value) for value in row] for row in rows])


def read_table(path):
    with open(path, newline="") as file:
        return list(csv.DictReader(file, delimiter="\t"))


def shown(value):
    if value is None:
        return ""
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def print_table(head, rows, digits=None):
    cells = [[*head]] + [
        [
            f"{value:.{(digits or {}).get(name, 3)}f}" if isinstance(value, float) else shown(value)
            for name, value in zip(head, row)
        ]
        for row in rows
    ]
    widths = [max(len(row[column]) for row in cells) for column in range(len(head))]
    for row in cells:
        print(
            "  ".join(
                cell.ljust(width) if not column else cell.rjust(width)
                for column, (cell, width) in enumerate(zip(row, widths))
            )
        )


def table_row(name, version, curves, times, reference):
    found = {rate: [at_rate(hull(points), rate) for points in curves.values()] for rate in RATES}
    means = {}
    for rate, values in found.items():
        reached = [value for value in values if value is not None]
        means[rate] = np.mean(reached, 0) if len(reached) >= LEAST_SHARE * len(curves) else None
    psnr = [None if means[rate] is None else float(means[rate][0]) for rate in RATES]
    details = [None] * 3 if means[DETAIL_RATE] is None else [float(means[DETAIL_RATE][place]) for place in (2, 3, 1)]
    gains = [means[rate][0] - reference[rate] for rate in GAIN_RATES if means[rate] is not None] if reference else []
    median = [float(np.median([row[place] for row in times])) for place in (2, 5, 3, 4)]
    mean_gain = float(np.mean(gains)) if gains else None
    return [name, version, *psnr, *details, mean_gain, len(gains), *median], {
        rate: value[0] for rate, value in means.items() if value is not None
    }


TABLE = [
    "codec",
    "version",
    *[f"psnr_db_at_{rate:g}" for rate in RATES],
    *[f"{what}_at_{DETAIL_RATE:g}" for what in ("gradient", "laplacian", "rmse_m")],
    "gain_db",
    "gain_rates",
    "timed_bpp",
    "core_share",
    "encode_ms",
    "decode_ms",
    "encode_times_openjpeg",
    "decode_times_openjpeg",
]


def tiles_command(arguments):
    heights = np.fromfile(arguments.tiles, "<f4").reshape(-1, SIDE, SIDE).astype(np.float64)
    others = peers()
    models = {f"context, {name}": Curve(arguments, path) for name, path in arguments.models}
    codecs = models | others
    arguments.out.mkdir(parents=True, exist_ok=True)
    points_path = arguments.out / "points.tsv"
    head = ["codec", "tile", "quality", "bytes", *MEASURES]
    points = []
    if arguments.reuse and points_path.exists():
        points = [
            [
                row["codec"],
                int(row["tile"]),
                float(row["quality"]),
                int(row["bytes"]),
                *[float(row[name]) for name in MEASURES],
            ]
            for row in read_table(points_path)
            if row["codec"] in (others if arguments.reuse == "others" else codecs)
        ]
    known = {point[0] for point in points}
    for name, codec in codecs.items():
        if name not in known:
            start = time.perf_counter()
            sweep = sweep_model if isinstance(codec, Curve) else sweep_peer
            points += sweep(name, codec, heights)
            print(f"{name}: swept in {time.perf_counter() - start:.0f} s", file=sys.stderr)
    write_table(points_path, head, points)
    curves = {name: {index: [] for index in range(len(heights))} for name in codecs}
    for point in points:
        curves[point[0]][point[1]].append(point)
    times = take_times(codecs, heights, curves)
    write_table(arguments.out / "times.tsv", ["codec", "tile", "bpp", "encode_ms", "decode_ms", "core_share"], times)
    times_of = {name: [row for row in times if row[0] == name] for name in codecs}
    _, reference = table_row(OPENJPEG, "", curves[OPENJPEG], times_of[OPENJPEG], None)
    rows = []
    for name, codec in codecs.items():
        version = "" if isinstance(codec, Curve) else codec.version
        rows.append(table_row(name, version, curves[name], times_of[name], reference)[0])
    encode_ms, decode_ms = next(row for row in rows if row[0] == OPENJPEG)[-2:]
    rows = [[*row, row[-2] / encode_ms, row[-1] / decode_ms] for row in rows]
    write_table(arguments.out / "table.tsv", TABLE, rows)
    digits = {name: 2 for name in TABLE if name.startswith("psnr")} | {
        f"{name}_at_{DETAIL_RATE:g}": 4 for name in ("gradient", "laplacian", "rmse_m")
    }
    print(f"{len(heights)} tiles, {cpu_name()}, load {os.getloadavg()[0]:.1f}")
    print_table(
        TABLE,
        rows,
        digits
        | {
            "gain_db": 2,
            "timed_bpp": 2,
            "core_share": 2,
            "encode_ms": 2,
            "decode_ms": 2,
            "encode_times_openjpeg": 2,
            "decode_times_openjpeg": 2,
        },
    )
    for row in rows:
        if row[TABLE.index("core_share")] < LEAST_CORE_SHARE:
            print(f"{row[0]} had to share its core: its times are too long")
    draw(arguments.out, arguments.old)


def cpu_name():
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return "unknown processor"


def cut_command(arguments):
    import rasterio

    catalog = csv.DictReader((arguments.data / "catalog.csv").read_text().splitlines())
    tiles = []
    for entry in sorted((row for row in catalog if row["split"] == arguments.split), key=lambda row: row["file"]):
        with rasterio.open(arguments.data / entry["file"]) as source:
            heights = source.read(1, masked=True).astype(np.float32).filled(np.nan)
        for y in range(0, heights.shape[0] - SIDE + 1, SIDE):
            for x in range(0, heights.shape[1] - SIDE + 1, SIDE):
                tile = heights[y : y + SIDE, x : x + SIDE]
                if np.isfinite(tile).all():
                    tiles.append(tile)
    np.stack(tiles).astype("<f4").tofile(arguments.out)
    print(f"{len(tiles)} tiles")


def lossless_command(arguments):
    tiles = np.fromfile(arguments.tiles, "<f4").reshape(-1, SIDE, SIDE)
    centimetres = np.round(tiles.astype(np.float64) * 100)
    chosen = [index for index in range(len(tiles)) if ((centimetres[index] / 100).astype(np.float32) == tiles[index]).all()]
    symbols = [(centimetres[index] - centimetres[index].min()).astype(np.uint16) for index in chosen]
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "tiles.f32")
        tiles[chosen].tofile(source)
        for name, model in arguments.models:
            command = [arguments.rate, model, source, str(SIDE), str(arguments.effort), "lossless", "0"]
            lines = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
            last = json.loads(lines[-1])
            assert last["max_error_m"] == 0, f"{name} lost something: {last}"
            rows.append([f"context, {name}", last["mean_bpp"]])
    for effort in (7, 9):
        sizes = []
        for tile in symbols:
            stream = imagecodecs.jpegxl_encode(tile, lossless=True, effort=effort, usecontainer=False, numthreads=1)
            assert np.array_equal(imagecodecs.jpegxl_decode(stream).reshape(tile.shape), tile)
            sizes.append(bits_per_pixel(len(stream) + OFFSET_AND_SCALE))
        rows.append([f"JPEG XL, effort {effort}", float(np.mean(sizes))])
    arguments.out.mkdir(parents=True, exist_ok=True)
    head = ["codec", f"bpp_of_{len(chosen)}_tiles_in_centimetres"]
    write_table(arguments.out / "lossless.tsv", head, rows)
    print_table(head, rows)


# Whole rasters.


def read_heights(path):
    import rasterio

    with rasterio.open(path) as source:
        heights = source.read(1, masked=True).astype(np.float32).filled(np.nan)
        return heights, {"crs": source.crs, "transform": source.transform}


def write_raster(path, heights, place, **options):
    import rasterio

    height, width = heights.shape
    with rasterio.open(
        path, "w", dtype="float32", count=1, width=width, height=height, nodata=math.nan, **place, **options
    ) as out:
        out.write(heights, 1)


def write_cog(path, heights, place):
    write_raster(
        path,
        heights,
        place,
        driver="COG",
        compress="DEFLATE",
        predictor="FLOATING_POINT",
        level=6,
        blocksize=256,
        overview_resampling="AVERAGE",
        num_threads=1,
    )


class Tiled:
    """Heights as whole numbers in tiles, each coded by itself, with a mask where some have no data. The numbers are steps of twice
    the bound, or 65536 parts of the raster's range for a codec that loses by itself."""

    def __init__(self, encode, decode, side=512):
        self.encode_tile, self.decode_tile, self.side = encode, decode, side

    def places(self, height, width):
        return [
            np.s_[y : y + self.side, x : x + self.side]
            for y in range(0, height, self.side)
            for x in range(0, width, self.side)
        ]

    def encode(self, source, target, step):
        heights, place = read_heights(source)
        low, high = float(np.nanmin(heights)), float(np.nanmax(heights))
        step = step or (high - low) / 65535
        parts = []
        for part in self.places(*heights.shape):
            tile = heights[part]
            valid = np.isfinite(tile)
            if not valid.any():
                parts += [b"", b""]
                continue
            numbers = np.round((np.where(valid, tile, tile[valid].mean()) - low) / step).astype(np.uint16)
            mask = b"" if valid.all() else imagecodecs.zstd_encode(np.packbits(valid).tobytes(), level=9)
            parts += [bytes(self.encode_tile(numbers, high - low)), mask]
        head = {
            "size": heights.shape,
            "low": low,
            "step": step,
            "crs": place["crs"].to_string(),
            "transform": list(place["transform"])[:6],
        }
        head["lengths"] = [len(part) for part in parts]
        Path(target).write_bytes(json.dumps(head, separators=(",", ":")).encode() + b"\n" + b"".join(parts))

    def decode(self, source, target):
        from rasterio import Affine

        head, body = Path(source).read_bytes().split(b"\n", 1)
        head = json.loads(head)
        heights = np.full(head["size"], np.nan, np.float32)
        ends = np.cumsum([0, *head["lengths"]])
        parts = [body[start:end] for start, end in pairwise(ends)]
        for part, stream, mask in zip(self.places(*head["size"]), parts[::2], parts[1::2]):
            if stream:
                tile = heights[part]
                decoded = (self.decode_tile(stream).reshape(tile.shape) * head["step"] + head["low"]).astype(np.float32)
                if mask:
                    bits = np.frombuffer(imagecodecs.zstd_decode(mask), np.uint8)
                    decoded[~np.unpackbits(bits, count=tile.size).astype(bool).reshape(tile.shape)] = np.nan
                heights[part] = decoded
        write_cog(target, heights, {"crs": head["crs"], "transform": Affine(*head["transform"])})


class Lerc:
    """LERC in a GeoTIFF, as GDAL writes it."""

    def encode(self, source, target, bound):
        heights, place = read_heights(source)
        write_raster(
            target,
            heights,
            place,
            driver="GTiff",
            compress="LERC_ZSTD",
            max_z_error=bound,
            tiled=True,
            blockxsize=512,
            blockysize=512,
        )

    def decode(self, source, target):
        write_cog(target, *read_heights(source))


def child(command):
    start = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        sys.exit(f"{' '.join(map(str, command))} ended with {process.returncode}")
    return usage.ru_utime + usage.ru_stime, time.perf_counter() - start


def own(function, *values):
    start, cpu = time.perf_counter(), time.process_time()
    function(*values)
    return time.process_time() - cpu, time.perf_counter() - start


def whole_command(arguments):
    bound, terrane = arguments.max_error, arguments.terrane
    os.environ["GDAL_NUM_THREADS"] = "1"
    rmse_of_raster = {}
    open_jpeg_2000 = lambda stream: imagecodecs.jpeg2k_decode(stream, numthreads=1)
    lossy = lambda numbers, scale: imagecodecs.jpeg2k_encode(
        numbers,
        level=20 * math.log10(scale / rmse_of_raster["value"]),
        codecformat="j2k",
        reversible=False,
        resolutions=6,
        numthreads=1,
    )
    whole = lambda numbers, _: imagecodecs.jpeg2k_encode(
        numbers, level=0, codecformat="j2k", reversible=True, resolutions=6, numthreads=1
    )
    xl = lambda numbers, _: imagecodecs.jpegxl_encode(numbers, lossless=True, effort=7, usecontainer=False, numthreads=1)
    rivals = {
        "JPEG 2000 9/7 (OpenJPEG), RMSE of ours": (Tiled(lossy, open_jpeg_2000), None),
        "JPEG 2000 5/3 (OpenJPEG) of steps": (Tiled(whole, open_jpeg_2000), 2 * bound),
        "JPEG XL, lossless, effort 7, of steps": (
            Tiled(xl, lambda stream: imagecodecs.jpegxl_decode(stream, numthreads=1)),
            2 * bound,
        ),
        "LERC + zstd (GDAL)": (Lerc(), bound),
    }
    names = [f"terrane, {profile}" for profile in arguments.profiles] + list(rivals)
    rows = []
    for raster in arguments.rasters:
        heights, _ = read_heights(raster)
        taken, results = {name: [] for name in names}, {}
        for _ in range(arguments.rounds):
            for name in names:
                with tempfile.TemporaryDirectory() as folder:
                    coded, back = Path(folder, "coded.terrane"), Path(folder, "back.tif")
                    if name in rivals:
                        codec, level = rivals[name]
                        encoding, decoding = own(codec.encode, raster, coded, level), own(codec.decode, coded, back)
                    else:
                        profile = ["--max-error", str(bound), "--profile", name.split(", ")[1]]
                        encoding = child([terrane, "encode", "--jobs", "1", *profile, raster, coded])
                        decoding = child([terrane, "decode", "--jobs", "1", coded, back])
                    taken[name].append([*encoding, *decoding])
                    if name not in results:
                        difference = read_heights(back)[0].astype(np.float64) - heights
                        assert (np.isfinite(difference) == np.isfinite(heights)).all(), (
                            f"{name} changed where there are heights"
                        )
                        rmse = float(np.sqrt(np.nanmean(difference**2)))
                        results[name] = [coded.stat().st_size * 8 / heights.size, rmse, float(np.nanmax(np.abs(difference)))]
                        if name in ("terrane, standard", names[0]):
                            rmse_of_raster["value"] = rmse
            print(f"a round of {raster.name}", file=sys.stderr)
        for name in names:
            encode_cpu, encode_wall, decode_cpu, decode_wall = (float(value) for value in np.array(taken[name]).min(0))
            speeds = [heights.size / 1e6 / encode_cpu, heights.size / 1e6 / decode_cpu]
            rows.append([raster.stem, name, *results[name], *speeds, encode_cpu, decode_cpu, encode_wall, decode_wall])
    head = ["raster", "codec", "bpp", "rmse_m", "max_error_m", "encode_mpx_per_s", "decode_mpx_per_s"]
    head += ["encode_cpu_s", "decode_cpu_s", "encode_wall_s", "decode_wall_s"]
    arguments.out.mkdir(parents=True, exist_ok=True)
    write_table(arguments.out / "whole.tsv", head, rows)
    print(f"{cpu_name()}, load {os.getloadavg()[0]:.1f}")
    print_table(head, rows, {"rmse_m": 4, "max_error_m": 4, "encode_mpx_per_s": 2, "decode_mpx_per_s": 2})


# The figure.

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 900, 580, 66, 24, 84, 70
FLOOR = -3.0
INK, SOFT, GRID = "#111827", "#4b5563", "#e5e7eb"
OURS, OTHERS = "#0f766e", "#b45309"


def draw(folder, old):
    table = [row for row in read_table(folder / "table.tsv") if row["gain_db"]]
    openjpeg_ms = float(next(row for row in table if row["codec"] == OPENJPEG)["decode_ms"])
    marks = []
    for name, times, gain in old:
        marks.append(SimpleNamespace(label=name, ms=times * openjpeg_ms, gain=gain, kind="old"))
    for row in table:
        label = row["codec"]
        if int(row["gain_rates"]) < len(GAIN_RATES):
            label += "*"
        marks.append(
            SimpleNamespace(
                label=label,
                ms=float(row["decode_ms"]),
                gain=float(row["gain_db"]),
                kind="ours" if label.startswith("context") else "other",
            )
        )
    left_ms, right_ms = min(mark.ms for mark in marks) / 1.6, max(mark.ms for mark in marks) * 1.6
    high = math.ceil((max(mark.gain for mark in marks) + 0.35) * 2) / 2
    low = min(FLOOR, 0.0)
    x_of = lambda ms: LEFT + (WIDTH - LEFT - RIGHT) * math.log(ms / left_ms) / math.log(right_ms / left_ms)
    y_of = lambda gain: HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * (gain - low) / (high - low)
    out = []
    text = lambda x, y, content, anchor="middle", size=12, fill=SOFT, more="": out.append(
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}" fill="{fill}"{more}>{content}</text>'
    )
    line = lambda x1, y1, x2, y2, stroke=GRID, more="": out.append(
        f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{stroke}"{more}/>'
    )
    base, right = HEIGHT - BOTTOM, WIDTH - RIGHT
    text(LEFT, 26, "Decoding time and gain over JPEG 2000", "start", 17, INK, ' font-weight="600"')
    for ms in (value * 10.0**power for power in range(-3, 5) for value in (1, 2, 5)):
        if left_ms <= ms <= right_ms:
            line(x_of(ms), TOP, x_of(ms), base)
            text(x_of(ms), base + 18, f"{ms:g}")
        if left_ms <= ms * openjpeg_ms <= right_ms:
            line(x_of(ms * openjpeg_ms), TOP - 5, x_of(ms * openjpeg_ms), TOP, SOFT)
            text(x_of(ms * openjpeg_ms), TOP - 10, f"{ms:g}×")
    text(
        (LEFT + right) / 2,
        base + 42,
        "milliseconds to decode a tile of 256×256 at 0.5 bits per pixel, one core",
        size=13,
        fill=INK,
    )
    text((LEFT + right) / 2, TOP - 30, f"times OpenJPEG’s {openjpeg_ms:.2f} ms", size=13, fill=INK)
    for half in range(round(low * 2), round(high * 2) + 1):
        line(LEFT, y_of(half / 2), right, y_of(half / 2), SOFT if half == 0 else GRID)
        text(LEFT - 8, y_of(half / 2) + 4, signed(half / 2) if half else "0", "end")
    middle = (TOP + base) / 2
    text(
        20,
        middle,
        "dB over JPEG 2000, mean of 0.25 to 1.0 bits per pixel",
        size=13,
        fill=INK,
        more=f' transform="rotate(-90 20 {middle:.1f})"',
    )
    line(LEFT, base, right, base, SOFT)
    line(LEFT, TOP, LEFT, base, SOFT)
    for kind, dash in (("old", ' stroke-dasharray="4 4"'), ("ours", "")):
        chain = sorted((mark for mark in marks if mark.kind == kind), key=lambda mark: mark.ms)
        for one, next_one in pairwise(chain):
            line(
                x_of(one.ms),
                y_of(one.gain),
                x_of(next_one.ms),
                y_of(next_one.gain),
                OURS,
                f' stroke-width="1.2" opacity="0.5"{dash}',
            )
    taken = [(LEFT, y_of(0) - 1, right, y_of(0) + 1)]
    for mark in marks:
        mark.x, mark.y = x_of(mark.ms), y_of(max(mark.gain, low)) - (8 if mark.gain < low else 0)
        if mark.gain < low:
            mark.label += f", {signed(mark.gain)} dB"
            out.append(f'<path d="M{mark.x - 6:.1f} {mark.y - 5:.1f}h12l-6 11z" fill="{OTHERS}"/>')
        elif mark.kind == "other":
            out.append(f'<rect x="{mark.x - 5:.1f}" y="{mark.y - 5:.1f}" width="10" height="10" fill="{OTHERS}"/>')
        else:
            fill = OURS if mark.kind == "ours" else "#ffffff"
            out.append(f'<circle cx="{mark.x:.1f}" cy="{mark.y:.1f}" r="6" fill="{fill}" stroke="{OURS}" stroke-width="2"/>')
        taken.append((mark.x - 8, mark.y - 8, mark.x + 8, mark.y + 8))
    for mark in sorted(marks, key=lambda mark: mark.kind != "ours"):
        x, y, anchor, box = label_place(mark, taken, (LEFT + 4, TOP + 4, right - 2, base - 4))
        taken.append(box)
        near = (min(max(mark.x, box[0]), box[2]), min(max(mark.y, box[1]), box[3]))
        if math.dist(near, (mark.x, mark.y)) > 14:
            line(mark.x, mark.y, *near, SOFT, ' stroke-width="0.8"')
        weight = ' font-weight="600"' if mark.kind == "ours" else ""
        text(x, y, mark.label, anchor, 13, "#ffffff", f' stroke="#ffffff" stroke-width="4"{weight}')
        text(x, y, mark.label, anchor, 13, OTHERS if mark.kind == "other" else OURS, weight)
    if any("*" in mark.label for mark in marks):
        text(right, HEIGHT - 6, "* mean of those rates that it reaches", "end", 11)
    (folder / "profiles.svg").write_text(
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" role="img" '
        "font-family=\"system-ui, -apple-system, 'Segoe UI', 'DejaVu Sans', sans-serif\">\n"
        "<title>Decoding time and gain over JPEG 2000 of the context codec’s profiles and other codecs</title>\n"
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>\n' + "\n".join(out) + "\n</svg>\n"
    )


def signed(value):
    return f"{value:+.1f}".replace("-", "−")


def label_place(mark, taken, frame):
    """Where a label overlaps no mark and no label: nearest places first."""
    width, height = 7.6 * len(mark.label), 15
    for distance in (11, 18, 28, 40, 55, 75, 100):
        for across, down in ((1, 0), (-1, 0), (0, -1), (0, 1), (0.7, -0.7), (-0.7, -0.7), (0.7, 0.7), (-0.7, 0.7)):
            x, y = mark.x + across * distance, mark.y + down * distance
            left = x - width / 2 if across == 0 else x - width if across < 0 else x
            top = y - height / 2 + down * height / 2
            box = (left, top, left + width, top + height)
            inside = box[0] >= frame[0] and box[1] >= frame[1] and box[2] <= frame[2] and box[3] <= frame[3]
            if inside and not any(box[0] < b[2] and b[0] < box[2] and box[1] < b[3] and b[1] < box[3] for b in taken):
                return x, top + 12, "middle" if across == 0 else "end" if across < 0 else "start", box
    sys.exit(f"no room for the label {mark.label}")


def named(text):
    name, _, path = text.partition("=")
    if not path:
        raise argparse.ArgumentTypeError("give NAME=MODEL")
    return name, path


def old_profile(text):
    name, _, figures = text.rpartition("=")
    times, gain = figures.split(",")
    return name, float(times), float(gain)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--core", type=int, help="the core that everything runs on; the last without it")
    commands = parser.add_subparsers(required=True)

    cut = commands.add_parser("cut", help="tiles of a split")
    cut.add_argument("data", type=Path)
    cut.add_argument("out", type=Path)
    cut.add_argument("--split", default="test")
    cut.set_defaults(run=cut_command)

    tiles = commands.add_parser("tiles", help="rates, errors and times of tiles")
    tiles.add_argument("tiles", type=Path)
    tiles.add_argument("models", nargs="+", type=named, metavar="NAME=MODEL")
    tiles.add_argument("--curve", required=True)
    tiles.add_argument("--out", type=Path, required=True)
    tiles.add_argument("--lambda", dest="rate_weight", type=float, default=0.12)
    tiles.add_argument("--dead-zone", type=float, default=0.0)
    tiles.add_argument("--old", nargs="*", type=old_profile, default=[], metavar="NAME=TIMES,DB")
    tiles.add_argument("--reuse", choices=["others", "all"])
    tiles.set_defaults(run=tiles_command)

    figure = commands.add_parser("figure", help="draw profiles.svg again")
    figure.add_argument("out", type=Path)
    figure.add_argument("--old", nargs="*", type=old_profile, default=[], metavar="NAME=TIMES,DB")
    figure.set_defaults(run=lambda arguments: draw(arguments.out, arguments.old))

    lossless = commands.add_parser("lossless", help="tiles in whole centimetres")
    lossless.add_argument("tiles", type=Path)
    lossless.add_argument("models", nargs="+", type=named, metavar="NAME=MODEL")
    lossless.add_argument("--rate", required=True)
    lossless.add_argument("--effort", type=int, default=1)
    lossless.add_argument("--out", type=Path, required=True)
    lossless.set_defaults(run=lossless_command)

    whole = commands.add_parser("whole", help="files of whole rasters")
    whole.add_argument("rasters", nargs="+", type=Path)
    whole.add_argument("--terrane", required=True)
    whole.add_argument("--profiles", nargs="+", default=["fast", "standard", "best"])
    whole.add_argument("--max-error", type=float, default=0.1)
    whole.add_argument("--rounds", type=int, default=3)
    whole.add_argument("--out", type=Path, required=True)
    whole.set_defaults(run=whole_command)

    arguments = parser.parse_args()
    core = max(os.sched_getaffinity(0)) if arguments.core is None else arguments.core
    os.sched_setaffinity(0, {core})
    arguments.run(arguments)


if __name__ == "__main__":
    main()
