"""PMTiles that the command writes, read by others: `just test-pmtiles`.

1. Every tile of several archives is read by PyPI's `pmtiles` and decoded by Pillow. Heights are within rounding of the
   server's own tiles at every zoom, and at the finest of what `terrane query` says at the pixels' longitudes and latitudes.
2. MapLibre opens an archive from a plain file server with ranges, in a headless Chromium: with npm's `pmtiles`, in the
   folder named by MODULES. The screenshot goes to the folder named by SCREENSHOTS, or to a temporary one.

What is missing is named and skipped. TERRANE is the program; real terrain is used where it lies beside the project.
"""

import csv
import functools
import http.server
import io
import json
import math
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import urllib.request
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[1]
DATA = PROJECT.parent / "shared" / "data"
TERRANE = str(Path(os.environ.get("TERRANE", PROJECT / "target" / "release" / "terrane")).resolve())
CHROMIUM = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")

try:
    import numpy as np
    from PIL import Image
    from pmtiles.reader import MmapSource, Reader, all_tiles
except ImportError as missing:
    sys.exit(print(f"skipped: Python has no {missing.name}") or 0)

#: Side of a pixel of each file.
PIXEL_M: dict[str, float] = {}
#: Parts of a raster's pixel that the position of a tile's pixel may be off: cells of the map are interpolated.
OFF = 0.02


def terrane(folder: Path, *arguments: str) -> str:
    run = subprocess.run([TERRANE, *arguments], cwd=folder, check=True, capture_output=True, text=True)
    return run.stdout


def sources(folder: Path) -> list[Path]:
    names = ["m1_si_tm1_564_146.tif", "m1_fr_litto3d_c.tif", "m30_eu_sonny_n67e024.tif"]
    found = [DATA / name for name in names if (DATA / name).exists()]
    if found:
        return found
    print("no real data beside the project: on generated terrain")
    terrane(folder, "generate", "generated.tif", "--size", "900x700", "--seed", "4", "--pixel-size", "2")
    return [folder / "generated.tif"]


def heights(pixels: "np.ndarray", encoding: str) -> "np.ndarray":
    red, green, blue = (pixels[..., channel].astype(float) for channel in range(3))
    if encoding == "terrarium":
        return red * 256 + green + blue / 256 - 32768
    return -10000 + (red * 65536 + green * 256 + blue) * 0.1


def decoded(data: bytes) -> "np.ndarray":
    return np.asarray(Image.open(io.BytesIO(data)).convert("RGBA"))


def degrees(z: int, x: float, y: float) -> tuple[float, float]:
    across = 2**z
    return 360 * x / across - 180, math.degrees(math.atan(math.sinh(math.pi * (1 - 2 * y / across))))


def compare_with_surface(folder: Path, file: str, samples: list, step: float) -> float:
    """The largest part of the allowed difference that was found at points of the surface."""
    with open(folder / "points.csv", "w", newline="") as table:
        writer = csv.writer(table)
        writer.writerow(["lon", "lat"])
        writer.writerows(point for point, _ in samples)
    text = terrane(folder, "query", file, "--points", "points.csv", "--crs", "EPSG:4326", "--json")
    worst, count = 0.0, 0
    for (_, height), found in zip(samples, json.loads(text), strict=True):
        if found["height_m"] is None:
            continue
        slope = math.hypot(found["gradient_east"], found["gradient_north"])
        allowed = step / 2 + OFF * PIXEL_M[file] * slope + 1e-3
        worst = max(worst, abs(found["height_m"] - height) / allowed)
        count += 1
    assert count > len(samples) / 3, f"{count} of {len(samples)} points have a height"
    return worst


