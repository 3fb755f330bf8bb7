"""Compares what `reader.py` gets from generated files with what the program got from them: every field of the head, every
height and mask of every level.

    generated.py FOLDER     # N.trn, N.json and N.f64, as `just test-differential` writes them

Heights of full resolution and of integers must be equal in every bit. Those of overviews in trees of wavelets may differ by
what section 13.5 allows two readers; how many are equal is said. Exits 1 if a file differs. Needs NumPy.
"""

import hashlib
import json
import sys
import time
from collections import Counter
from pathlib import Path

import numpy as np

import reader

MODELS = Path(__file__).resolve().parent.parent / "crates/terrane-codec/models"
METHODS = ["integers", "transinr", "functa", "huvr", "huvr-siren", "context"]
ALLOWED = 2.0**-39  # of the largest height: each reader is within 2^-40 of the exact value


def same(a, b):
    """Equal numbers, also of the same sign where they are 0, or no numbers both."""
    a, b = np.float64(a), np.float64(b)
    return bool(np.isnan(a) and np.isnan(b)) or a.tobytes() == b.tobytes()


def bound(head):
    """The error bound as the program writes it."""
    exact = {2: {"lossless": {"as_f32": False}}, 3: {"lossless": {"as_f32": True}}}
    return {0: "none", 1: {"max_error": head.max_error}, **exact}[head.bound]


def no_data(value):
    """The value of missing pixels, from what JSON can say."""
    return float(value) if isinstance(value, str) else value


def wrong_fields(head, said):
    """The fields of the head that differ."""
    statistics = said.get("statistics") or dict.fromkeys(
        ("pixels", "tiles", "rmse_m", "max_error_m", "lowest_m", "highest_m"), 0
    )
    samples, keys, model = said["samples"], said["geo_keys"], said["model"]
    pyramid = {"width": head.columns, "height": head.rows, "side": head.side, "levels": len(head.levels)}
    nodata, scale, offset, kind, unit, description = head.samples
    directory, doubles, text = head.geo_keys
    numbers = {
        **{f"affine {i}": pair for i, pair in enumerate(zip(head.transform, said["affine"], strict=True))},
        **{f"key {i}": pair for i, pair in enumerate(zip(doubles, keys["doubles"], strict=True))},
        "rmse": (head.rms_error, statistics["rmse_m"]),
        "largest error": (head.largest_error, statistics["max_error_m"]),
        "lowest": (head.lowest, statistics["lowest_m"]),
        "highest": (head.highest, statistics["highest_m"]),
        "scale": (scale, samples["scale"]),
        "offset": (offset, samples["offset"]),
    }
    qualities = [(q["rmse_m"], q["max_error_m"]) for q in said.get("overviews", [])]
    for level, (ours, theirs) in enumerate(zip(head.qualities, qualities, strict=True), 1):
        numbers |= {f"level {level}, {i}": pair for i, pair in enumerate(zip(np.float32(ours), np.float32(theirs)))}
    others = {
        "pyramid": (pyramid, said["pyramid"]),
        "method": (METHODS[head.method], said["method"]),
        "georeferenced": (head.georeferenced, said["is_georeferenced"]),
        "point": (head.points, said["pixel_is_point"]),
        "codes": ([head.horizontal, head.vertical], said["epsg"]),
        "keys": (list(directory), keys["directory"]),
        "text of keys": (text, keys["text"]),
        "wkt": (head.wkt, said["wkt"]),
        "sample": (kind, samples["kind"]),
        "unit": (unit, samples["unit"]),
        "description": (description, samples["description"]),
        "bound": (bound(head), said["bound"]),
        "pixels": (head.valid_pixels, statistics["pixels"]),
        "tiles": (head.records, statistics["tiles"]),
        "no data": (nodata is None, samples["nodata"] is None),
    }
    if nodata is not None and samples["nodata"] is not None:
        numbers["no data"] = nodata, no_data(samples["nodata"])
    if head.model and model:
        embedded = model["embedded"] and tuple(model["embedded"][key] for key in ("offset", "length", "crc"))
        found = (head.model.sha256.hex(), head.model.name, head.model.address, head.model.embedded)
        others["model"] = found, (model["sha256"], model["name"], model["address"], embedded)
    others["has model"] = bool(head.model), bool(model)
    wrong = [name for name, (ours, theirs) in numbers.items() if not same(ours, theirs)]
    return wrong + [name for name, (ours, theirs) in others.items() if ours != theirs]


