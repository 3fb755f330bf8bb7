"""Files on a server that takes 50 ms for every answer: requests and seconds of each way to read them, in one run.

``pytest -s`` prints the table. GDAL's plugin takes part where GDAL_DRIVER_PATH leads to one, in the Python with osgeo that
GDAL_PYTHON names (/usr/bin/python3 without it).
"""

import contextlib
import http.server
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator

import numpy as np
import pytest
import rasterio
import rasterio.shutil

import pyterrane

LATENCY = 0.05
PYTHON = os.environ.get("GDAL_PYTHON", "/usr/bin/python3")
#: Requests for a file of some 866 kB by rasterio and the opener, before files were read ahead.
BEFORE = 223
#: What a user of /vsicurl sets, so that GDAL looks for no files beside one.
GDAL = {"GDAL_DISABLE_READDIR_ON_OPEN": "EMPTY_DIR", "CPL_VSIL_CURL_ALLOWED_EXTENSIONS": ".trn,.tif"}
#: Reads a file whole, and says in how many seconds.
BY_PLUGIN = """
import sys, time
import numpy as np
from osgeo import gdal
gdal.UseExceptions()
started = time.perf_counter()
heights = gdal.Open("/vsicurl/" + sys.argv[1]).ReadAsArray()
print(time.perf_counter() - started)
np.save(sys.argv[2], heights)
"""


class Far(http.server.BaseHTTPRequestHandler):
    """Files of a folder by ranges, each after 50 ms."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_GET(self):
        time.sleep(LATENCY)
        data = self.server.files.get(self.path)
        self.server.asked.append((self.command, self.path, self.headers["Range"]))
        if data is None:
            self.send_response(404)
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        first, last = 0, len(data) - 1
        if wanted := self.headers["Range"]:
            first, last = (int(number or last) for number in wanted.removeprefix("bytes=").split("-"))
            last = min(last, len(data) - 1)
            self.send_response(206)
            self.send_header("Content-Range", f"bytes {first}-{last}/{len(data)}")
        else:
            self.send_response(200)
        self.send_header("Accept-Ranges", "bytes")
        self.send_header("Content-Length", str(last + 1 - first))
        self.end_headers()
        if self.command == "GET":
            self.server.bytes += last + 1 - first
            self.wfile.write(data[first : last + 1])

    do_HEAD = do_GET

    def log_message(self, *_):
        pass


@contextlib.contextmanager
def far(files: dict[str, bytes]) -> Iterator[http.server.ThreadingHTTPServer]:
    """A server of files by their paths, which counts what it is asked for."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Far)
    server.files, server.asked, server.bytes = files, [], 0
    server.address = f"http://127.0.0.1:{server.server_port}"
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield server
    finally:
        server.shutdown()


def ground(side: int, roughness: float) -> np.ndarray:
    """Hills, and so many metres of noise."""
    y, x = np.mgrid[0:side, 0:side].astype("float32")
    noise = np.random.default_rng(7).random((side, side), "float32")
    return (700 + 90 * np.sin(x / 211) * np.cos(y / 173) + 6 * np.sin(x / 17 + y / 29) + roughness * noise).astype("float32")


def by_terrane(address: str) -> np.ndarray:
    with pyterrane.open(address) as terrain:
        return terrain.read()


def by_opener(address: str) -> np.ndarray:
    with rasterio.open(address, opener=pyterrane.opener) as raster:
        return raster.read(1)


def by_gdal(address: str) -> np.ndarray:
    with rasterio.Env(**GDAL), rasterio.open(f"/vsicurl/{address}") as raster:
        return raster.read(1)


def by_plugin(address: str) -> tuple[np.ndarray, float]:
    with tempfile.TemporaryDirectory() as folder:
        out = os.path.join(folder, "heights.npy")
        command = [PYTHON, "-c", BY_PLUGIN, address, out]
        said = subprocess.run(command, env={**os.environ, **GDAL}, check=True, capture_output=True, text=True).stdout
        return np.load(out), float(said)


def plugin() -> str | None:
    """Why the plugin takes no part, or None."""
    if "GDAL_DRIVER_PATH" not in os.environ:
        return "GDAL_DRIVER_PATH leads to none"
    program = "from osgeo import gdal; assert gdal.GetDriverByName('TRN')"
    found = subprocess.run([PYTHON, "-c", program], capture_output=True, text=True, check=False)
    return None if found.returncode == 0 else f"{PYTHON} says: {found.stderr.strip().splitlines()[-1]}"


def files(side: int, roughness: float, folder) -> tuple[bytes, bytes]:
    """Ground as a terrane file and as a COG of LERC, both within 0.1 m."""
    heights = ground(side, roughness)
    place = {"transform": (1, 0, 2_600_000, 0, -1, 1_200_000), "crs": "EPSG:2056"}
    pyterrane.encode(heights, folder / "dem.trn", max_error=0.1, overwrite=True, **place)
    pyterrane.decode(folder / "dem.trn", folder / "plain.tif", overwrite=True)
    with rasterio.open(folder / "plain.tif") as source:
        profile = {"driver": "COG", "compress": "LERC", "max_z_error": 0.1}
        rasterio.shutil.copy(source, folder / "dem.tif", **profile)
    return (folder / "dem.trn").read_bytes(), (folder / "dem.tif").read_bytes()


def measure(server, read, path: str) -> tuple[int, int, float, np.ndarray]:
    """Requests, bytes, seconds and heights of reading a file whole."""
    server.asked.clear()
    server.bytes = 0
    started = time.perf_counter()
    heights = read(server.address + path)
    seconds = time.perf_counter() - started
    if isinstance(heights, tuple):
        heights, seconds = heights
    return len(server.asked), server.bytes, seconds, heights


def test_a_whole_file_takes_few_requests(tmp_path):
    small, _ = files(400, 0.8, tmp_path)
    large, lerc = files(2770, 0.25, tmp_path)
    assert 20_000 < len(small) <= 65_536 and 700_000 < len(large) < 1_000_000, (len(small), len(large))
    ways = {"tr.open": by_terrane, "opener": by_opener}
    missing = plugin()
    if missing is None:
        ways["plugin"] = by_plugin
    else:
        print(f"skipped: the plugin, since {missing}", file=sys.stderr)
    found = {}
    # Each at its own address: GDAL keeps what it read.
    served = {f"/{way}/{name}.trn": data for way in ways for name, data in (("small", small), ("large", large))}
    with far({**served, "/lerc/large.tif": lerc}) as server:
        for name, data in (("small", small), ("large", large)):
            for way, read in ways.items():
                found[way, name] = (*measure(server, read, f"/{way}/{name}.trn"), len(data))
        found["LERC COG", "large"] = (*measure(server, by_gdal, "/lerc/large.tif"), len(lerc))
    for (way, name), (requests, count, seconds, heights, length) in found.items():
        print(f"{name:6} {length:8} bytes  {way:9} {requests:4} requests {count:8} bytes {seconds:6.2f} s")
        if way != "LERC COG":
            np.testing.assert_array_equal(heights, found["tr.open", name][3])
    assert found["tr.open", "small"][0] == found["opener", "small"][0] == 1
    assert found["tr.open", "large"][0] <= 12
    for way in ways:
        requests, count, seconds, _, length = found[way, "large"]
        assert requests <= BEFORE // 10 and count <= 1.1 * length, way
        # Waiting alone: how long decoding takes is not the server's.
        assert requests * LATENCY < 1.1, way
