#!/usr/bin/env python3
"""Compares two builds of terrane: the files that they write must have the same bytes, and so must what they decode.

    python3 tools/sameness.py BEFORE AFTER FOLDER [RASTER ...]

Three rasters are generated; others are given by name (a few hundred pixels across
are enough). Models of every method are trained for a few steps by BEFORE.
FOLDER keeps what BEFORE made, so that a second run compares with it. Ends with 1 where anything differs.
"""

import hashlib
import pathlib
import subprocess
import sys
import time

# Methods with a model that the program does not hold, and the preset that trains one.
TRAINED = ["transinr", "functa", "huvr", "huvr-siren"]
CONTEXT = [
    ["--max-error", "0.1"],
    ["--max-error", "1", "--effort", "3"],
    ["--max-error", "0.2", "--effort", "0", "--profile", "fast"],
    ["--max-error", "0.2", "--profile", "best"],
    ["--lossless"],
    ["--lossless", "--profile", "fast"],
    ["--rmse", "0.2"],
    ["--rmse", "0.2", "--per-tile"],
    ["--bpp", "0.8", "--per-tile", "--profile", "fast"],
    ["--bpp", "1.5"],
    ["--max-error", "0.5", "--tile", "256", "--embed-model"],
]
INTEGERS = [["--max-error", "0.1"], ["--lossless"], ["--rmse", "0.2"], ["--bpp", "3", "--per-tile"]]
TOKENS = [["--max-error", "0.5"], ["--bits", "8"], ["--bits", "8", "--fixed-width"], ["--rmse", "0.5", "--per-tile"]]
GENERATED = [("hills", "700x530", "1"), ("small", "300x270", "3"), ("odd", "517x257", "9")]


def run(program, *arguments):
    command = [str(program), *map(str, arguments), "--progress", "none"]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode not in (0, 1):
        return f"exit {done.returncode}: {done.stderr.strip().splitlines()[-1:]}"
    return None


def digest(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()[:16] if path.exists() else "none"


def models(before, folder):
    """Models of all methods after a few steps."""
    rasters, tiles = folder / "train", folder / "tiles"
    if not tiles.exists():
        rasters.mkdir(exist_ok=True)
        for name, seed in [("a", "1"), ("b", "2")]:
            run(before, "generate", rasters / f"{name}.tif", "--size", "520x300", "--seed", seed, "--overwrite")
        (rasters / "catalog.csv").write_text("file,split\na.tif,train\nb.tif,test\n")
        run(before, "dataset", "build", rasters, tiles)
    made = {}
    for method in TRAINED:
        model = folder / method / "model.safetensors"
        if not model.exists():
            settings = ["--set", "train.steps=3", "--set", "train.batch=2"]
            failed = run(before, "train", f"{method}-small", "--data", tiles, "--out", model.parent, *settings)
            if failed:
                sys.exit(f"no model of {method}: {failed}")
        made[method] = model
    return made


def cases(made):
    for settings in CONTEXT:
        yield ["--method", "context", *settings], None
    for settings in INTEGERS:
        yield ["--method", "integers", *settings], None
    for settings in TOKENS:
        yield ["--method", "huvr-siren", *settings], None
    for method, model in made.items():
        for settings in TOKENS[:2]:
            yield ["--method", method, *settings], model


def outcome(program, raster, settings, model, folder):
    """Digests of a file and of its heights, at full resolution and of the last overview."""
    file, back, coarse = folder / "x.trn", folder / "back.tif", folder / "coarse.tif"
    with_model = [] if model is None else ["--model", model]
    for path in (file, back, coarse):
        path.unlink(missing_ok=True)
    failed = run(program, "encode", raster, file, *settings, *with_model)
    if failed:
        # Messages may be put otherwise; that a case is refused may not change.
        return "refused"
    run(program, "decode", file, back, *with_model)
    run(program, "decode", file, coarse, "--level", "1", *with_model)
    return " ".join(digest(path) for path in (file, back, coarse))


def main():
    before, after, folder = (pathlib.Path(word) for word in sys.argv[1:4])
    folder.mkdir(exist_ok=True)
    rasters = [pathlib.Path(word) for word in sys.argv[4:]]
    for name, size, seed in GENERATED:
        raster = folder / f"{name}.tif"
        run(before, "generate", raster, "--size", size, "--seed", seed, "--overwrite")
        rasters.append(raster)
    made = models(before, folder)
    compared = differing = refused = 0
    for raster in rasters:
        for settings, model in cases(made):
            words = [raster.stem, *settings, *(["own"] if model else [])]
            known = folder / ("-".join(words).replace("--", "") + ".before")
            if not known.exists():
                known.write_text(outcome(before, raster, settings, model, folder))
            expected = known.read_text()
            if str(after) == "none":
                continue
            found = outcome(after, raster, settings, model, folder)
            compared += 1
            refused += found == "refused"
            if found != expected:
                differing += 1
                print(" ".join(words), "before:", expected, "after:", found, flush=True)
    print(f"{len(rasters)} rasters, {compared} files: {differing} differ, {refused} refused by both")
    return 1 if differing or not compared else 0


if __name__ == "__main__":
    started = time.monotonic()
    code = main()
    print(f"{time.monotonic() - started:.0f} s")
    sys.exit(code)
