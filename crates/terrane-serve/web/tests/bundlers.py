"""The npm package as users build it: Vite (development and build), webpack, esbuild, Rollup, a page with an import map, and Node.

`just test-web` runs it; it needs Node with npm and what `browser.py` needs. PACKAGE is the assembled package, TERRANE the program.
Every bundler has the configuration of its own documentation's first page. Each built page runs in a headless Chromium and reads a
file on another host by ranges: its height must be the one of `terrane query`, and its tile an image that a worker drew. Bundlers come
from npm; where that cannot be reached, they are named and skipped.
"""

import json
import os
import re
import struct
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path

from browser import ARGUMENTS, CHROMIUM, terrane
from files import Files
from playwright.sync_api import sync_playwright

PACKAGE = Path(os.environ["PACKAGE"]).resolve()
BUNDLERS = ["vite@8", "webpack@5", "webpack-cli@7", "esbuild@0.28", "rollup@4", "@rollup/plugin-node-resolve@16"]

SCRIPT = """import { open } from "terrane";

const show = async () => {
  const terrain = await open(new URLSearchParams(location.search).get("file"));
  const [west, south, east, north] = terrain.info.bounds;
  const height = await terrain.height((west + east) / 2, (south + north) / 2);
  const { width } = await terrain.tile(0, 0, 0).catch(() => terrain.tile(terrain.info.minzoom, ...corner(terrain.info)));
  document.body.textContent = JSON.stringify({ height, width });
};
const corner = ({ bounds: [west, , , north], minzoom }) => [
  Math.floor(((west + 180) / 360) * 2 ** minzoom),
  Math.floor((0.5 - Math.asinh(Math.tan((north * Math.PI) / 180)) / (2 * Math.PI)) * 2 ** minzoom),
];
show().catch((error) => { document.body.textContent = JSON.stringify({ error: String(error) }); });
"""
PAGE = '<!doctype html><html><head><meta charset="utf-8">{head}<title>a page</title></head><body>{body}</body></html>\n'
IMPORT_MAP = '<script type="importmap">{"imports": {"terrane": "./node_modules/terrane/index.js"}}</script>'
NO_WORKERS = "<meta http-equiv=\"Content-Security-Policy\" content=\"worker-src 'none'\">"
ROLLUP = """import resolve from "@rollup/plugin-node-resolve";
export default { input: "src/main.js", output: { dir: "dist", format: "es" }, plugins: [resolve()] };
"""
NODE = """import { readFile } from "node:fs/promises";
import { pathToFileURL } from "node:url";
import { open } from "terrane";
const [, , path, address] = process.argv;
const heights = [];
for (const input of [path, pathToFileURL(path), String(pathToFileURL(path)), await readFile(path), address]) {
  const terrain = await open(input);
  const [west, south, east, north] = terrain.info.bounds;
  heights.push(await terrain.height((west + east) / 2, (south + north) / 2));
}
const sentence = await open("missing.trn").catch(({ message }) => message);
console.log(JSON.stringify({ heights, sentence }));
"""


def execute(folder: Path, *words: str) -> str:
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, f"{' '.join(words)}:\n{done.stdout}\n{done.stderr}"
    return done.stdout


def elsewhere(raster: Path):
    """The raster in ETRS89 / UTM zone 32N instead of WGS 84 / UTM zone 32N, which the decoder knows by itself."""
    key = [struct.pack("<4H", 3072, 0, 1, system) for system in (32632, 25832)]
    data = raster.read_bytes()
    assert data.count(key[0]) == 1
    raster.write_bytes(data.replace(*key))


def project(folder: Path) -> bool:
    """A project that has the package and all bundlers; false where npm cannot be reached."""
    (folder / "package.json").write_text(json.dumps({"name": "a-page", "private": True, "type": "module"}))
    execute(PACKAGE, "npm", "pack", "--silent", "--pack-destination", str(folder))
    [archive] = folder.glob("*.tgz")
    quiet = ["--silent", "--no-audit", "--no-fund"]
    execute(folder, "npm", "install", *quiet, f"./{archive.name}")
    return subprocess.run(["npm", "install", *quiet, *BUNDLERS], cwd=folder).returncode == 0


def sources(folder: Path):
    (folder / "src").mkdir()
    (folder / "src" / "main.js").write_text(SCRIPT)
    (folder / "index.html").write_text(PAGE.format(head="", body='<script type="module" src="/src/main.js"></script>'))
    (folder / "rollup.config.js").write_text(ROLLUP)
    (folder / "node.mjs").write_text(NODE)
    for name, head in [("map.html", IMPORT_MAP), ("alone.html", NO_WORKERS + IMPORT_MAP)]:
        (folder / name).write_text(PAGE.format(head=head, body='<script type="module" src="src/main.js"></script>'))


