"""Terrane for a long time and at a large size: is memory flat, are answers steady, is nothing lost?

    python3 tools/soak.py large TERRANE FOLDER [--side 45000]          encode, verify and decode generated terrain of two gigapixels
    python3 tools/soak.py serve TERRANE FILE [--minutes 20]            mixed requests to the server
    python3 tools/soak.py ray TERRANE FOLDER [--kills 30]              shards on Ray, with workers killed at random

Each prints a table and fails where memory grows, an answer is wrong, or a byte is lost. Needs Python with numpy; `large` and `ray` rasterio, `ray` also
pyterrane and ray. Linux.
"""

import argparse
import http.client
import json
import math
import os
import random
import re
import signal
import subprocess
import sys
import threading
import time
from collections import defaultdict
from pathlib import Path

import numpy as np

MIB = 1 << 20
#: Memory may be this much larger at the end than after the start: what caches and allocators take before they are full.
GROWTH = 1.25


def memory(process: int) -> int:
    """Bytes that a process holds now."""
    text = Path(f"/proc/{process}/status").read_text()
    found = re.search(r"VmRSS:\s+(\d+) kB", text)
    return int(found[1]) * 1024 if found else 0


def watched(arguments: list[str], every: float = 1.0) -> tuple[float, list[int]]:
    """Runs a command, and gives its seconds and the memory it held every so often."""
    start = time.monotonic()
    process = subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    held = []
    reader = threading.Thread(target=lambda: held.append(process.communicate()))
    reader.start()
    samples = []
    while reader.is_alive():
        try:
            samples.append(memory(process.pid))
        except OSError:
            pass
        reader.join(every)
    if process.returncode != 0:
        sys.exit(f"{' '.join(arguments)}: exit {process.returncode}: {held[0][1].strip()[-500:]}")
    return time.monotonic() - start, [sample for sample in samples if sample] or [0]


def is_flat(samples: list[float]) -> bool:
    """Whether the last quarter is no higher than the second one, but for a little."""
    quarter = len(samples) // 4
    if quarter < 2:
        return True
    return float(np.median(samples[3 * quarter :])) <= GROWTH * float(np.median(samples[quarter : 2 * quarter]))


# --- large ---


