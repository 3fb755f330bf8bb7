"""The paper's runs, one after another, on a machine that is lent by the minute.

    python3 tools/paper.py next TERRANE TILES WORK RECORDS SECONDS     trains and measures what the manifest has next
    python3 tools/paper.py list RECORDS                                which runs are recorded, and what the others wait for

`next` ends after SECONDS at the latest, with exit code 75 where something is left for another call, which goes on where this one stopped.
TILES is a dataset with the splits train and test, and val and unseen where it has them. WORK keeps what a run needs to go on: its
checkpoint and its weights, 1.5 GB, which are removed when it is recorded, and the records. RECORDS gets a folder for each run that is
whole: results/paper of the repository, or what comes back from a machine; runs that either has are not made again.

    NAME/config.toml, metrics.jsonl    the training, every setting stated
    NAME/eval-SPLIT.json               `terrane eval --json`: derivatives in both conventions, those of the ground, by raster;
                                       eval-train.json is of 500 tiles of the train split, always the same
    NAME/rasters.csv                   the same by raster, a line each, and a line of all
    NAME/ptq.csv, fit.json, tokens.json    tokens rounded, fitted and looked at, where a method has them
    NAME/run.json                      what it is of, settings that differ from the preset's, the program's revision, the host, the data, the
                                       SHA-256 of the weights, and the seconds of every part
"""

import argparse
import csv
import hashlib
import json
import os
import platform
import shutil
import signal
import subprocess
import sys
import time
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PRESETS = ROOT / "crates/terrane-train/src/presets"
#: The exit code that asks for another call.
AGAIN = 75
#: Seconds in which a part that is told to end does so.
GRACE = 20
#: Tiles of the train split that are measured.
TRAIN_TILES = 500
SPLITS = ("test", "val", "unseen", "train")
#: Digits of a number in an evaluation of many tiles.
DIGITS = 6


class OutOfTime(Exception):
    """A part was not done in time."""


def expanded(manifest: dict) -> list[dict]:
    """The runs of a manifest, each with all its settings."""
    runs = []
    for run in manifest["runs"]:
        common = manifest["presets"].get(run["preset"], {}).get("settings", [])
        run = {**run, "settings": [*common, *run.get("settings", [])]}
        seeds = run.pop("seeds", None)
        if seeds is None:
            runs.append(run)
            continue
        for seed in seeds:
            runs.append({**run, "name": f"{run['name']}-seed{seed}", "settings": [*run["settings"], f"seed={seed}"]})
    names = [run["name"] for run in runs]
    twice = {name for name in names if names.count(name) > 1}
    if twice:
        raise SystemExit(f"the manifest has {', '.join(sorted(twice))} twice")
    return runs


def is_recorded(name: str, *folders: Path) -> bool:
    return any((folder / name / "run.json").exists() for folder in folders)


def flat(table: dict, prefix: str = "") -> dict:
    """The values of a configuration by their dotted keys."""
    values = {}
    for key, value in table.items():
        values |= flat(value, f"{prefix}{key}.") if isinstance(value, dict) else {f"{prefix}{key}": value}
    return values


def sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def answer(*command) -> str | None:
    """What a command prints, if it is there and ends well."""
    try:
        return subprocess.run(command, check=True, capture_output=True, text=True, cwd=ROOT).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return None


def rounded(value):
    """The same with numbers of a few digits."""
    if isinstance(value, float):
        return float(f"{value:.{DIGITS}g}")
    if isinstance(value, dict):
        return {key: rounded(item) for key, item in value.items()}
    return [rounded(item) for item in value] if isinstance(value, list) else value