class Comparison:
    """Compares files, and counts."""

    def __init__(self):
        self.given = {hashlib.sha256(data).digest(): data for data in (p.read_bytes() for p in MODELS.iterdir())}
        self.loaded, self.files, self.heights, self.above, self.equal, self.kinds = {}, 0, 0, 0, 0, Counter()
        self.part = 0.0  # the largest difference of overviews of wavelets, in parts of what is allowed

    def model(self, terrain):
        """The model of a file, which is made ready once for all of them."""
        if terrain.head.method != 5 or terrain.head.model.embedded:
            return
        sha256 = terrain.head.model.sha256
        terrain.given = self.given[sha256]
        if sha256 not in self.loaded:
            self.loaded[sha256] = terrain.model
        terrain.model = self.loaded[sha256]

    def wrong(self, path):
        """What differs in a file."""
        self.files += 1
        try:
            terrain = reader.Terrain(path.read_bytes())
            self.model(terrain)
            terrain.check()
            wrong = wrong_fields(terrain.head, json.loads(path.with_suffix(".json").read_text()))
            expected = np.fromfile(path.with_suffix(".f64"), "<f8")
            levels = [terrain.heights(level) for level in range(len(terrain.head.levels))]
        except (reader.Fault, reader.NoModel) as error:
            return [repr(error)]
        if sum(level.size for level in levels) != expected.size:
            return [*wrong, "another number of heights"]
        for page in range(len(terrain.head.root)):
            records = terrain.page(page).items()
            self.kinds.update(reader.Record(terrain.checked_record(number, *entry)).kind for number, entry in records)
        start = 0
        for number, level in enumerate(levels):
            golden = expected[start : start + level.size]
            start += level.size
            wrong += self.wrong_level(terrain, number, level.ravel(), golden)
        return wrong

    def wrong_level(self, terrain, number, found, golden):
        """What differs in a level."""
        missing = np.isnan(golden)
        if not np.array_equal(np.isnan(found), missing):
            return [f"level {number}: another mask"]
        found, golden = found[~missing], golden[~missing]
        equal = found.view("u8") == golden.view("u8")
        self.heights += found.size
        if number and terrain.head.method == 5:
            self.above += found.size
            self.equal += int(equal.sum())
            allowed = ALLOWED * max(np.abs(golden).max(initial=0.0), terrain.head.highest, -terrain.head.lowest)
            differences = np.abs(found - golden)
            self.part = max(self.part, differences.max(initial=0.0) / max(allowed, sys.float_info.min))
            equal = equal | (differences <= allowed)
        if equal.all():
            return []
        at = int(np.flatnonzero(~equal)[0])
        return [f"level {number}: {np.count_nonzero(~equal)} heights differ, first {found[at]!r} instead of {golden[at]!r}"]


def main(folder):
    """Compares all files of a folder; 1 if any differs."""
    comparison, failed, start = Comparison(), 0, time.monotonic()
    for path in sorted(Path(folder).glob("*.trn"), key=lambda path: int(path.stem)):
        if wrong := comparison.wrong(path):
            failed += 1
            print(f"{path.name}: {'; '.join(wrong)}", flush=True)
        if comparison.files % 100 == 0:
            print(f"{comparison.files} files, {failed} differ, {time.monotonic() - start:.0f} s", flush=True)
    names = {0: "of integers", 2: "of pictures", 3: "of details"}
    records = ", ".join(f"{comparison.kinds[kind]} {name}" for kind, name in names.items())
    print(
        f"{comparison.files} files with {comparison.heights} heights compared, {failed} differ; of {comparison.above} heights of "
        f"overviews of wavelets {comparison.equal} are equal in every bit, and the others differ by at most {comparison.part:.1e} "
        f"of what is allowed; records: {records}"
    )
    return int(failed > 0 or not comparison.files)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