def check(folder: Path, file: str, options: list[str], server: str) -> None:
    archive = f"{file}.pmtiles"
    report = json.loads(terrane(folder, "tiles", file, archive, "--overwrite", "--json", *options))
    name = Path(file).stem
    with open(folder / archive, "rb") as opened:
        source = MmapSource(opened)
        reader = Reader(source)
        header, metadata = reader.header(), reader.metadata()
        assert (header["min_zoom"], header["max_zoom"]) == (report["minzoom"], report["maxzoom"])
        side, encoding = metadata["tile_size"], metadata["encoding"]
        steps = {int(z): step for z, step in metadata["terrane"]["step_m_by_zoom"].items()}
        assert metadata["terrane"]["step_m_by_zoom"] == report["step_m_by_zoom"]
        bound = metadata["terrane"]["bound_m"]
        tiles, worst, samples = 0, 0.0, []
        random = np.random.default_rng(1)
        for (z, x, y), data in all_tiles(source):
            tiles += 1
            assert reader.get(z, x, y) == data
            pixels = decoded(data)
            assert pixels.shape == (side, side, 4) and (pixels[..., 3] == 255).all()
            found, step = heights(pixels, encoding), steps[z]
            scale = "@2x" if side == 512 else ""
            with urllib.request.urlopen(f"{server}/{name}/{z}/{x}/{y}{scale}.png") as answer:
                expected = heights(decoded(answer.read()), "terrarium")
            worst = max(worst, float(np.abs(found - expected).max()) / (step / 2 + 1 / 512 + 1e-6))
            with urllib.request.urlopen(f"{server}/{name}/{z}/{x}/{y}{scale}.png?nodata=transparent") as answer:
                has_data = decoded(answer.read())[..., 3] == 255
            assert has_data.any(), f"{z}/{x}/{y} has no data"
            if z == header["max_zoom"]:
                for _ in range(60):
                    row, column = (int(value) for value in random.integers(0, side, 2))
                    if has_data[row, column]:
                        point = degrees(z, x + (column + 0.5) / side, y + (row + 0.5) / side)
                        samples.append((point, found[row, column]))
        assert tiles == report["tiles"] == header["addressed_tiles_count"], (tiles, report)
        assert worst <= 1, f"{archive}: {worst} of the rounding"
        of_surface = compare_with_surface(folder, file, samples, steps[header["max_zoom"]])
        assert of_surface <= 1, f"{archive}: {of_surface} of what is allowed"
        if encoding == "terrarium" and bound and "--step" not in options and bound >= 1 / 32:
            assert all(step / 2 <= bound / 8 for step in steps.values()), steps
    print(
        f"{file} {' '.join(options) or '(as it is)'}: {report['bytes'] / 1e3:.1f} kB, {tiles} tiles, zooms {report['minzoom']}"
        f" to {report['maxzoom']}, steps {max(steps.values())} to {min(steps.values())} m; off by {worst:.2f} of the rounding,"
        f" {of_surface:.2f} of it and of positions at {len(samples)} points"
    )


class Ranges(http.server.SimpleHTTPRequestHandler):
    """A static host: files, by ranges."""

    def log_message(self, *_) -> None:
        pass

    def do_GET(self) -> None:
        path = Path(self.translate_path(self.path))
        if not path.is_file():
            return self.send_error(404)
        data, span = path.read_bytes(), self.headers.get("Range")
        start, end = 0, len(data)
        if span:
            first, last = span.removeprefix("bytes=").split("-")
            start, end = int(first), min(int(last) + 1, end) if last else end
        self.send_response(206 if span else 200)
        self.send_header("Content-Type", self.guess_type(str(path)))
        if span:
            self.send_header("Content-Range", f"bytes {start}-{end - 1}/{len(data)}")
        self.send_header("Content-Length", str(end - start))
        self.end_headers()
        self.wfile.write(data[start:end])