@contextmanager
def vite(folder: Path):
    """Vite's development server; its address."""
    words = ["node", "node_modules/vite/bin/vite.js", "--host", "127.0.0.1", "--port", "0"]
    server = subprocess.Popen(words, cwd=folder, stdout=subprocess.PIPE, text=True, env={**os.environ, "NO_COLOR": "1"})
    try:
        for line in server.stdout:
            if found := re.search(r"http://\S+:\d+", line):
                yield found[0]
                return
        raise AssertionError("vite says no address")
    finally:
        server.terminate()
        server.wait(10)


class Check:
    """Opens pages and compares what they say with the program."""

    def __init__(self, browser, file: str, height: float):
        self.browser, self.file, self.height = browser, file, height

    def page(self, name: str, address: str, is_alone: bool = False):
        page = self.browser.new_page()
        complaints, warnings, workers = [], [], []
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("console", lambda message: warnings.append(message.text) if "terrane:" in message.text else None)
        page.on("worker", lambda worker: workers.append(worker.url))
        page.goto(f"{address}?file={self.file}")
        page.wait_for_function("() => document.body?.textContent.trim().startsWith('{')", timeout=60_000)
        found = json.loads(page.inner_text("body"))
        page.close()
        assert "error" not in found, (name, found, complaints)
        assert abs(found["height"] - self.height) < 1e-6 and found["width"] == 256, (name, found, self.height)
        if is_alone:
            assert len(warnings) == 1 and "worker-src" in warnings[0], (name, warnings)
        else:
            assert workers and not warnings, (name, workers, warnings)
        print(f"{name}: {found['height']:.3f} m, {len(workers)} workers")


def main():
    if not CHROMIUM:
        sys.exit("no Chromium: install one or name it in CHROMIUM")
    with tempfile.TemporaryDirectory() as name, sync_playwright() as playwright:
        folder = Path(name)
        data = folder / "data"
        data.mkdir()
        # A model whose file, and a system whose definition, the package must find.
        terrane(data, "generate", "dem.tif", "--size", "600x500", "--seed", "4", "--pixel-size", "2")
        elsewhere(data / "dem.tif")
        terrane(data, "encode", "dem.tif", "dem.trn", "--max-error", "0.1", "--profile", "standard", "--progress", "none")
        has_bundlers = project(folder)
        sources(folder)
        with Files(data) as host, Files(folder) as pages:
            file = f"{host.address}/dem.trn"
            found = json.loads(execute(folder, "node", "node.mjs", str(data / "dem.trn"), file))
            info = json.loads(execute(folder, "node", "-e", "import('terrane').then(async ({ open }) => console.log(JSON.stringify((await open(process.argv[1])).info.bounds)))", str(data / "dem.trn")))
            [west, south, east, north] = info
            place = f"{(west + east) / 2!r},{(south + north) / 2!r}"
            height = json.loads(terrane(data, "query", "dem.trn", f"--at={place}", "--crs", "EPSG:4326", "--json"))[0]["height_m"]
            assert all(abs(one - height) < 1e-6 for one in found["heights"]) and len(found["heights"]) == 5, (found, height)
            assert "missing.trn cannot be read" in found["sentence"] and "CORS" not in found["sentence"], found
            print(f"node: {height:.3f} m from a path, addresses and bytes")
            browser = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
            check = Check(browser, file, height)
            check.page("import map", f"{pages.address}/map.html")
            check.page("without workers", f"{pages.address}/alone.html", is_alone=True)
            if has_bundlers:
                built(check, folder, pages.address)
            else:
                print(f"skipped: npm cannot be reached for {', '.join(BUNDLERS)}")
            browser.close()


def built(check: Check, folder: Path, address: str):
    with vite(folder) as server:
        check.page("vite, development", f"{server}/")
    execute(folder, "npx", "vite", "build", "--base", "./", "--outDir", "vite")
    check.page("vite, build", f"{address}/vite/index.html")
    execute(folder, "npx", "webpack", "--mode", "production", "--entry", "./src/main.js", "--output-path", "webpack")
    execute(folder, "npx", "esbuild", "src/main.js", "--bundle", "--format=esm", "--outfile=esbuild/main.js")
    execute(folder, "npx", "esbuild", "src/main.js", "--bundle", "--format=esm", "--splitting", "--minify", "--outdir=split")
    execute(folder, "npx", "rollup", "-c", "--silent")
    for name, output in [("webpack", "webpack"), ("esbuild", "esbuild"), ("esbuild, splitting", "split"), ("rollup", "dist")]:
        page = PAGE.format(head="", body='<script type="module" src="main.js"></script>')
        (folder / output / "index.html").write_text(page)
        check.page(name, f"{address}/{output}/index.html")


if __name__ == "__main__":
    main()