def octave(row: int, column: int, height: int, width: int, period: int, seed: int) -> np.ndarray:
    """Smooth noise of one size, the same wherever it is cut."""
    def lattice(first: int, count: int, other: int, others: int) -> np.ndarray:
        y, x = np.meshgrid(np.arange(first, first + count), np.arange(other, other + others), indexing="ij")
        mixed = (y * 374_761_393 + x * 668_265_263 + seed * 974_634_777) & 0xFFFFFFFF
        mixed = ((mixed ^ (mixed >> 13)) * 1_274_126_177) & 0xFFFFFFFF
        return ((mixed ^ (mixed >> 16)) / 2**31 - 1).astype(np.float32)

    first, other = row // period, column // period
    nodes = lattice(first, (row + height - 1) // period - first + 2, other, (column + width - 1) // period - other + 2)

    def places(start: int, count: int, origin: int) -> tuple[np.ndarray, np.ndarray]:
        at = (np.arange(start, start + count) / period - origin).astype(np.float32)
        whole = at.astype(np.int64)
        part = at - whole
        return whole, part * part * (3 - 2 * part)

    rows, down = places(row, height, first)
    columns, across = places(column, width, other)
    lines = nodes[:, columns] + (nodes[:, columns + 1] - nodes[:, columns]) * across
    return lines[rows] + (lines[rows + 1] - lines[rows]) * down[:, None]


def terrain(row: int, column: int, height: int, width: int) -> np.ndarray:
    """Heights of a window of an endless terrain: hills of all sizes, in centimetres."""
    heights = np.full((height, width), 800, np.float32)
    for number in range(11):
        period = 4096 >> number
        heights += octave(row, column, height, width, period, number) * np.float32(0.055 * period**0.95)
    return np.round(heights, 2)


def make_raster(path: Path, side: int) -> None:
    """A raster with a hole, written by rows of blocks."""
    import rasterio
    from rasterio.transform import from_origin
    from rasterio.windows import Window

    profile = dict(driver="GTiff", width=side, height=side, count=1, dtype="float32", nodata=-9999, crs="EPSG:3857",
                   transform=from_origin(1_500_000, 6_000_000, 1, 1), tiled=True, blockxsize=512, blockysize=512, compress="zstd",
                   zstd_level=1, predictor=3, BIGTIFF="YES", num_threads="all_cpus")
    with rasterio.open(path, "w", **profile) as out:
        for row in range(0, side, 512):
            count = min(512, side - row)
            heights = terrain(row, 0, count, side)
            if side // 2 <= row < side // 2 + 2048:
                heights[:, side // 3 : side // 3 + 3000] = -9999
            out.write(heights, 1, window=Window(0, row, side, count))


def compare(source: Path, decoded: Path, bound: float) -> float:
    """The largest error of every pixel, with equal nodata."""
    import rasterio
    from rasterio.windows import Window

    worst = 0.0
    with rasterio.open(source) as a, rasterio.open(decoded) as b:
        assert (a.width, a.height) == (b.width, b.height)
        for row in range(0, a.height, 512):
            window = Window(0, row, a.width, min(512, a.height - row))
            left, right = a.read(1, window=window), b.read(1, window=window)
            missing, missed = left == a.nodata, right == b.nodata
            assert np.array_equal(missing, missed), f"row {row}: other pixels are missing"
            if not missing.all():
                worst = max(worst, float(np.abs(left.astype(np.float64) - right)[~missing].max()))
    assert worst <= bound * (1 + 1e-6), f"off by {worst} m"
    return worst


def large(arguments: argparse.Namespace) -> None:
    folder = Path(arguments.folder)
    folder.mkdir(parents=True, exist_ok=True)
    source, file, decoded = folder / "large.tif", folder / "large.trn", folder / "decoded.tif"
    if not source.exists():
        part = folder / "part.tif"
        make_raster(part, arguments.side)
        part.rename(source)
    pixels = arguments.side**2
    print(f"{pixels / 1e9:.2f} gigapixels, {source.stat().st_size / 1e9:.2f} GB")
    commands = {
        "encode": ["encode", str(source), str(file), "--max-error", "0.1", "--overwrite"],
        "verify": ["verify", str(file)],
        "decode": ["decode", str(file), str(decoded), "--overwrite"],
    }
    flat = True
    for name, command in commands.items():
        seconds, samples = watched([arguments.terrane, *command])
        flat &= is_flat(samples)
        print(f"{name:8} {seconds:7.0f} s  {pixels / seconds / 1e6:6.1f} megapixels/s  peak {max(samples) / MIB:6.0f} MiB  "
              f"middle {np.median(samples) / MIB:6.0f} MiB  {'flat' if is_flat(samples) else 'GROWS'}", flush=True)
    print(f"file {file.stat().st_size} bytes, {file.stat().st_size * 8 / pixels:.4f} bits per pixel")
    print(f"every pixel within {compare(source, decoded, 0.1):.4f} m, the same pixels missing")
    decoded.unlink()
    assert flat, "memory grows"


# --- serve ---


class Load:
    """Clients that ask for everything a server has."""

    def __init__(self, port: int, name: str, info: dict):
        self.port, self.name = port, name
        self.west, self.south, self.east, self.north = info["bounds"]
        self.max_zoom = info["maxzoom"]
        self.times: dict[tuple[int, str], list[float]] = defaultdict(list)
        self.wrong: list[str] = []
        self.count = 0
        self.lock = threading.Lock()
        self.start = time.monotonic()

    def place(self, chance: random.Random) -> tuple[float, float]:
        return chance.uniform(self.west, self.east), chance.uniform(self.south, self.north)

    def tile(self, chance: random.Random) -> str:
        zoom = max(0, self.max_zoom - int(chance.expovariate(0.6)))
        lon, lat = self.place(chance)
        count = 1 << zoom
        x = int((lon + 180) / 360 * count)
        y = int((1 - math.asinh(math.tan(math.radians(lat))) / math.pi) / 2 * count)
        return f"{zoom}/{x}/{y}"

    def request(self, chance: random.Random) -> tuple[str, str, dict, set[int]]:
        """What kind, the address, headers, and the answers that are right."""
        name = self.name
        draw = chance.random()
        if draw < 0.35:
            return "heights", f"/{name}/{self.tile(chance)}.{chance.choice(['png', 'webp'])}", {}, {200, 204}
        if draw < 0.6:
            layer = chance.choice(["relief", "hillshade", "slope", "aspect", "laplacian", "plan-curvature"])
            return "layers", f"/{name}/{layer}/{self.tile(chance)}.png", {}, {200, 204}
        if draw < 0.68:
            return "contours", f"/{name}/contours/{self.tile(chance)}.mvt", {}, {200, 204}
        if draw < 0.8:
            lon, lat = self.place(chance)
            return "points", f"/{name}/point/{lon:.7f},{lat:.7f}", {}, {200}
        if draw < 0.84:
            places = ";".join(f"{lon:.6f},{lat:.6f}" for lon, lat in (self.place(chance) for _ in range(3)))
            return "profiles", f"/{name}/profile?line={places}&points=256", {}, {200}
        if draw < 0.92:
            first = chance.randrange(1 << 20)
            return "ranges", f"/{name}.{chance.choice(['tif', 'trn'])}", {"Range": f"bytes={first}-{first + 65535}"}, {206, 416}
        if draw < 0.96:
            return "facts", chance.choice([f"/{name}/info", f"/{name}", "/catalog", "/health", "/metrics"]), {}, {200}
        bad = [f"/{name}/99/0/0.png", "/../../etc/passwd", f"/{name}/point/x,y", f"/{name}/profile?line=1", "/nothing/0/0/0.png",
               f"/{name}/slope/5/-1/99999999999.png", "/" + "a" * 3000, f"/{name}/%00/1/1/1.png"]
        return "nonsense", chance.choice(bad), {}, {400, 404, 414, 431}

    def client(self, number: int, until: float) -> None:
        chance = random.Random(number)
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        while time.monotonic() < until:
            kind, address, headers, right = self.request(chance)
            began = time.monotonic()
            try:
                connection.request("GET", address, headers=headers)
                answer = connection.getresponse()
                answer.read()
                status = answer.status
            except (OSError, http.client.HTTPException) as error:
                status = repr(error)
                connection.close()
                connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
            ended = time.monotonic()
            with self.lock:
                self.count += 1
                self.times[int((ended - self.start) // 60), kind].append((ended - began) * 1000)
                if status not in right:
                    self.wrong.append(f"{address[:80]}: {status}")


def serve(arguments: argparse.Namespace) -> None:
    with subprocess.Popen([arguments.terrane, "serve", f"dem={arguments.file}", "--port", str(arguments.port)],
                          stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as server:
        try:
            for _ in range(100):
                try:
                    connection = http.client.HTTPConnection("127.0.0.1", arguments.port, timeout=5)
                    connection.request("GET", "/dem")
                    info = json.loads(connection.getresponse().read())
                    break
                except OSError:
                    time.sleep(0.1)
            else:
                sys.exit("the server does not answer")
            load = Load(arguments.port, "dem", info)
            until = time.monotonic() + arguments.minutes * 60
            clients = [threading.Thread(target=load.client, args=(number, until)) for number in range(arguments.clients)]
            for client in clients:
                client.start()
            held, minute = [], 0
            while any(client.is_alive() for client in clients):
                time.sleep(1)
                held.append(memory(server.pid))
                if int(time.monotonic() - load.start) // 60 > minute:
                    with load.lock:
                        times = sorted(t for (at, _), list_ in load.times.items() if at == minute for t in list_)
                    print(f"minute {minute + 1:3}: {len(times) / 60:6.1f} requests/s, middle {times[len(times) // 2]:6.1f} ms, 99 % below "
                          f"{times[int(len(times) * 0.99)]:7.1f} ms, {held[-1] / MIB:6.0f} MiB", flush=True)
                    minute += 1
        finally:
            server.send_signal(signal.SIGTERM)
    kinds = defaultdict(list)
    for (_, kind), times in load.times.items():
        kinds[kind] += times
    for kind, times in sorted(kinds.items()):
        times.sort()
        print(f"{kind:9} {len(times):8} requests, middle {times[len(times) // 2]:7.1f} ms, 99 % below {times[int(len(times) * 0.99)]:7.1f} ms")
    slow = [np.percentile([t for (at, _), list_ in load.times.items() if at == m for t in list_], 99) for m in range(minute)]
    print(f"{load.count} requests, {len(load.wrong)} answered wrongly; memory {'flat' if is_flat(held) else 'GROWS'}, at most {max(held) / MIB:.0f} MiB; "
          f"99 % {'steady' if is_flat(slow) else 'GROWING'}; the server ended with {server.returncode}")
    for wrong in load.wrong[:10]:
        print(" ", wrong)
    assert not load.wrong and is_flat(held) and is_flat(slow)


# --- ray ---


def on_ray(arguments: argparse.Namespace) -> None:
    import pyterrane.ray
    import ray
    from pyterrane import shards

    folder = Path(arguments.folder)
    folder.mkdir(parents=True, exist_ok=True)
    source, plan, file, whole = (folder / name for name in ("country.tif", "country.json", "country.trn", "whole.trn"))
    if not source.exists():
        part = folder / "part.tif"
        make_raster(part, arguments.side)
        part.rename(source)
    for old in (plan, file):
        old.unlink(missing_ok=True)
    count = shards.plan(str(source), str(plan), max_error=0.1)
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    killed = 0
    done = threading.Event()

    def killer() -> None:
        nonlocal killed
        chance = random.Random(18)
        while not done.wait(chance.uniform(1, 6)) and killed < arguments.kills:
            found = subprocess.run(["pgrep", "-f", "^ray::"], capture_output=True, text=True).stdout.split()
            working = [pid for pid in map(int, found) if is_working(pid)]
            if working:
                try:
                    os.kill(chance.choice(working), signal.SIGKILL)
                    killed += 1
                except ProcessLookupError:
                    pass

    thread = threading.Thread(target=killer)
    thread.start()
    calls = 0
    start = time.monotonic()
    while not file.exists():
        calls += 1
        assert calls <= 50, "it never ends"
        try:
            pyterrane.ray.encode(str(plan), str(file), retries=50)
        except Exception as error:  # A call may fail when too many of its workers died; the next one goes on.
            print(f"call {calls} ended with {type(error).__name__}: {str(error)[:200]}")
    done.set()
    thread.join()
    ray.shutdown()
    seconds = time.monotonic() - start
    subprocess.run([arguments.terrane, "verify", str(file)], check=True, stdout=subprocess.DEVNULL)
    if not whole.exists():
        subprocess.run([arguments.terrane, "encode", str(source), str(whole), "--max-error", "0.1"], check=True)
    same = file.read_bytes() == whole.read_bytes()
    left = sorted(path.name for path in folder.rglob("*") if ".part" in path.name or ".tmp" in path.name)
    print(f"{count} shards, {killed} workers killed, {calls} calls, {seconds:.0f} s; the file is {'the' if same else 'NOT the'} one that `encode` writes; left behind: {left or 'nothing'}")
    assert same and killed > 0


def is_working(process: int) -> bool:
    """Whether a worker of Ray has used the processor lately: idle ones hold no shard."""
    def ticks() -> int:
        return sum(map(int, Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[11:13]))

    try:
        before = ticks()
        time.sleep(0.2)
        return ticks() > before + 5
    except OSError:
        return False


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    for name, run, rest in (("large", large, "folder"), ("serve", serve, "file"), ("ray", on_ray, "folder")):
        command = commands.add_parser(name)
        command.set_defaults(run=run)
        command.add_argument("terrane")
        command.add_argument(rest)
        if name == "serve":
            command.add_argument("--minutes", type=float, default=20)
            command.add_argument("--clients", type=int, default=6)
            command.add_argument("--port", type=int, default=8765)
        else:
            command.add_argument("--side", type=int, default=45_000 if name == "large" else 12_000)
        if name == "ray":
            command.add_argument("--kills", type=int, default=30)
    arguments = parser.parse_args()
    arguments.run(arguments)


if __name__ == "__main__":
    main()