PAGE = """<!doctype html><meta charset="utf-8"><link rel="stylesheet" href="maplibre-gl.css">
<style>html, body, #map { margin: 0; height: 100% }</style><div id="map"></div><script src="pmtiles.js"></script>
<script type="module">
import * as maplibregl from "./maplibre-gl.mjs";
maplibregl.addProtocol("pmtiles", new pmtiles.Protocol({ metadata: true }).tile);
const archive = new pmtiles.PMTiles(new URL("ARCHIVE", location).href);
const header = await archive.getHeader(), metadata = await archive.getMetadata();
const dem = () => ({ type: "raster-dem", url: "pmtiles://" + new URL("ARCHIVE", location).href, encoding: metadata.encoding, tileSize: metadata.tile_size });
const map = window.map = new maplibregl.Map({ container: "map", attributionControl: false, center: [header.centerLon, header.centerLat],
  zoom: header.maxZoom - 1.2, pitch: 55, maxPitch: 80, style: { version: 8, sources: { dem: dem(), terrain: dem() },
  layers: [{ id: "ground", type: "background", paint: { "background-color": "#dfe5dd" } }, { id: "shade", type: "hillshade", source: "dem" }],
  terrain: { source: "terrain", exaggeration: 1.5 } } });
window.failed = [];
map.on("error", (event) => window.failed.push(String(event.error)));
map.once("idle", () => { window.ready = true; });
</script>"""


def check_in_browser(folder: Path, file: str) -> None:
    modules = Path(os.environ.get("MODULES", "")) / "pmtiles" / "dist" / "pmtiles.js"
    if not modules.is_file() or CHROMIUM is None:
        return print(f"skipped: MapLibre, without {'npm pmtiles' if CHROMIUM else 'a Chromium'}")
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        return print("skipped: MapLibre, without playwright")
    shutil.copy(modules, folder)
    for part in (PROJECT / "crates" / "terrane-serve" / "viewer" / "vendor" / "maplibre-gl").iterdir():
        shutil.copy(part, folder)
    archive = f"{file}.pmtiles"
    terrane(folder, "tiles", file, archive, "--overwrite")
    (folder / "index.html").write_text(PAGE.replace("ARCHIVE", archive))
    Ranges.extensions_map = {**Ranges.extensions_map, ".mjs": "text/javascript"}
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Ranges, directory=str(folder)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with sync_playwright() as playwright:
        arguments = ["--no-sandbox", "--use-gl=angle", "--use-angle=swiftshader", "--enable-unsafe-swiftshader"]
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=arguments)
        page = browser.new_page(viewport={"width": 1000, "height": 700})
        page.goto(f"http://127.0.0.1:{server.server_port}/index.html")
        page.wait_for_function("window.ready", timeout=120_000)
        assert page.evaluate("window.failed") == []
        found = page.evaluate("[map.queryTerrainElevation(map.getCenter()), map.getCenter().lng, map.getCenter().lat]")
        picture = Path(os.environ.get("SCREENSHOTS", folder)) / "pmtiles.png"
        page.screenshot(path=str(picture))
        browser.close()
    server.shutdown()
    text = terrane(folder, "query", file, "--at", f"{found[1]},{found[2]}", "--crs", "EPSG:4326", "--json")
    height = json.loads(text)[0]["height_m"]
    # MapLibre interpolates between pixels of the tile that it shows, and exaggerates.
    assert abs(found[0] / 1.5 - height) < 1, (found, height)
    colours = np.asarray(Image.open(picture).convert("L"))
    assert colours.std() > 8, "the picture is empty"
    print(f"MapLibre shows {archive}: {found[0] / 1.5:.2f} m at the middle, the surface {height:.2f} m; {picture}")


def main() -> None:
    with tempfile.TemporaryDirectory() as kept:
        folder = Path(kept)
        files = []
        for source in sources(folder):
            file = f"{source.stem}.trn"
            terrane(folder, "encode", str(source), file, "--max-error", "0.1")
            files.append(file)
        command = [TERRANE, "serve", "--port", "0", "--json", *files]
        server = subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, text=True)
        try:
            address = json.loads(server.stdout.readline())["address"]
            for file in files:
                with urllib.request.urlopen(f"{address}/{Path(file).stem}/info") as answer:
                    PIXEL_M[file] = json.load(answer)["pixel_m"]
                check(folder, file, [], address)
            for options in (
                ["--format", "png", "--tile-size", "256"],
                ["--encoding", "mapbox"],
                ["--step", "0.5", "--min-zoom", "13"] if DATA.exists() else ["--step", "0.5"],
            ):
                check(folder, files[0], options, address)
        finally:
            server.terminate()
            server.wait(10)
        check_in_browser(folder, files[0])


main()
