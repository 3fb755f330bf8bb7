"""A site in a headless Chromium, from a plain static file server: `just test-web`.

Needs Python with playwright and pillow, and a Chromium (CHROMIUM, or the one in the path). TERRANE is the program. Real terrain
where it lies beside the project, generated terrain otherwise. Screenshots go to the folder named by SCREENSHOTS, or to a
temporary one. What is measured is printed as JSON at the end.
"""

import gzip
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from io import BytesIO
from pathlib import Path

from files import Files
from PIL import Image
from playwright.sync_api import Page, sync_playwright

PROJECT = Path(__file__).resolve().parents[4]
DATA = PROJECT.parent / "shared" / "data"
TERRANE = str(Path(os.environ.get("TERRANE", PROJECT / "target" / "release" / "terrane")).resolve())
CHROMIUM = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
ARGUMENTS = ["--no-sandbox", "--use-angle=swiftshader", "--enable-unsafe-swiftshader", "--ignore-gpu-blocklist"]
SIZE = {"width": 1440, "height": 900}
MIDDLE = {"x": 650, "y": 250, "width": 300, "height": 300}
# Notes every task of the main thread that takes longer than 50 ms.
LONG_TASKS = """window.longTasks = []; new PerformanceObserver((list) => {
    for (const entry of list.getEntries()) window.longTasks.push(Math.round(entry.duration)); }).observe({ type: "longtask", buffered: true });"""
AT_REST = "() => window.terrane?.upper && terrane.upper.map.loaded() && terrane.upper.map.areTilesLoaded() && !terrane.upper.map.isMoving()"


def terrane(folder: Path, *arguments: str) -> str:
    return subprocess.run([TERRANE, *arguments], cwd=folder, check=True, capture_output=True, text=True).stdout


def prepare(folder: Path) -> None:
    """A file of each profile, and a site of both."""
    raster = DATA / "m1_si_tm1_564_146.tif"
    if not raster.exists():
        print("no real data beside the project: on generated terrain")
        raster = folder / "dem.tif"
        terrane(folder, "generate", "dem.tif", "--size", "1000x1000", "--seed", "4")
    for profile in ["fast", "standard"]:
        terrane(folder, "encode", str(raster), f"{profile}.trn", "--max-error", "0.1", "--profile", profile, "--progress", "none")
    terrane(folder, "site", "fast.trn", "standard.trn", "site")


class Viewer:
    """A page with the viewer, and what it complained of."""

    def __init__(self, page: Page, address: str):
        self.page, self.complaints, self.foreign = page, [], []
        page.on("console", lambda message: message.type in ("error", "warning") and self.complaints.append(message.text))
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("response", lambda answer: answer.status >= 400 and self.complaints.append(f"{answer.status} {answer.url}"))
        page.on("request", lambda request: request.url.startswith((address, "blob:", "data:")) or self.foreign.append(request.url))
        page.add_init_script(LONG_TASKS)
        # Pictures are drawn without a graphics card.
        page.set_default_timeout(120_000)
        started = time.monotonic()
        page.goto(f"{address}/")
        page.wait_for_selector("html[data-ready]", timeout=60_000)
        self.settle(pause=0)
        self.first_picture_s = time.monotonic() - started

    def settle(self, pause: int = 250):
        deadline = time.monotonic() + 60
        self.page.wait_for_timeout(pause)
        while not self.page.evaluate(AT_REST):
            assert time.monotonic() < deadline, "the map does not come to rest"
            self.page.wait_for_timeout(20)

    def colours(self) -> int:
        image = Image.open(BytesIO(self.page.screenshot(clip=MIDDLE))).convert("RGB")
        return len(image.getcolors(1 << 24))

    def check(self):
        assert not self.complaints, self.complaints
        assert not self.foreign, self.foreign


def layers_draw(viewer: Viewer):
    seen = set()
    for title in ["Relief", "Hillshade", "Slope", "Aspect", "Laplacian", "Profile curvature", "Plan curvature"]:
        viewer.page.locator("#layers label", has_text=title).first.click()
        viewer.settle()
        assert viewer.colours() > 100, title
        picture = viewer.page.screenshot(clip=MIDDLE)
        assert picture not in seen, f"{title} looks like another layer"
        seen.add(picture)


def a_click_is_a_query(viewer: Viewer, folder: Path):
    page = viewer.page
    worst = 0.0
    for x, y in [(700, 300), (801, 433), (912, 510)]:
        page.mouse.click(x, y)
        page.locator("#point dl").wait_for()
        page.wait_for_timeout(600)
        data = page.evaluate("() => ({ ...document.getElementById('point').dataset })")
        place = f"{data['longitude']},{data['latitude']}"
        query = json.loads(terrane(folder, "query", "fast.trn", "--at", place, "--crs", "EPSG:4326", "--json"))[0]
        worst = max(worst, abs(float(data["height"]) - query["height_m"]))
        assert worst <= 0.001, (data, query)
        assert f"{query['slope_deg']:.1f}°" in page.locator("#point").inner_text()
    page.keyboard.press("Escape")
    return worst


