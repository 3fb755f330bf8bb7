"""The viewer in a headless Chromium: `just test-viewer`.

Needs Python with playwright and pillow, and a Chromium (CHROMIUM, or the one in the path). TERRANE is the program. Serves real terrain where it lies beside the
project, generated terrain otherwise. Screenshots go to the folder named by SCREENSHOTS, or to a temporary one.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

PROJECT = Path(__file__).resolve().parents[4]
DATA = PROJECT.parent / "shared" / "data"
TERRANE = str(Path(os.environ.get("TERRANE", PROJECT / "target" / "release" / "terrane")).resolve())
CHROMIUM = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
WIDE, PHONE, LANDSCAPE = (1440, 900), (390, 844), (844, 390)
ATTRIBUTION = "© Survey & Sons <i>"


def terrane(folder: Path, *arguments: str) -> str:
    return subprocess.run([TERRANE, *arguments], cwd=folder, check=True, capture_output=True, text=True).stdout


def prepare(folder: Path) -> list[str]:
    """Two files whose names are in another order than they, the first with its original; the arguments that serve them."""
    first = DATA / "m2_ch_swissalti3d_bern.tif"
    second = DATA / "m1_nz_auckland_2013.tif"
    if not first.exists():
        print("no real data beside the project: on generated terrain")
        first, second = folder / "first.tif", folder / "second.tif"
        terrane(folder, "generate", "first.tif", "--size", "1000x1000", "--seed", "4", "--pixel-size", "2")
        terrane(folder, "generate", "second.tif", "--size", "500x400", "--seed", "5")
    terrane(folder, "encode", str(first), "a.trn", "--max-error", "0.1", "--progress", "none")
    terrane(folder, "encode", str(second), "2019.trn", "--max-error", "0.1", "--progress", "none")
    return ["a.trn", "2019.trn", "--original", f"a={first}", "--attribution", ATTRIBUTION]


@contextmanager
def served(folder: Path, arguments: list[str]):
    server = subprocess.Popen(
        [TERRANE, "serve", "--port", "0", "--json", *arguments], cwd=folder, stdout=subprocess.PIPE, text=True
    )
    try:
        yield json.loads(server.stdout.readline())["address"]
    finally:
        server.terminate()
        assert server.wait(10) == 0, "the server did not stop in good order"


class Viewer:
    """A page with the viewer, and what it complained of."""

    def __init__(self, page: Page, address: str, fragment: str = ""):
        self.page, self.complaints, self.foreign, self.tiles = page, [], [], []
        page.on("console", lambda message: message.type in ("error", "warning") and self.complaints.append(message.text))
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("requestfailed", lambda request: self.failed(request))
        page.on("request", lambda request: self.asked(request.url, address))
        page.on("response", lambda answer: answer.status >= 400 and self.complaints.append(f"{answer.status} {answer.url}"))
        page.goto(f"{address}/{fragment}")
        page.wait_for_selector("html[data-ready]", timeout=60_000)
        self.settle()

    def failed(self, request):
        # A map gives up tiles that it no longer shows.
        if request.failure != "net::ERR_ABORTED":
            self.complaints.append(f"{request.failure} {request.url}")

    def asked(self, url: str, address: str):
        if url.endswith(".png"):
            self.tiles.append(url)
        if not url.startswith((address, "blob:", "data:")):
            self.foreign.append(url)

    def settle(self):
        """Until all tiles are drawn."""
        deadline = time.monotonic() + 60
        script = "() => [terrane.upper, terrane.state.isCompared && terrane.lower()].every((m) => !m || (m.map.loaded() && m.map.areTilesLoaded() && !m.map.isMoving()))"
        self.page.wait_for_timeout(250)
        while not self.page.evaluate(script):
            assert time.monotonic() < deadline, "the map does not come to rest"
            self.page.wait_for_timeout(100)
        self.page.wait_for_timeout(350)

    def colours(self, clip: dict) -> int:
        """Different colours in a part of the picture."""
        from io import BytesIO

        from PIL import Image

        image = Image.open(BytesIO(self.page.screenshot(clip=clip))).convert("RGB")
        return len(image.getcolors(1 << 24))

    def layer(self, title: str):
        self.page.locator("#layers label", has_text=title).first.click()
        self.settle()

    def check(self):
        assert not self.complaints, self.complaints
        assert not self.foreign, self.foreign


MIDDLE = {"x": 650, "y": 250, "width": 300, "height": 300}


def layers_draw(viewer: Viewer):
    seen = set()
    for title in ["Relief", "Hillshade", "Slope", "Aspect", "Laplacian", "Profile curvature", "Plan curvature", "Difference"]:
        viewer.layer(title)
        assert viewer.colours(MIDDLE) > 100, title
        picture = viewer.page.screenshot(clip=MIDDLE)
        assert picture not in seen, f"{title} looks like another layer"
        seen.add(picture)
    assert viewer.page.locator("#legend").inner_text().find("decoded minus original") >= 0
    viewer.layer("Relief")


def a_click_is_a_query(viewer: Viewer, folder: Path):
    page = viewer.page
    for x, y in [(700, 300), (801, 433), (912, 510)]:
        page.mouse.click(x, y)
        box = page.locator("#point")
        box.locator("dl").wait_for()
        page.wait_for_timeout(400)
        data = page.evaluate("() => ({ ...document.getElementById('point').dataset })")
        place = f"{data['longitude']},{data['latitude']}"
        query = json.loads(terrane(folder, "query", "a.trn", "--at", place, "--crs", "EPSG:4326", "--json"))[0]
        assert abs(float(data["height"]) - query["height_m"]) <= 0.001, (data, query)
        # As many digits as the bound of 0.1 m leaves.
        assert box.locator("h2").inner_text().split() == [f"{float(data['height']):.1f}", "m"], box.inner_text()
        text = box.inner_text()
        assert f"{query['slope_deg']:.1f}°" in text and "Original" in text and "Laplacian" in text, text
    page.keyboard.press("Escape")
    assert not page.locator("#point").is_visible()


def the_keyboard_is_enough(viewer: Viewer):
    page = viewer.page
    page.locator("#map canvas").focus()
    page.keyboard.press("ArrowRight")
    viewer.settle()
    page.keyboard.press("Enter")
    page.locator("#point dl").wait_for()
    page.keyboard.press("Escape")
    page.keyboard.press("3")
    assert page.locator("#layers input[value=slope]").is_checked()
    page.keyboard.press("1")
    viewer.settle()


def swipe_compares(viewer: Viewer):
    page = viewer.page
    page.keyboard.press("s")
    viewer.settle()
    handle = page.locator("#swipe")
    assert handle.is_visible()
    box = handle.bounding_box()
    page.mouse.move(box["x"] + 22, 450)
    page.mouse.down()
    page.mouse.move(900, 450, steps=6)
    page.mouse.up()
    assert abs(handle.bounding_box()["x"] + 22 - 900) < 2
    before = int(handle.get_attribute("aria-valuenow"))
    handle.focus()
    page.keyboard.press("ArrowLeft")
    assert int(handle.get_attribute("aria-valuenow")) == before - 2
    views = page.evaluate(
        "() => [terrane.upper, terrane.lower()].map((m) => [m.map.getCenter().lng, m.map.getCenter().lat, m.map.getZoom()])"
    )
    assert views[0] == views[1], views
    assert any("/a-original/relief/" in tile for tile in viewer.tiles)
    # The two sides show different files: they are alike, not equal.
    assert viewer.colours({"x": 600, "y": 250, "width": 200, "height": 200}) > 100
    page.locator("#compare").uncheck()
    viewer.settle()
    assert not handle.is_visible()


def the_swipe_says_what_is_shown(viewer: Viewer):
    page = viewer.page
    page.keyboard.press("s")
    for layer, title in [("Difference", "difference"), ("Relief", "decoded")]:
        viewer.layer(layer)
        assert page.locator("#swipe .after").inner_text() == title
    page.keyboard.press("s")
    viewer.settle()


def keys_work_after_the_slider(viewer: Viewer):
    page = viewer.page
    page.keyboard.press("t")
    page.locator("#exaggeration").focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("c")
    assert page.locator("#contours").is_checked()
    page.keyboard.press("c")
    page.keyboard.press("t")
    assert not page.locator("#relief3d").is_checked() and not page.locator("#contours").is_checked()
    page.wait_for_timeout(1000)
    viewer.settle()


def a_wheel_does_not_stop_the_tilt(viewer: Viewer):
    page = viewer.page
    page.mouse.move(800, 400)
    for pause in (10, 80):
        page.mouse.wheel(0, -120)
        page.wait_for_timeout(pause)
        page.keyboard.press("t")
        page.wait_for_function("() => terrane.upper.map.getPitch() > 50", timeout=15_000)
        viewer.settle()
        page.keyboard.press("t")
        page.wait_for_function("() => terrane.upper.map.getPitch() < 1", timeout=15_000)
        viewer.settle()
    page.evaluate("() => terrane.upper.fit(terrane.state.info, { padding: { left: 310, right: 40, top: 40, bottom: 110 } })")
    viewer.settle()


def numbers_are_written_well(page: Page):
    """No zero is negative, and a file's error says how many digits it has."""
    found = page.evaluate(
        """async () => {
            const { metres, digitsOf, perMetre } = await import("./assets/words.js");
            const { showLegend } = await import("./assets/legend.js");
            const box = document.createElement("div");
            showLegend(box, { name: "relief", legend: { kind: "range", stops: [[0, "#000"], [1, "#fff"]] } }, { lowest_m: -0.3, highest_m: 12.2 }, 12);
            return { legend: [...box.querySelectorAll(".ticks span")].map((tick) => tick.textContent),
                words: [metres(-0.001), metres(-1.26, 1), perMetre(-0.0000123)],
                digits: [{ lossless: true, bound_m: 0 }, { bound_m: 0.1 }, { bound_m: 0.05 }, { bound_m: 0.01 }, { bound_m: 2 }, { max_error_m: 0.3 }].map(digitsOf) }; }"""
    )
    assert found == {
        "legend": ["0 m", "6 m", "12 m"], "words": ["0.00 m", "−1.3 m", "−1.2e−5 /m"], "digits": [3, 1, 2, 2, 0, 1],
    }, found


