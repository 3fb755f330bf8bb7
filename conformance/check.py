"""Checks all cases with `reader.py`: symbols, heights, overviews, and that a flipped bit is noticed. See README.md."""

import sys
import time
import tomllib
from pathlib import Path

import numpy as np

import reader

HERE = Path(__file__).resolve().parent
MODELS = {4: HERE.parent / "crates/terrane-networks/models/huvr-siren-small.safetensors", 5: HERE / "context.safetensors"}
FLIPS = 200
OVERVIEWS_M = 1e-6  # how far heights of overviews may be off, where the case does not allow more


# Appendix E of the specification


def entropy_coder():
    """Bits, raw bits, frequencies, lanes, and flags of details."""
    coder, context = reader.EntropyDecoder(bytes.fromhex("94 89 68")), [32768, 32768, 0]
    assert [coder.bit(context) for _ in range(8)] == [1, 1, 0, 1, 0, 0, 0, 1] and context == [32767, 32767, 8]
    coder.end()
    coder = reader.EntropyDecoder(bytes.fromhex("00 50 34 12"))
    assert coder.raw(20) == 0x12345
    coder.end()
    for stream, lanes, symbols in (
        ("FF FF 01 00 01 00", 1, [(1, 1), (1, 1), (65535, 1)]),
        ("55 FF 7F 00 FF", 1, [(32767, 3), (65280, 256), (65280, 256)]),
        ("55 01 00 80 00 04 00 FF 00 FF", 2, [(32767, 3), (65280, 256), (65280, 256)]),
    ):
        coder = reader.EntropyDecoder(bytes.fromhex(stream), lanes)
        for place, (cumulative, frequency) in enumerate(symbols):
            assert cumulative <= coder.decode_target(place % lanes) < cumulative + frequency
            coder.consume(cumulative, frequency, place % lanes)
        coder.end()
    for count, stream in enumerate(("00 80", "01 00 80", "03 00 80"), 1):
        coder = reader.EntropyDecoder(bytes.fromhex(stream))
        assert [coder.raw(1) for _ in range(count)] == [1] * count
        coder.end()


def bits(*rows):
    """A mask from its rows."""
    return np.array([[int(bit) for bit in row] for row in rows], bool)


def masks():
    """Masks by themselves and below others, and flat areas."""
    mask = bits("00000", "01100", "01110")
    assert np.array_equal(reader.decode_mask(bytes.fromhex("33 11 51 B1"), 5, 3), mask)
    above = reader.inherited(bits("000", "010"), 0, 0, 5, 3)
    assert np.array_equal(reader.decode_mask(bytes.fromhex("AF 01 CA 95"), 5, 3, above), mask)
    mask, above = bits("000000", "011000", "011100"), reader.inherited(bits("1111", "1000", "1010"), 1, 1, 6, 3)
    assert np.array_equal(reader.decode_mask(bytes.fromhex("15 0E 84 FF"), 6, 3, above), mask)
    areas = "04 B6 01 00 00 00 00 00 00 00 C8 79 40 00 00 00 00 00 F4 78 40"
    heights = np.zeros((3, 4))
    reader.FlatAreas(bytes.fromhex(areas), 4, 3).flatten(heights)
    assert heights.tolist() == [[412.5, 412.5, 0, 0], [412.5, 0, 0, 399.25], [0, 0, 399.25, 399.25]]
    areas = "04 C6 07 00 00 00 00 00 00 00 C8 79 40 04 70 05 52 DF 00 00 00 00 00 F4 78 40"
    heights = np.zeros((3, 4))
    reader.FlatAreas(bytes.fromhex(areas), 4, 3).flatten(heights)
    assert heights.tolist() == [[412.5, 412.5, 399.25, 399.25], [412.5, 412.5, 412.5, 399.25], [0, 0, 0, 399.25]]


def integers():
    """Integers of both predictions and with missing pixels."""
    whole = [[10, 12, 13, 13], [11, 13, 15, 14], [-5, 300, 15, 15]]
    holes = [[10, 12, 13, 13], [11, 12, 13, 14], [-5, 300, 15, 15]]
    for stream, median, mask, values in (
        ("0D FC 9E FF 1A 8B E4 8C 0A CF 5E FF 3B", True, None, whole),
        ("71 73 61 98 33 3D AD A5 CB 5F 9A 13 D0 D8", False, None, whole),
        ("03 F1 FB C5 A5 7E 0E 51 82 AA 61", True, bits("0000", "0110", "0000"), holes),
    ):
        assert reader.decode_integers(bytes.fromhex(stream), 4, 3, median, mask).tolist() == values


def corrections():
    """Corrections with a missing pixel, and what they add."""
    data = bytes.fromhex("00 00 00 3F 60 40 50 15 3D 98 F5 0A 80 E1 A8")
    found = reader.Corrections(data, bits("000000", "001000", "000000"))
    assert found.coarse.tolist() == [[1, 0]] and found.fine.tolist() == [[0, -1, 0], [0, 0, 2]]
    assert found.pixels.tolist() == [[0, 0, 0, 1, 0, 0], [0, -3, 0, 0, 0, 0], [0, 0, 0, 0, 0, 1]]
    assert (found.metres() * 262144).tolist() == [
        [50784, 56320, 5120, 67168, 7744, 2208],
        [70656, -260096, 32768, 11392, 45056, 31744],
        [70656, 95168, 83968, 84992, 158656, 216064],
    ]