def a_profile_is_drawn(viewer: Viewer):
    page = viewer.page
    page.keyboard.press("p")
    for x, y in [(600, 250), (980, 380)]:
        page.mouse.click(x, y)
        page.wait_for_timeout(350)
    chart = page.locator("#chart svg")
    chart.wait_for()
    assert len(chart.locator("path.trace").first.get_attribute("d")) > 2000
    page.keyboard.press("Escape")


def long_tasks_of_moving(page: Page, settle) -> list[int]:
    """Long tasks of the main thread while the map is dragged and zoomed, once its programs for the graphics card are compiled."""
    for turn in range(6):
        if turn == 2:
            settle()
            page.evaluate("() => { window.longTasks.length = 0; }")
        page.mouse.move(900, 450)
        page.mouse.down()
        page.mouse.move(700 + 200 * (turn % 2), 500, steps=12)
        page.mouse.up()
        page.mouse.wheel(0, -400 if turn % 2 == 0 else 400)
        page.wait_for_timeout(600)
    settle()
    return page.evaluate("() => window.longTasks")


def empty_map(browser, address: str) -> dict:
    """The same without any layer of ours: what the map's own library takes."""
    page = browser.new_page(viewport=SIZE)
    page.add_init_script(LONG_TASKS)
    page.route("**/assets/main.js", lambda route: route.fulfill(content_type="text/javascript", body="""
        import * as maplibregl from "./maplibre-gl.mjs";
        window.map = new maplibregl.Map({ container: "map", center: [14, 46], zoom: 12,
            style: { version: 8, sources: {}, layers: [{ id: "ground", type: "background", paint: { "background-color": "#ccd" } }] } });
        map.once("load", () => { document.documentElement.dataset.ready = "true"; });"""))
    page.goto(f"{address}/")
    page.wait_for_selector("html[data-ready]")
    page.wait_for_timeout(1000)
    start = page.evaluate("() => [...window.longTasks]")
    found = {"start": start, "moving": long_tasks_of_moving(page, lambda: page.wait_for_timeout(500))}
    page.close()
    return found


def run(browser, folder: Path, pictures: Path) -> dict:
    measured = {}
    with Files(folder / "site") as files:
        page = browser.new_page(viewport=SIZE)
        viewer = Viewer(page, files.address)
        requests, count = files.taken(".trn")
        measured["first_view"] = {"requests": requests, "bytes": count, "first_picture_s": round(viewer.first_picture_s, 2)}
        measured["whole_page"] = whole_page(files, folder / "site")
        facts = page.locator("#facts").inner_text()
        assert "no error above 0.1 m" in facts, facts
        assert page.locator("#parts .bar i").count() > 1
        page.screenshot(path=pictures / "site-relief.png")
        measured["long_tasks_ms"] = {"start": page.evaluate("() => [...window.longTasks]")}
        measured["long_tasks_ms"]["moving"] = long_tasks_of_moving(page, viewer.settle)
        page.evaluate("() => terrane.upper.fit(terrane.state.info, { padding: { left: 310, right: 40, top: 40, bottom: 110 } })")
        viewer.settle()
        layers_draw(viewer)
        page.screenshot(path=pictures / "site-plan-curvature.png")
        page.keyboard.press("2")
        page.keyboard.press("c")
        viewer.settle(800)
        features = page.evaluate("() => terrane.upper.map.querySourceFeatures(terrane.upper.contours, { sourceLayer: 'contours' }).length")
        assert features > 5, features
        # Heights are written once the lines are there.
        page.wait_for_function("() => terrane.upper.map.queryRenderedFeatures({ layers: ['contours-heights'] }).length > 0")
        page.wait_for_timeout(1000)
        page.screenshot(path=pictures / "site-contours.png")
        page.keyboard.press("c")
        measured["click_differs_by_m"] = a_click_is_a_query(viewer, folder)
        a_profile_is_drawn(viewer)
        page.keyboard.press("t")
        page.wait_for_timeout(1200)
        viewer.settle()
        assert page.evaluate("() => terrane.upper.map.getPitch()") > 40
        span = page.evaluate(
            """() => { const { map } = terrane.upper; const [w, s, e, n] = terrane.state.info.bounds;
                const at = (x, y) => map.queryTerrainElevation([w + (e - w) * x, s + (n - s) * y]);
                const all = [.2, .4, .6, .8].flatMap((x) => [.2, .4, .6, .8].map((y) => at(x, y)));
                return Math.max(...all) - Math.min(...all); }"""
        )
        assert span > 5, f"heights differ by {span} m alone"
        page.screenshot(path=pictures / "site-terrain.png")
        page.locator("#file").select_option("standard")
        # Its model is fetched first, and the map at rest until then.
        page.wait_for_function("() => document.title === 'standard – terrane'")
        viewer.settle(500)
        viewer.check()
        page.close()
        measured["long_tasks_ms"]["without_us"] = empty_map(browser, files.address)
        measured["decoding_ms"] = decoding(browser, files.address)
        loading_is_shown(browser, files.address)
    failures_are_said(browser, folder, pictures)
    return measured