def a_link_shows_the_same(viewer: Viewer, address: str):
    """The file, the layer, 3D, contours and the view are in the address."""
    page = viewer.page
    assert page.title() == "a – terrane", "the first file of the command line is the first that is shown"
    page.locator("#file").select_option("2019")
    page.wait_for_function("() => document.title === '2019 – terrane'")
    viewer.layer("Slope")
    page.locator("#relief3d").check()
    page.locator("#exaggeration").fill("3")
    page.locator("#contours").check()
    page.wait_for_function("() => terrane.upper.map.getPitch() > 50")
    viewer.settle()
    page.wait_for_timeout(500)
    state = """() => { const { map } = terrane.upper; const { lng, lat } = map.getCenter();
        return { title: document.title, layer: terrane.state.layer, raised: map.getTerrain()?.exaggeration, lines: !!map.getLayer("contours"),
            view: [lng, lat, map.getZoom(), map.getPitch()].map((value) => Math.round(value * 1000) / 1000) }; }"""
    before, link = page.evaluate(state), page.url
    context = page.context.browser.new_context(viewport={"width": WIDE[0], "height": WIDE[1]})
    other = Viewer(context.new_page(), address, link.removeprefix(address).lstrip("/"))
    after = other.page.evaluate(state)
    close = all(abs(a - b) <= 0.02 for a, b in zip(before.pop("view"), after.pop("view")))
    assert before == after and close, (before, after)
    # Another link in the same page.
    other.page.evaluate("() => { location.hash = '#file=a&layer=aspect'; }")
    other.page.wait_for_function("() => document.title === 'a – terrane' && terrane.state.layer === 'aspect' && !terrane.upper.map.getTerrain()")
    other.settle()
    other.check()
    # A view without its file is of another: the file is shown instead of empty ground.
    other.page.goto("about:blank")
    other = Viewer(other.page, address, "#" + next(part for part in link.split("#")[1].split("&") if part.startswith("view=")))
    inside = """() => { const { lng, lat } = terrane.upper.map.getCenter(); const [w, s, e, n] = terrane.state.info.bounds;
        return document.title === 'a – terrane' && w < lng && lng < e && s < lat && lat < n; }"""
    assert other.page.evaluate(inside)
    context.close()


