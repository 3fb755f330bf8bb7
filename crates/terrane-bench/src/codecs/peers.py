"""Codes square tiles of heights with codecs that come as Python packages, for `terrane bench codecs --python PYTHON`.

    pip install numpy imagecodecs av
    terrane bench codecs --data tiles --out report --python python3

Alone: `python3 crates/terrane-bench/src/codecs/peers.py TILES.f32 --side 256 --max-rate 4 --bounds 0.1 0.05 0.01 --step 0.01 [--jobs 2]
[--only HEVC SPERR]`. TILES.f32 holds side × side little-endian 32-bit heights in metres per tile. One JSON object is printed:

    format    1
    versions  of the packages
    check     measures of every tile against itself upside down, by which the reader sees that both sides measure alike
    codecs    name; variant, which is in tables only; points [tile, quality, bytes, *measures];
              bounds [tile, bound_m, bytes, rmse_m, max_error_m]
    lossless  name; bytes of every tile after its heights were rounded to whole steps
    absent    name and reason of every codec that cannot be run here

Measures are psnr_db, rmse_m, max_error_m, gradient_rmse_m_per_px, laplacian_rmse_m_per_px2. Bytes are all that a decoder
needs: the stream with its head, and 8 bytes for offset and scale where heights had to become integers. Qualities go from coarse
to fine, and a sweep ends once its curve is known up to the greatest rate.
"""

import argparse
import json
import os
import sys
from concurrent.futures import ProcessPoolExecutor
from fractions import Fraction

try:
    import numpy as np
except ImportError:
    sys.exit("numpy is missing: pip install numpy imagecodecs av")
try:
    import imagecodecs
except ImportError:
    imagecodecs = None
try:
    import av
except ImportError:
    av = None

OFFSET_AND_SCALE = 8
LEAST_SQUARE_ERROR = 1e-10
CODECS, LOSSLESS = {}, {}

# Greatest errors as parts of a tile's range.
ERRORS = np.geomspace(6e-2, 1e-5, 24)


def codec(name, needs, qualities, of_range=False, bounded=False, variant=False):
    """Registers a function of heights and a quality that gives bytes and heights; a quality that is a part of the range
    reaches it in metres, and a variant is in tables only."""

    def register(function):
        CODECS[name] = (function, needs, list(qualities), of_range, bounded, variant)
        return function

    return register


def lossless(name, needs):
    """Registers a function of whole numbers from 0 that gives the bytes of its stream, after it has checked it."""

    def register(function):
        LOSSLESS[name] = (function, needs)
        return function

    return register


def integers(heights, bits):
    low = np.float32(heights.min())
    scale = np.float32(heights.max() - heights.min())
    most = (1 << bits) - 1
    symbols = np.round((heights - low) / scale * most).astype(np.uint16)
    return symbols, lambda decoded: decoded.astype(np.float64) / most * scale + low


def steps(heights, error):
    """Whole steps of twice an error; none where 16 bits do not hold them."""
    low = np.float32(heights.min())
    symbols = np.round((heights - low) / (2 * error)).astype(np.int64)
    if symbols.max() > 65535:
        return None, None
    kind = np.uint8 if symbols.max() < 256 else np.uint16
    return symbols.astype(kind), lambda decoded: decoded.astype(np.float64) * (2 * error) + low


@codec("HTJ2K 9/7", "HTJ2K", np.geomspace(6e-2, 3e-5, 20), variant=True)
def htj2k(heights, quality):
    symbols, back = integers(heights, 16)
    stream = imagecodecs.htj2k_encode(symbols, level=quality, reversible=False)
    return len(stream) + OFFSET_AND_SCALE, back(imagecodecs.htj2k_decode(stream))


@codec("JPEG XL, effort 9", "JPEGXL", np.geomspace(12, 0.01, 14))
def jpeg_xl(heights, distance):
    symbols, back = integers(heights, 16)
    stream = imagecodecs.jpegxl_encode(symbols, distance=distance, effort=9, usecontainer=False)
    return len(stream) + OFFSET_AND_SCALE, back(imagecodecs.jpegxl_decode(stream).reshape(heights.shape))


@codec("quantised, lossless JPEG XL", "JPEGXL", ERRORS, of_range=True, bounded=True, variant=True)
def quantised_jpeg_xl(heights, error):
    symbols, back = steps(heights, error)
    if symbols is None:
        return None
    stream = imagecodecs.jpegxl_encode(symbols, lossless=True, effort=7, usecontainer=False)
    return len(stream) + OFFSET_AND_SCALE, back(imagecodecs.jpegxl_decode(stream).reshape(heights.shape))