def whole_page(files: Files, site: Path) -> dict:
    """Requests and bytes of all that a first view takes: from a host that compresses nothing, and from one that compresses by gzip."""
    requests, plain = files.taken("")
    saved = 0
    for path, count in files.requests:
        name = path.split("?")[0].lstrip("/") or "index.html"
        if not name.endswith((".trn", ".packed")):
            saved += count - len(gzip.compress((site / name).read_bytes(), 6))
    return {"requests": requests, "bytes": plain, "bytes_by_gzip": plain - saved}


def failures_are_said(browser, folder: Path, pictures: Path):
    """A host without ranges, and a page that is opened from a folder: what is wrong is said, and stays."""
    page = browser.new_page(viewport=SIZE)
    with Files(folder / "site", has_ranges=False) as files:
        page.goto(f"{files.address}/")
        page.locator("#notice").wait_for()
        page.wait_for_timeout(7000)
        assert "ignores range requests" in page.locator("#notice").inner_text()
        # Nothing is there that could be switched.
        for name in ["#controls", "#facts", "#loading"]:
            assert not page.locator(name).is_visible(), name
        page.screenshot(path=pictures / "site-without-ranges.png")
    # One of two files is missing: the other is shown, and the sentence stays.
    shutil.copytree(folder / "site", folder / "half")
    (folder / "half" / "fast.trn").unlink()
    with Files(folder / "half") as files:
        page.goto(f"{files.address}/")
        page.wait_for_selector("html[data-ready]")
        page.wait_for_timeout(7000)
        assert page.title() == "standard – terrane" and "fast.trn cannot be read: the server answers 404" in page.locator("#notice").inner_text()
    page.goto((folder / "site" / "index.html").as_uri())
    late = page.locator("#loading .late")
    page.wait_for_function("() => getComputedStyle(document.querySelector('#loading .late')).opacity === '1'")
    assert "terrane serve" in late.inner_text() and not page.locator("#controls").is_visible()
    page.screenshot(path=pictures / "site-from-a-folder.png")
    page.close()


def loading_is_shown(browser, address: str):
    """While the decoder is on its way the page says that it loads, and the switches that do nothing yet are not there."""
    page = browser.new_page(viewport=SIZE)
    held, is_held = [], True
    page.route("**/*.trn", lambda route: held.append(route) if is_held else route.continue_())
    page.goto(f"{address}/")
    page.wait_for_function("() => document.getElementById('loading-text').textContent === 'Opening fast…'")
    assert held and page.locator("#loading").is_visible() and not page.locator("#controls").is_visible()
    is_held = False
    for route in held:
        route.continue_()
    page.wait_for_selector("html[data-ready]")
    assert not page.locator("#loading").is_visible() and page.locator("#controls").is_visible()
    page.close()


def decoding(browser, address: str) -> dict:
    """Milliseconds for a tile of a file in memory, by one worker, with the messages there and back."""
    page = browser.new_page(viewport=SIZE)
    page.goto(f"{address}/assets/icon.svg")
    script = """async ([address, name]) => {
        const { open } = await import(address + "/assets/terrane/index.js");
        const terrain = await open(await (await fetch(address + "/" + name + ".trn")).blob());
        const { levels, tile } = terrain.info; const [width, height] = levels[0];
        const read = (column, row) => terrain.window({ column, row, width: tile, height: tile });
        const all = [];
        for (let row = 0; row + tile <= height; row += tile) for (let column = 0; column + tile <= width; column += tile) {
            const start = performance.now(); await read(column, row); all.push(performance.now() - start); }
        all.sort((a, b) => a - b);
        return all[Math.floor(all.length / 2)];
    }"""
    found = {name: round(page.evaluate(script, [address, name]), 1) for name in ["fast", "standard"]}
    page.close()
    return found


def served(browser, folder: Path) -> dict:
    """The same view from `terrane serve`: seconds to the first picture, and long tasks."""
    server = subprocess.Popen([TERRANE, "serve", "--port", "0", "--json", "fast.trn"], cwd=folder, stdout=subprocess.PIPE, text=True)
    try:
        page = browser.new_page(viewport=SIZE)
        viewer = Viewer(page, json.loads(server.stdout.readline())["address"])
        start = page.evaluate("() => [...window.longTasks]")
        moving = long_tasks_of_moving(page, viewer.settle)
        page.close()
        return {"first_picture_s": round(viewer.first_picture_s, 2), "long_tasks_ms": {"start": start, "moving": moving}}
    finally:
        server.terminate()
        server.wait(10)


def main():
    if not CHROMIUM:
        sys.exit("no Chromium: install one or name it in CHROMIUM")
    pictures = Path(os.environ.get("SCREENSHOTS") or tempfile.mkdtemp(prefix="terrane-web-"))
    pictures.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as name, sync_playwright() as playwright:
        prepare(Path(name))
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        measured = run(browser, Path(name), pictures)
        measured["serve"] = served(browser, Path(name))
        browser.close()
    print(json.dumps(measured, indent=1))
    print(f"screenshots in {pictures}")


if __name__ == "__main__":
    main()