def controls_are_in_reach(viewer: Viewer):
    """On a phone on its side every switch can be touched."""
    page = viewer.page
    for name in ["contours", "draw", "relief3d"]:
        switch = page.locator(f"#{name}")
        switch.scroll_into_view_if_needed()
        switch.tap(timeout=20_000)
        assert switch.is_checked(), name
    # Low enough that the tilted map has ground there.
    page.wait_for_timeout(1000)
    viewer.settle()
    page.touchscreen.tap(480, 190)
    page.wait_for_timeout(600)
    page.touchscreen.tap(640, 220)
    page.locator("#chart svg").wait_for()


def damage_is_said(browser, folder: Path):
    """What a damaged file promises is said of the rest alone, and what cannot be drawn is said until it is closed."""
    whole = (folder / "a.trn").read_bytes()
    broken = bytearray(whole)
    broken[len(whole) // 2] ^= 255
    (folder / "broken.trn").write_bytes(broken)
    with served(folder, ["broken.trn"]) as address:
        page = browser.new_page(viewport={"width": WIDE[0], "height": WIDE[1]})
        page.goto(f"{address}/")
        page.locator("#facts b.damaged").wait_for(timeout=60_000)
        facts = page.locator("#facts-text").inner_text()
        assert "of the file damaged" in facts and "elsewhere no error above 0.1 m" in facts, facts
        assert page.locator("#facts b").all_inner_texts()[1].endswith("damaged")
        page.close()


def the_server_is_gone(browser, folder: Path):
    """A map whose tiles no longer come says so, and goes on saying it."""
    page = browser.new_page(viewport={"width": WIDE[0], "height": WIDE[1]})
    with served(folder, ["a.trn"]) as address:
        viewer = Viewer(page, address)
    page.locator("#layers label", has_text="Slope").click()
    page.locator("#notice").wait_for()
    page.wait_for_timeout(7000)
    assert "cannot be drawn" in page.locator("#notice").inner_text()
    page.locator("#notice-close").click()
    page.locator("#notice").wait_for(state="hidden")
    page.close()


def a_profile_is_drawn(viewer: Viewer):
    page = viewer.page
    page.keyboard.press("p")
    for x, y in [(600, 250), (980, 380), (1060, 180)]:
        page.mouse.click(x, y)
        page.wait_for_timeout(350)
    chart = page.locator("#chart svg")
    chart.wait_for()
    page.wait_for_timeout(500)
    assert len(chart.locator("path.trace").first.get_attribute("d")) > 2000
    assert chart.locator("path.trace.before").count() == 1, "no profile of the original"
    assert "km" in page.locator("#profile-text").inner_text()
    chart.focus()
    page.keyboard.press("ArrowRight")
    assert " m at " in chart.get_attribute("aria-valuetext")
    viewer.settle()


def heights_stand_up(viewer: Viewer):
    page = viewer.page
    flat = page.screenshot(clip=MIDDLE)
    page.keyboard.press("t")
    page.wait_for_timeout(1200)
    viewer.settle()
    assert page.evaluate("() => terrane.upper.map.getPitch()") > 40
    assert page.evaluate("() => terrane.upper.map.getTerrain().exaggeration") == 1.5
    assert page.screenshot(clip=MIDDLE) != flat
    span = page.evaluate(
        """() => { const { map } = terrane.upper; const [w, s, e, n] = terrane.state.info.bounds;
            const at = (x, y) => map.queryTerrainElevation([w + (e - w) * x, s + (n - s) * y]);
            const all = [.2, .4, .6, .8].flatMap((x) => [.2, .4, .6, .8].map((y) => at(x, y)));
            return Math.max(...all) - Math.min(...all); }"""
    )
    assert span > 5, f"heights differ by {span} m alone"


def the_parts_are_shown(viewer: Viewer, folder: Path, is_phone: bool):
    """The bar is as wide as the parts that `terrane info` states; its legend opens and closes."""
    page = viewer.page
    page.locator("#parts .bar i").first.wait_for()
    parts = json.loads(terrane(folder, "info", "a.trn", "--parts", "--json"))
    bar = page.locator("#parts .bar").bounding_box()
    first = page.locator("#parts .bar i").first.bounding_box()
    assert abs(first["width"] / bar["width"] - parts["details"] / parts["bytes"]) < 0.03, (first, bar)
    legend = page.locator("#parts ul")
    assert legend.is_visible() != is_phone
    if is_phone:
        page.locator("#parts summary").tap()
    legend.wait_for()
    assert "Details" in legend.inner_text() and " %" in legend.inner_text(), legend.inner_text()
    assert "Details" in page.locator("#parts summary").get_attribute("aria-label")


def every_control_has_a_name(viewer: Viewer):
    nameless = viewer.page.evaluate(
        """() => [...document.querySelectorAll('button, input, select, [role=slider], [tabindex="0"]')].filter((node) => {
            const name = node.ariaLabel || node.title || node.labels?.[0]?.textContent || node.textContent || node.getAttribute('aria-label');
            return !name?.trim(); }).map((node) => node.outerHTML.slice(0, 80))"""
    )
    assert not nameless, nameless


def nothing_leaves_the_screen(viewer: Viewer, size: tuple[int, int]):
    boxes = viewer.page.evaluate(
        """() => [...document.querySelectorAll('.card:not([hidden])')].map((node) => [node.id, node.getBoundingClientRect().toJSON()])"""
    )
    for name, box in boxes:
        assert box["left"] >= -1 and box["right"] <= size[0] + 1 and box["top"] >= -1 and box["bottom"] <= size[1] + 1, (name, box)


def run(address: str, folder: Path, pictures: Path):
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=CHROMIUM,
            args=["--no-sandbox", "--use-angle=swiftshader", "--enable-unsafe-swiftshader", "--ignore-gpu-blocklist"],
        )
        for size, scheme in [(WIDE, "light"), (WIDE, "dark"), (PHONE, "light"), (PHONE, "dark"), (LANDSCAPE, "light"), (LANDSCAPE, "dark")]:
            is_phone = size != WIDE
            context = browser.new_context(
                viewport={"width": size[0], "height": size[1]}, color_scheme=scheme, has_touch=is_phone,
                device_scale_factor=2 if is_phone else 1,
            )
            page = context.new_page()
            viewer = Viewer(page, address)
            kind = f"{'wide' if size == WIDE else 'phone' if size == PHONE else 'landscape'}-{scheme}"
            save = lambda name: page.screenshot(path=pictures / f"{kind}-{name}.png")
            facts = page.locator("#facts").inner_text()
            assert "kB" in facts and "no error above 0.1 m" in facts, facts
            assert len(viewer.tiles) > 3
            every_control_has_a_name(viewer)
            the_parts_are_shown(viewer, folder, is_phone)
            save("parts")
            nothing_leaves_the_screen(viewer, size)
            assert page.locator(".maplibregl-ctrl-attrib-inner").inner_text() == ATTRIBUTION
            if size == LANDSCAPE:
                page.locator("#parts summary").tap()
                controls_are_in_reach(viewer)
                save("profile")
                nothing_leaves_the_screen(viewer, size)
            elif is_phone:
                page.locator("#parts summary").tap()
                page.touchscreen.tap(195, 430)
                page.locator("#point dl").wait_for()
                save("point")
                nothing_leaves_the_screen(viewer, size)
                page.locator("#point .close").click()
                page.locator("#fold").click()
                save("controls")
                page.locator("#draw").check()
                page.locator("#fold").click()
                page.touchscreen.tap(100, 300)
                page.wait_for_timeout(400)
                page.touchscreen.tap(300, 420)
                page.locator("#chart svg").wait_for()
                save("profile")
                nothing_leaves_the_screen(viewer, size)
            elif scheme == "light":
                layers_draw(viewer)
                a_click_is_a_query(viewer, folder)
                the_keyboard_is_enough(viewer)
                swipe_compares(viewer)
                the_swipe_says_what_is_shown(viewer)
                keys_work_after_the_slider(viewer)
                a_wheel_does_not_stop_the_tilt(viewer)
                numbers_are_written_well(page)
                a_profile_is_drawn(viewer)
                nothing_leaves_the_screen(viewer, size)
                save("profile")
                page.keyboard.press("Escape")
                page.keyboard.press("s")
                viewer.layer("Laplacian")
                save("swipe")
                page.keyboard.press("s")
                page.locator("#file").select_option("2019")
                viewer.settle()
                assert "2019 – terrane" == page.title() and not page.locator("#compare").is_visible()
                save("other")
            else:
                heights_stand_up(viewer)
                nothing_leaves_the_screen(viewer, size)
                save("raised")
                page.keyboard.press("t")
                page.wait_for_timeout(1200)
                a_link_shows_the_same(viewer, address)
                page.locator("#theme").click()
                assert page.evaluate("() => document.documentElement.dataset.theme") == "light"
            viewer.check()
            print(f"{kind}: good, {len(viewer.tiles)} tiles")
            context.close()
        damage_is_said(browser, folder)
        the_server_is_gone(browser, folder)
        browser.close()


def main():
    if not CHROMIUM:
        sys.exit("no Chromium: install one or name it in CHROMIUM")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        pictures = Path(os.environ.get("SCREENSHOTS") or tempfile.mkdtemp(prefix="terrane-viewer-"))
        pictures.mkdir(parents=True, exist_ok=True)
        with served(folder, prepare(folder)) as address:
            run(address, folder, pictures)
        print(f"screenshots in {pictures}")


if __name__ == "__main__":
    main()