@codec("quantised, JPEG-LS", "JPEGLS", ERRORS, of_range=True, bounded=True, variant=True)
def quantised_jpeg_ls(heights, error):
    symbols, back = steps(heights, error)
    if symbols is None:
        return None
    stream = imagecodecs.jpegls_encode(symbols)
    return len(stream) + OFFSET_AND_SCALE, back(imagecodecs.jpegls_decode(stream))


@codec("AVIF, 12 bits", "AVIF", [5, 20, 35, 50, 60, 70, 78, 84, 88, 91, 93, 95, 97, 98, 99])
def avif(heights, quality):
    symbols, back = integers(heights, 12)
    # Three equal channels coded as one: a grey image would be stored without loss, whatever the level.
    stream = imagecodecs.avif_encode(
        np.stack([symbols] * 3, -1), level=int(quality), bitspersample=12, speed=3, pixelformat="400", numthreads=1
    )
    decoded = imagecodecs.avif_decode(stream).reshape(heights.shape + (-1,))[..., 0]
    return len(stream) + OFFSET_AND_SCALE, back(decoded)


@codec("HEVC intra, 12 bits (x265 slow)", "av", [40, 36, 32, 28, 24, 20, 16, 12, 8, 4, 2, 0])
def hevc(heights, quality):
    symbols, back = integers(heights, 12)
    encoder = av.CodecContext.create("libx265", "w")
    encoder.height, encoder.width = heights.shape
    encoder.pix_fmt = "gray12le"
    encoder.time_base = Fraction(1, 25)
    tuning = "keyint=1:log-level=none:pools=1:frame-threads=1:info=0:psy-rd=0:psy-rdoq=0:aq-mode=0:ipratio=1:tune=psnr"
    encoder.options = {"preset": "slow", "x265-params": f"qp={int(quality)}:{tuning}"}
    packets = encoder.encode(av.VideoFrame.from_ndarray(symbols, format="gray12le")) + encoder.encode(None)
    stream = b"".join(bytes(packet) for packet in packets)
    decoder = av.CodecContext.create("hevc", "r")
    frames = [frame for packet in decoder.parse(stream) + decoder.parse(b"") for frame in decoder.decode(packet)]
    frames += decoder.decode(None)
    return len(stream) + OFFSET_AND_SCALE, back(frames[0].to_ndarray(format="gray12le"))


@codec("SPERR, PSNR", "SPERR", np.arange(24, 97, 3.0))
def sperr_psnr(heights, quality):
    stream = imagecodecs.sperr_encode(heights.astype(np.float32), quality, "psnr")
    return len(stream), imagecodecs.sperr_decode(stream)


@codec("SPERR, greatest error", "SPERR", ERRORS[:20], of_range=True, bounded=True, variant=True)
def sperr_error(heights, error):
    stream = imagecodecs.sperr_encode(heights.astype(np.float32), error, "pwe")
    return len(stream), imagecodecs.sperr_decode(stream)


@codec("SZ3", "SZ3", ERRORS, of_range=True, bounded=True)
def sz3(heights, error):
    values = heights.astype(np.float32)
    stream = imagecodecs.sz3_encode(values, mode="abs", abs=error)
    return len(stream), imagecodecs.sz3_decode(stream, values.shape, values.dtype)


@lossless("JPEG XL, lossless, effort 7", "JPEGXL")
def lossless_jpeg_xl_7(symbols):
    return lossless_jpeg_xl(symbols, 7)


@lossless("JPEG XL, lossless, effort 9", "JPEGXL")
def lossless_jpeg_xl_9(symbols):
    return lossless_jpeg_xl(symbols, 9)


def lossless_jpeg_xl(symbols, effort):
    stream = imagecodecs.jpegxl_encode(symbols, lossless=True, effort=effort, usecontainer=False)
    assert np.array_equal(imagecodecs.jpegxl_decode(stream).reshape(symbols.shape), symbols)
    return len(stream) + OFFSET_AND_SCALE


@lossless("JPEG-LS", "JPEGLS")
def lossless_jpeg_ls(symbols):
    stream = imagecodecs.jpegls_encode(symbols)
    assert np.array_equal(imagecodecs.jpegls_decode(stream), symbols)
    return len(stream) + OFFSET_AND_SCALE


def why_absent(needs):
    """Why something cannot be run here; none where it can."""
    if needs == "av":
        if av is None:
            return "the package av is missing"
        return None if "libx265" in av.codecs_available else "av was built without libx265"
    if imagecodecs is None:
        return "the package imagecodecs is missing"
    part = getattr(imagecodecs, needs, None)
    return None if part is not None and part.available else f"imagecodecs was built without {needs}"


def laplacian(heights):
    inner = heights[1:-1, 1:-1]
    return heights[1:-1, :-2] + heights[1:-1, 2:] + heights[:-2, 1:-1] + heights[2:, 1:-1] - 4 * inner