def index():
    """An index page, trees and checksums."""
    page = bytes.fromhex("64 90 04 00 BC 02 00 07 00 00 AC 02 01 BF 07 00 00")
    trees = [[0], [*range(1, 86)], [*range(86, 91)], [91, 92, 93]]
    records = {0: (264, 100), 86: (364, 7), 89: (371, 300), 90: (671, 9), 93: (200, 1)}
    assert reader.read_page(page, trees) == records
    pyramid = reader.Pyramid(5000, 3000, 256, 6)
    grids = [(20, 12), (10, 6), (5, 3), (3, 2), (2, 1), (1, 1)]
    assert [(level.columns, level.rows) for level in pyramid.levels] == grids
    assert pyramid.trees == 7 and pyramid.first_trees == {3: 0, 5: 6}
    assert len(pyramid.tree(0)) == 85 and len(pyramid.tree(5)) == 22
    assert sorted(tile for tree in range(7) for tile in pyramid.tree(tree)) == [*range(pyramid.tiles)]
    assert reader.crc32c(b"123456789") == 0xE3069283 and reader.crc32c(b"") == 0
    assert reader.crc32c((7).to_bytes(8, "little") + b"\0") == 0x7C85A6B9


def wavelets():
    """The inverse 9/7, and a picture in longer steps."""
    none = np.zeros((0, 3), np.int64)
    for ll, hl, lh, hh, image in (
        (
            *([[6400, 6528, -64], [1280, 0, 320]], [[64, -128], [0, 64]], [[0, 128, -64]], [[64, 0]]),
            [[3477, 3865, 3823, 1377, -356], [1893, 2033, 1763, 674, -141], [476, -75, -526, -77, 241]],
        ),
        ([[6400, 6528, -64]], [[64, -128]], none, none[:, :2], [[3146, 3572, 3476, 1236, -324]]),
        ([[6400]], none[:, :0].reshape(1, 0), none[:, :1], none[:, :0], [[3200]]),
    ):
        bands = [np.array(band, np.int64) for band in (hl, lh, hh)]
        assert reader.inverse_transform(np.array(ll), bands, lossless=False).tolist() == image
    for coarser, values, expected in (8, [1000, -1000], [667, -667]), (16, [3, -3], [2, -1]):
        picture = reader.Picture(np.array([values]), np.array([values]), None, False).coarser(coarser)
        assert picture.context.tolist() == picture.decoded.tolist() == [expected]


def overviews():
    """The border of a root, positions of pixels, and weights."""
    assert reader.GROWTH == 1.9998755873825247
    positions = [0.0, 2, 4.5], [0.0, 1.6]
    axes = [reader.bordered_positions(np.array(at), 1, False, False, None, 0) for at in positions]
    assert np.abs(axes[0].at - [-4, -2, 0, 2, 4.5, 6.5, 8.5]).max() < 1e-12
    assert np.abs(axes[1].at - [-4, -2, 0, 1.6, 3.6, 5.6]).max() < 1e-12
    root = reader.with_border(np.array([[100.0, 104, 114], [96, 100, 106]]), axes)
    expected = [
        [102, 106, 110, 114, 134, 150, 166],
        [97, 101, 105, 109, 124, 136, 148],
        [92, 96, 100, 104, 114, 122, 130],
        [88, 92, 96, 100, 106, 110.8, 115.6],
        [83, 87, 91, 95, 96, 96.8, 97.6],
        [78, 82, 86, 90, 86, 82.8, 79.6],
    ]
    assert np.abs(root - expected).max() < 1e-12
    below = reader.bordered_positions(np.array([8.25, 10.0]), 1, True, False, axes[0], 1)
    assert np.abs(below.at - [0, 1, 8.25, 10, 12, 14]).max() < 1e-12
    for lossless, depth, expected in (
        (False, 1, [0.3336178164122087, 2.073267028991197, 4, 6, 8, 10, 11.946502336321448, 14.063436111908057]),
        (False, 2, [0.907495979337293, 4.137319861272664, 7.9023776340973875, 12.115731211000584]),
        (True, 1, [0, 2, 4, 6, 8, 10, 12, 14.25]),
        (True, 2, [0, 4, 8, 12.5625]),
    ):
        assert np.abs(reader.positions(depth, 0, 16, 16, lossless) - expected).max() < 1e-12
    for lossless, expected in (
        (False, [-0.0791015625, 0.8935546875, 0.2001953125, -0.0146484375]),
        (True, [-0.00439453125, 0.7527669270833333, 0.2576497395833333, -0.006022135416666667]),
    ):
        assert np.abs(reader.kernel(1, lossless) - expected).max() < 1e-15