class Work:
    """One run on its way to its record."""

    def __init__(self, arguments, run: dict, deadline: float):
        self.terrane, self.tiles = arguments.terrane.resolve(), arguments.tiles.resolve()
        self.device, self.fit, self.revision = arguments.device, arguments.fit, arguments.revision
        self.run, self.deadline = run, deadline
        self.folder = arguments.work.resolve() / "runs" / run["name"]
        self.training, self.record = self.folder / "run", self.folder / "record"
        self.record.mkdir(parents=True, exist_ok=True)
        self.log = self.folder / "seconds.json"

    def part(self, name: str, *command, output: Path | None = None) -> None:
        """Runs a command in what is left of the time; what it prints becomes a file once it has ended well."""
        left = self.deadline - time.monotonic() - GRACE
        if left <= 0:
            raise OutOfTime(name)
        start = time.monotonic()
        partial = output and output.with_suffix(".part")
        with partial.open("wb") if partial else open(os.devnull, "wb") as out:
            process = subprocess.Popen([str(part) for part in command], stdout=out)
            try:
                code = process.wait(left)
            except subprocess.TimeoutExpired:
                code = None
            finally:
                if process.poll() is None:
                    process.send_signal(signal.SIGINT)
                    try:
                        process.wait(GRACE)
                    except subprocess.TimeoutExpired:
                        process.kill()
                        process.wait()
        seconds = round(time.monotonic() - start, 1)
        took = json.loads(self.log.read_text()) if self.log.exists() else {}
        took[name] = round(took.get(name, 0) + seconds, 1)
        self.log.write_text(json.dumps(took))
        if code is None:
            raise OutOfTime(name)
        if code != 0:
            raise SystemExit(f"{self.run['name']}: {name} failed with exit code {code}: {' '.join(map(str, command))}")
        print(f"{self.run['name']}: {name} in {seconds} s", flush=True)
        if partial:
            partial.replace(output)

    def train(self) -> None:
        if (self.training / "model.safetensors").exists():
            return
        common = ("--data", self.tiles, "--out", self.training, "--device", self.device)
        if (self.training / "checkpoint.safetensors").exists():
            self.part("training", self.terrane, "train", "--resume", *common)
            return
        # Nothing goes on from a training that was stopped before its first checkpoint.
        shutil.rmtree(self.training, ignore_errors=True)
        settings = [part for setting in self.run["settings"] for part in ("--set", setting)]
        self.part("training", self.terrane, "train", self.run["preset"], *common, *settings)

    def splits(self) -> list[str]:
        information = json.loads(answer(self.terrane, "dataset", "info", self.tiles, "--json") or "{}")
        there = {split["split"] for split in information["splits"]}
        return [split for split in SPLITS if split in there]

    def evaluate(self, split: str) -> None:
        output = self.record / f"eval-{split}.json"
        if output.exists():
            return
        some = ("--tiles", TRAIN_TILES) if split == "train" else ()
        command = (self.terrane, "eval", self.training, "--data", self.tiles, "--split", split, "--device", self.device, "--json", *some)
        whole = self.folder / output.name
        self.part(output.name, *command, output=whole)
        [report] = json.loads(whole.read_text())
        report["model"] = self.run["name"]
        partial = output.with_suffix(".part")
        partial.write_text(json.dumps([rounded(report)]) + "\n")
        partial.replace(output)

    def diagnose(self) -> None:
        on = (self.training, "--data", self.tiles, "--device", self.device, "--json", "--split", "test")
        preset = self.run["preset"].removesuffix("-small")
        if preset.startswith("huvr"):
            if not (fit := self.record / "fit.json").exists():
                self.part(fit.name, self.terrane, "diagnose", "fit", *on, "--steps", self.fit, "--batch", 35, output=fit)
            if not (tokens := self.record / "tokens.json").exists():
                self.part(tokens.name, self.terrane, "diagnose", "tokens", *on, output=tokens)
        if not (self.record / "ptq.csv").exists():
            # Tables take networks from the folder of runs, by the name of their row.
            tables = self.folder / "tables"
            (tables / "runs").mkdir(parents=True, exist_ok=True)
            link = tables / "runs" / preset
            link.unlink(missing_ok=True)
            link.symlink_to(self.training)
            command = (self.terrane, "bench", "ptq", "--method", preset, "--data", self.tiles, "--out", tables, "--device", self.device)
            self.part("ptq.csv", *command)
            shutil.copy(tables / "ptq.csv", self.record / "ptq.part")
            (self.record / "ptq.part").replace(self.record / "ptq.csv")

    def write_rasters(self, splits: list[str]) -> None:
        kinds = {"": "summary", "_by_differences": "by_differences", "_of_zero": "zero"}
        measures = ("gradient_rmse_m_per_px", "laplacian_rmse_m_per_px2")
        header = ["split", "raster", "region", "tiles", "psnr_db", "rmse_m"]
        header += [measure + kind for kind in kinds for measure in measures]
        with (self.record / "rasters.csv").open("w", newline="") as file:
            lines = csv.writer(file, lineterminator="\n")
            lines.writerow(header)
            for split in splits:
                [report] = json.loads((self.record / f"eval-{split}.json").read_text())
                whole = {
                    "raster": "all", "region": "", "summary": report["summary"],
                    "by_differences": report["summary_by_differences"], "zero": report["summary_of_zero"],
                }  # fmt: skip
                for row in [*report["rasters"], whole]:
                    heights = [row["summary"][measure] for measure in ("tiles", "psnr_db", "rmse_m")]
                    derivatives = [row[kind][measure] for kind in kinds.values() for measure in measures]
                    lines.writerow([split, row["raster"], row["region"], *heights, *derivatives])

    def write_run(self) -> None:
        config = tomllib.loads((self.training / "config.toml").read_text())
        preset = tomllib.loads((PRESETS / f"{self.run['preset']}.toml").read_text())
        ours, theirs = flat(config), flat(preset)
        model = self.training / "model.safetensors"
        revision = self.revision or answer("git", "rev-parse", "HEAD")
        run = {
            **{key: self.run[key] for key in ("name", "preset", "settings")},
            "shortened": self.run.get("shortened"),
            "differs_from_preset": {key: [theirs.get(key), value] for key, value in ours.items() if theirs.get(key) != value},
            "seed": config["seed"],
            "revision": revision,
            "is_changed_since": bool(answer("git", "status", "--porcelain")) if not self.revision and revision else None,
            "program": answer(self.terrane, "--version"),
            "program_sha256": sha256(self.terrane),
            "host": platform.node(),
            "device": self.device,
            "card": answer("nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"),
            "dataset_sha256": {name: sha256(self.tiles / name) for name in ("dataset.json", "tiles.csv", "heights.f32")},
            "weights_sha256": sha256(model),
            "weights_bytes": model.stat().st_size,
            "fit_steps": self.fit,
            "train_tiles_measured": TRAIN_TILES,
            "seconds": json.loads(self.log.read_text()),
        }
        (self.record / "run.json").write_text(json.dumps(run, indent=2, ensure_ascii=False) + "\n")

    def finish(self, records: Path) -> None:
        """All parts that are not there, then the record in one step, and the weights are gone."""
        self.train()
        splits = self.splits()
        for split in splits:
            self.evaluate(split)
        self.diagnose()
        for name in ("config.toml", "metrics.jsonl"):
            shutil.copy(self.training / name, self.record / name)
        self.write_rasters(splits)
        self.write_run()
        records.mkdir(parents=True, exist_ok=True)
        self.record.replace(records / self.run["name"])
        shutil.rmtree(self.folder)


