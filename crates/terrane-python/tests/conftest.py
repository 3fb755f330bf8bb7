"""Terrain that the tests make for themselves, and a web server of it."""

import contextlib
import http.server
import threading
from collections.abc import Iterator

import numpy as np
import pytest

import pyterrane

#: rasterio's order, from the corner of the first pixel.
TRANSFORM = (1.0, 0.0, 2_600_000.0, 0.0, -1.0, 1_200_000.0)
CRS = "EPSG:2056+5728"


def hills(rows: int, columns: int) -> np.ndarray:
    """Hills with a gap that is wider than a small tile, and gaps of one pixel."""
    y, x = np.mgrid[0:rows, 0:columns].astype(float)
    heights = 500 + 40 * np.sin(x / 37) * np.cos(y / 29) + 0.01 * x + np.abs(np.sin(x * y)) / 5
    heights[rows // 4 : rows // 4 + 40, columns // 2 : columns // 2 + 50] = np.nan
    heights[(x * 7 + y) % 911 == 3] = np.nan
    return heights.astype("float32")


def write(folder, name: str, heights: np.ndarray, **place) -> str:
    """A COG of heights."""
    place = {"transform": TRANSFORM, "crs": CRS, **place}
    file = str(folder / (name + ".exact.trn"))
    pyterrane.encode(heights, file, lossless=True, tile=64, **place)
    path = str(folder / name)
    pyterrane.decode(file, path)
    return path


@contextlib.contextmanager
def served(path: str) -> Iterator[tuple[str, list[tuple[str, int]]]]:
    """A web server that answers ranges of a file under any address: its address, and the paths and bytes that were asked for."""
    with open(path, "rb") as file:
        data = file.read()
    asked = []

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self):
            first, last = self.headers["Range"].removeprefix("bytes=").split("-")
            part = data[int(first) : int(last) + 1]
            asked.append((self.path, len(part)))
            self.send_response(206)
            self.send_header("Content-Range", f"bytes {first}-{int(first) + len(part) - 1}/{len(data)}")
            self.send_header("Content-Length", str(len(part)))
            self.end_headers()
            self.wfile.write(part)

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", asked
    finally:
        server.shutdown()


@pytest.fixture(scope="session")
def dem(tmp_path_factory) -> str:
    """A COG of 280 rows and 300 columns."""
    return write(tmp_path_factory.mktemp("dem"), "dem.tif", hills(280, 300))


@pytest.fixture(scope="session")
def trn(dem, tmp_path_factory) -> str:
    """Its neural terrain file with small tiles."""
    path = str(tmp_path_factory.mktemp("trn") / "dem.trn")
    pyterrane.encode(dem, path, max_error=0.1, tile=64)
    return path