def measures(heights, decoded):
    decoded = decoded.astype(np.float32).astype(np.float64)
    difference = decoded - heights
    scale = max(float(heights.max() - heights.min()), 1e-6)
    square = float(np.mean(difference**2))
    down, right = np.gradient(difference)
    return [
        float(-10 * np.log10(max(square / scale**2, LEAST_SQUARE_ERROR))),
        square**0.5,
        float(np.abs(difference).max()),
        float(np.sqrt(np.mean(down**2 + right**2))),
        float(np.sqrt(np.mean(laplacian(difference) ** 2))),
    ]


def sweep(name, heights, max_rate):
    function, _, qualities, of_range, _, _ = CODECS[name]
    scale = float(heights.max() - heights.min()) if of_range else 1.0
    points, best = [], -np.inf
    for quality in qualities:
        try:
            coded = function(heights, float(quality) * scale)
        except Exception as error:  # a quality that a codec refuses is a missing point, never a nought
            print(f"{name} at {quality:.4g}: {error!r}", file=sys.stderr)
            continue
        if coded is None:
            continue
        size, decoded = coded
        psnr, *others = measures(heights, decoded)
        points.append([float(quality), int(size), psnr, *others])
        # What no point before it beats: the curve is then known up to the greatest rate.
        if size * 8 / heights.size > max_rate and psnr > best:
            break
        best = max(best, psnr)
    return points


def within(name, heights, bound):
    """Coded so that no decoded 32-bit height is farther off than a bound: rounding makes some codecs overstep what they
    are told, so they are told a little less."""
    level = bound
    for _ in range(60):
        coded = CODECS[name][0](heights, level)
        if coded is None:
            return None
        size, decoded = coded
        _, rmse, greatest, _, _ = measures(heights, decoded)
        if greatest <= bound:
            return [bound, int(size), rmse, greatest]
        level = min(level - (greatest - bound) * 1.05, level * (1 - 1e-7))
    return None


def whole_steps(heights, step):
    symbols = np.round(heights / step).astype(np.int64)
    symbols -= symbols.min()
    return symbols.astype(np.uint16) if symbols.max() < 65536 else None


def one_tile(work):
    names, lossless_names, arguments, heights = work
    heights = heights.astype(np.float64)
    swept = {name: sweep(name, heights, arguments.max_rate) for name in names}
    bounded = {}
    for name in names:
        if CODECS[name][4]:
            held = [within(name, heights, bound) for bound in arguments.bounds]
            bounded[name] = [entry for entry in held if entry]
    symbols = whole_steps(heights, arguments.step)
    sizes = {name: None if symbols is None else LOSSLESS[name][0](symbols) for name in lossless_names}
    return swept, bounded, sizes, measures(heights, heights[::-1])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tiles")
    parser.add_argument("--side", type=int, required=True)
    parser.add_argument("--max-rate", type=float, required=True, help="bits per pixel at which a sweep ends")
    parser.add_argument("--bounds", type=float, nargs="*", required=True, help="greatest errors in metres")
    parser.add_argument("--step", type=float, required=True, help="what heights are rounded to for lossless codecs, in metres")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--only", nargs="*", help="parts of the names of codecs")
    arguments = parser.parse_args()
    tiles = np.fromfile(arguments.tiles, "<f4").reshape(-1, arguments.side, arguments.side)
    wanted = lambda name: not arguments.only or any(part.lower() in name.lower() for part in arguments.only)
    needs = {name: entry[1] for name, entry in {**CODECS, **LOSSLESS}.items() if wanted(name)}
    absent = [{"name": name, "reason": reason} for name, need in needs.items() if (reason := why_absent(need))]
    missing = {entry["name"] for entry in absent}
    names = [name for name in CODECS if name in needs and name not in missing]
    lossless_names = [name for name in LOSSLESS if name in needs and name not in missing]
    with ProcessPoolExecutor(arguments.jobs) as pool:
        results = list(pool.map(one_tile, [(names, lossless_names, arguments, tile) for tile in tiles]))
    codecs = [
        {
            "name": name,
            "variant": CODECS[name][5],
            "points": [[tile, *point] for tile, result in enumerate(results) for point in result[0][name]],
            "bounds": [[tile, *held] for tile, result in enumerate(results) for held in result[1].get(name, [])],
        }
        for name in names
    ]
    versions = {"imagecodecs": getattr(imagecodecs, "__version__", None), "av": getattr(av, "__version__", None)}
    output = {
        "format": 1,
        "versions": {name: version for name, version in versions.items() if version},
        "check": [result[3] for result in results],
        "codecs": codecs,
        "lossless": [{"name": name, "bytes": [result[2][name] for result in results]} for name in lossless_names],
        "absent": absent,
    }
    json.dump(output, sys.stdout)


if __name__ == "__main__":
    main()