TEST_VALUES = entropy_coder, masks, integers, corrections, index, wavelets, overviews


# Cases


def all_symbols(terrain):
    """The symbols of level 0 in the order of `symbols.i64`, and where each tile begins in them."""
    parts, starts, count = [np.zeros(0, np.int64)], [], 0
    for row, column, tile in terrain.tiles(0):
        if tile:
            starts.append((count, row, column))
            parts += [part.ravel() for part in (tile.symbols, *tile.remains)]
            count += sum(part.size for part in (tile.symbols, *tile.remains))
    return np.concatenate(parts), starts


def wrong_symbols(terrain, golden):
    """What is wrong with the symbols; nothing where all are equal."""
    found, starts = all_symbols(terrain)
    if found.size != golden.size:
        return [f"{found.size} symbols instead of {golden.size}"]
    differ = np.flatnonzero(found != golden)
    if not differ.size:
        return []
    at = differ[0]
    start, row, column = max(start for start in starts if start[0] <= at)
    where = f"symbol {at - start} of the tile in row {row}, column {column}: {found[at]} instead of {golden[at]}"
    return [f"{differ.size} of {golden.size} symbols differ, first {where}"]


def wrong_heights(what, found, golden, rms_m, peak_m):
    """What is wrong with heights, and by how much they differ in the root mean square and at the peak."""
    if found.size != golden.size:
        return [f"{what}: {found.size} heights instead of {golden.size}"], (np.nan, np.nan)
    differ = np.flatnonzero(np.isnan(found) != np.isnan(golden))
    if differ.size:
        reason = f"{what}: {differ.size} pixels are missing in one of both alone, first pixel {differ[0]}"
        return [reason], (np.nan, np.nan)
    off = np.abs(found - golden)[~np.isnan(golden)]
    rms, peak = (np.sqrt(np.mean(off**2)), off.max()) if off.size else (0.0, 0.0)
    if rms <= rms_m and peak <= peak_m:
        return [], (rms, peak)
    first = np.flatnonzero(np.abs(found - golden) > peak_m)
    where = f", first at pixel {first[0]}" if first.size else ""
    return [f"{what}: rms {rms:.1e} m of {rms_m} m, peak {peak:.1e} m of {peak_m} m{where}"], (rms, peak)


def unnoticed_flips(data):
    """The bits, out of those at spread offsets, of which a change is not noticed."""
    unnoticed = []
    for bit in np.linspace(0, 8 * len(data) - 1, FLIPS).astype(int).tolist():
        damaged = bytearray(data)
        damaged[bit // 8] ^= 1 << bit % 8
        try:
            reader.Terrain(bytes(damaged)).check()
            unnoticed.append(bit)
        except reader.Fault:
            pass
    return unnoticed


def golden(folder, name, kind):
    """The numbers of a file of a case; none where it is not there."""
    path = folder / name
    return np.fromfile(path, kind) if path.exists() else np.zeros(0, kind)


def check(folder, models):
    """What is wrong with a case, and how far its heights are off."""
    case = tomllib.loads((folder / "case.toml").read_text())
    data = (folder / "input.trn").read_bytes()
    try:
        terrain = reader.Terrain(data)
        terrain.given = models.get(terrain.head.method)
        terrain.check()
        wrong = wrong_symbols(terrain, golden(folder, "symbols.i64", "<i8"))
        heights = golden(folder, "heights.f64", "<f8")
        more, (rms, peak) = wrong_heights("level 0", terrain.heights(0).ravel(), heights, case["rms_m"], case["peak_m"])
        wrong += more
        levels = [terrain.heights(level).ravel() for level in range(1, len(terrain.head.levels))]
        if levels and not (folder / "overviews.f64").exists():
            wrong.append("no overviews.f64")
        expected, allowed = golden(folder, "overviews.f64", "<f8"), max(OVERVIEWS_M, case["peak_m"])
        more, (_, above) = wrong_heights("overviews", np.concatenate([[], *levels]), expected, allowed, allowed)
        wrong += more
    except (reader.Fault, reader.NoModel) as error:
        return [repr(error)], ""
    if unnoticed := unnoticed_flips(data):
        wrong.append(f"{len(unnoticed)} of {FLIPS} flipped bits not noticed, first bit {unnoticed[0]}")
    return wrong, f"rms {rms:.1e} m, peak {peak:.1e} m, overviews {above:.1e} m"


def main():
    """Checks all cases; 1 if any fails."""
    for test in TEST_VALUES:
        test()
    print("appendix E            ok")
    models, failed = {method: path.read_bytes() for method, path in MODELS.items()}, []
    for path in sorted(HERE.glob("*/case.toml")):
        start, name = time.monotonic(), path.parent.name
        wrong, measured = check(path.parent, models)
        print(f"{name:22}{'FAILED' if wrong else 'ok':6}  {measured}  ({time.monotonic() - start:.1f} s)", flush=True)
        for reason in wrong:
            print(f"    {reason}", flush=True)
        failed += [name] if wrong else []
    if failed:
        print(f"{len(failed)} cases failed: {', '.join(failed)}")
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