def bring(records: Path, to: Path) -> None:
    """Copies the records that are not there yet, each in one step."""
    to.mkdir(parents=True, exist_ok=True)
    for record in sorted(records.iterdir()) if records.exists() else ():
        if not is_recorded(record.name, to):
            partial = to / f".{record.name}.part"
            shutil.rmtree(partial, ignore_errors=True)
            shutil.copytree(record, partial)
            partial.replace(to / record.name)


def take_next(arguments, runs: list[dict]) -> int:
    deadline = time.monotonic() + arguments.seconds
    records = arguments.work.resolve() / "records"
    known = (records, arguments.records, ROOT / "results/paper")
    for run in runs:
        if "needs" in run or is_recorded(run["name"], *known):
            continue
        try:
            Work(arguments, run, deadline).finish(records)
        except (OutOfTime, KeyboardInterrupt) as part:
            bring(records, arguments.records)
            print(f"{run['name']}: {str(part) or 'this part'} is not done; call it again to go on")
            return AGAIN
        bring(records, arguments.records)
        print(f"{run['name']}: recorded in {arguments.records / run['name']}", flush=True)
    bring(records, arguments.records)
    print("nothing is left but what waits for the program")
    return 0


def show(arguments, runs: list[dict]) -> int:
    for run in runs:
        if is_recorded(run["name"], arguments.records):
            state = "recorded"
        else:
            state = f"needs {run['needs']}" if "needs" in run else "to be made"
        shortened = f"; {run['shortened']}" if "shortened" in run else ""
        print(f"{run['name']:24} {run['minutes']:4} min  {state}{shortened}")
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--manifest", type=Path, default=Path(__file__).with_suffix(".toml"))
    commands = parser.add_subparsers(required=True)
    one = commands.add_parser("next")
    for name in ("terrane", "tiles", "work", "records"):
        one.add_argument(name, type=Path)
    one.add_argument("seconds", type=float)
    one.add_argument("--device", default="cuda")
    one.add_argument("--fit", type=int, default=1000, help="steps of fitting the tokens of tiles")
    one.add_argument("--revision", help="of the program, where this folder is no repository")
    one.set_defaults(run=take_next)
    listed = commands.add_parser("list")
    listed.add_argument("records", type=Path)
    listed.set_defaults(run=show)
    arguments = parser.parse_args()
    # Who ends this ends what it runs.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    return arguments.run(arguments, expanded(tomllib.loads(arguments.manifest.read_text())))


if __name__ == "__main__":
    sys.exit(main())
