"""Checks all cases with `reader.py`: symbols, heights, extremes, and that a flipped bit is noticed. See README.md."""

import sys
import time
import tomllib
from pathlib import Path

import numpy as np

import reader

HERE = Path(__file__).resolve().parent
MODELS = {4: HERE.parent / "crates/terrane-networks/models/huvr-siren-small.safetensors", 5: HERE / "context.safetensors"}
FLIPS = 200


def appendix_e():
    """Checks the test values of the specification."""
    coder, context = reader.RangeDecoder(bytes.fromhex("59 5B FF D1")), [32768, 32768, 0]
    assert [coder.bit(context) for _ in range(8)] == [1, 1, 0, 1, 0, 0, 0, 1] and context == [32767, 32767, 8]
    coder.end()
    coder = reader.RangeDecoder(bytes.fromhex("12 34 3D CB B0"))
    assert coder.raw(20) == 0x12345
    coder.end()
    for stream, symbols in (
        ("00 01 00 00 FF FD 00 01", [(1, 1), (1, 1), (65535, 1)]),
        ("80 01 7E FE 01", [(32767, 3), (65280, 256), (65280, 256)]),
    ):
        coder = reader.RangeDecoder(bytes.fromhex(stream))
        for cumulative, frequency in symbols:
            assert cumulative <= coder.decode_target() < cumulative + frequency
            coder.consume(cumulative, frequency)
        coder.end()
    mask = reader.decode_mask(bytes.fromhex("C8 11 DD 19"), 5, 3)
    assert mask.astype(int).tolist() == [[0, 0, 0, 0, 0], [0, 1, 1, 0, 0], [0, 1, 1, 1, 0]]
    whole = [[10, 12, 13, 13], [11, 13, 15, 14], [-5, 300, 15, 15]]
    holes = [[10, 12, 13, 13], [11, 12, 13, 14], [-5, 300, 15, 15]]
    missing = np.zeros((3, 4), bool)
    missing[1, 1:3] = True
    for stream, median, mask, integers in (
        ("C7 6C E7 96 0C BF CC B6 DA 2A 7D 5E AF 3B", True, None, whole),
        ("C7 5F 63 D9 91 63 44 C0 6E 30 9F 7A 09 BF F2", False, None, whole),
        ("C7 6C E7 94 67 00 D6 77 19 61 90", True, missing, holes),
    ):
        assert reader.decode_integers(bytes.fromhex(stream), 4, 3, median, mask).tolist() == integers
    assert reader.crc32c(b"123456789") == 0xE3069283 and reader.crc32c(b"") == 0
    assert reader.crc32c((7).to_bytes(8, "little") + b"\0") == 0x7C85A6B9


def decode(terrain, tiles):
    """All symbols and the raster of level 0, from its tiles."""
    grid, side = terrain.head.levels[0], terrain.head.side
    symbols, heights = [np.zeros(0, np.int64)], np.full((grid.height, grid.width), np.nan)
    for row, column, tile in tiles:
        if tile is not None:
            symbols += [tile.symbols.ravel()] + ([] if tile.residual is None else [tile.residual.ravel()])
            window = heights[row * side : (row + 1) * side, column * side : (column + 1) * side]
            window[:] = tile.heights
    return np.concatenate(symbols), heights.ravel()


def extremes_differ(tile, peak):
    """Whether the heights of a tile are not within its stated extremes, or fall short of them; `peak` is allowed."""
    heights, (low, high) = tile.heights[~tile.missing], tile.extremes
    limit = peak + 2 * np.spacing(np.float32(max(abs(low), abs(high))))  # rounded to `f32`, and then outwards
    return heights.size and not all(-peak <= gap <= limit for gap in (heights.min() - low, high - heights.max()))


def unnoticed_flips(data):
    """At how many of the spread offsets a changed bit is not noticed."""
    unnoticed = 0
    for bit in np.linspace(0, 8 * len(data) - 1, FLIPS).astype(int).tolist():
        damaged = bytearray(data)
        damaged[bit // 8] ^= 1 << bit % 8
        try:
            reader.Terrain(bytes(damaged)).check()
            unnoticed += 1
        except reader.Fault:
            pass
    return unnoticed


def check(folder, models):
    """What is wrong with a case, and how far its heights are off."""
    case = tomllib.loads((folder / "case.toml").read_text())
    data = (folder / "input.trn").read_bytes()
    wrong, measured = [], ""
    try:
        terrain = reader.Terrain(data)
        terrain.given = models.get(terrain.head.method)
        terrain.check()
        levels = [[*terrain.tiles(level)] for level in range(len(terrain.head.levels))]
        symbols, heights = decode(terrain, levels[0])
        if any(tile is not None and extremes_differ(tile, case["peak_m"]) for tiles in levels for _, _, tile in tiles):
            wrong.append("extremes")
        if not np.array_equal(symbols, np.fromfile(folder / "symbols.i64", "<i8")):
            wrong.append("symbols")
        golden = np.fromfile(folder / "heights.f64", "<f8")
        if not np.array_equal(np.isnan(heights), np.isnan(golden)):
            wrong.append("missing pixels")
        else:
            off = np.abs(heights - golden)[~np.isnan(golden)]
            rms, peak = (np.sqrt(np.mean(off**2)), off.max()) if off.size else (0.0, 0.0)
            measured = f"rms {rms:.1e} m, peak {peak:.1e} m"
            if rms > case["rms_m"] or peak > case["peak_m"]:
                wrong.append("heights")
    except (reader.Fault, reader.NoModel) as error:
        wrong.append(repr(error))
    if unnoticed := unnoticed_flips(data):
        wrong.append(f"{unnoticed} flipped bits not noticed")
    return wrong, measured


def main():
    """Checks all cases; 1 if any fails."""
    appendix_e()
    print("appendix E            ok")
    models, failed = {method: path.read_bytes() for method, path in MODELS.items()}, False
    for path in sorted(HERE.glob("*/case.toml")):
        start = time.monotonic()
        wrong, measured = check(path.parent, models)
        failed |= bool(wrong)
        verdict = "FAILED: " + ", ".join(wrong) if wrong else "ok"
        print(f"{path.parent.name:22}{verdict:4}  {measured}  ({time.monotonic() - start:.1f} s)", flush=True)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
