// The page: which file and layer are shown, and what the controls do.

import { Inspector } from "./inspect.js";
import { gradient, showLegend } from "./legend.js";
import { TerrainMap, keepTogether, maplibregl } from "./maps.js";
import { PartsBar } from "./parts.js";
import { ProfileTool } from "./profile.js";
import { connect } from "./source.js";
import { Swipe } from "./swipe.js";
import { TITLES, bytes, element } from "./words.js";

const at = (id) => document.getElementById(id);
const report = (text) => {
  at("notice").textContent = text;
  at("notice").hidden = false;
  clearTimeout(report.timer);
  report.timer = setTimeout(() => { at("notice").hidden = true; }, 6000);
};

const state = { info: null, source: null, layer: "relief", isCompared: false, hasContours: false };
// Asked before the map writes its own view there.
const hasView = location.hash.includes("view=");
const upper = new TerrainMap("map", { hash: "view", controls: true, label: "Map of the decoded surface" });
let lower = null;
const maps = () => (lower && state.isCompared ? [upper, lower] : [upper]);
const swipe = new Swipe(at("swipe"), at("map"), at("stage"));
const source = () => state.source;
const inspector = new Inspector(at("point"), maps, source);
const partsBar = new PartsBar(at("parts"), source);
const profile = new ProfileTool(maps, source, () => state.info, report);

const THEMES = ["system", "light", "dark"];
const isDark = matchMedia("(prefers-color-scheme: dark)");

const setTheme = (theme) => {
  if (theme === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
  const shade = theme === "system" ? (isDark.matches ? "dark" : "light") : theme;
  document.documentElement.dataset.shade = shade;
  at("theme").ariaLabel = `Colours: ${theme === "system" ? "as the system" : theme}`;
  localStorage.setItem("theme", theme);
  for (const map of [upper, lower].filter(Boolean)) map.recolour();
};
const theme = () => localStorage.getItem("theme") ?? "system";

const layerOf = (name) => state.info.layers.find((layer) => layer.name === name);

const refresh = async () => {
  const { info, layer } = state;
  showLegend(at("legend"), layerOf(layer), info, upper.map.getZoom());
  await upper.show(info, layer, state.source);
  await upper.contour(state.hasContours ? info : null, state.source);
  if (lower && state.isCompared) await lower.show(state.originalInfo, ["difference", "change"].includes(layer) ? "relief" : layer, state.source);
};

const drawContours = (isOn) => {
  state.hasContours = isOn;
  return upper.contour(isOn ? state.info : null, state.source);
};

const setLayer = (name) => {
  state.layer = name;
  const input = document.querySelector(`#layers input[value="${name}"]`);
  if (input) input.checked = true;
  return refresh();
};

const listLayers = () => {
  const options = state.info.layers.filter((layer) => TITLES[layer.name]).map((layer) => {
    const input = element("input", { type: "radio", name: "layer", value: layer.name, onchange: () => setLayer(layer.name) });
    const swatch = element("i");
    swatch.style.background = gradient(layer, layer.name === "aspect" ? "120deg" : "90deg");
    return element("label", { className: "layer" }, input, swatch, element("span", {}, TITLES[layer.name]));
  });
  at("layers").replaceChildren(at("layers").querySelector("legend"), ...options);
};

const showFacts = (info) => {
  const parts = [element("span", {}, element("b", {}, bytes(info.bytes)))];
  if (info.original_bytes) parts.push(element("span", { className: "wide" }, `original ${bytes(info.original_bytes)} (${(info.original_bytes / info.bytes).toFixed(1)}×)`));
  if (info.bpp) parts.push(element("span", { className: "wide" }, `${info.bpp.toFixed(2)} bits per pixel`));
  const bound = info.lossless ? "lossless" : info.bound_m ? `no error above ${info.bound_m} m` : info.max_error_m !== undefined ? `maximum error ${info.max_error_m.toFixed(3)} m` : "the original";
  parts.push(element("span", {}, element("b", {}, bound)));
  if (info.rmse_m) parts.push(element("span", { className: "wide" }, `RMSE ${info.rmse_m.toFixed(3)} m`));
  parts.push(element("span", { className: "wide" }, info.crs));
  at("facts-text").replaceChildren(...parts);
};

const padding = () => innerWidth > 720 ? { left: 310, right: 40, top: 40, bottom: 110 } : { left: 16, right: 16, top: 80, bottom: 90 };

const openFile = async (name, isFirst) => {
  state.info = await state.source.info(name);
  state.originalInfo = state.info.original ? await state.source.info(state.info.original) : null;
  document.title = `${name} – terrane`;
  at("file").value = name;
  listLayers();
  showFacts(state.info);
  partsBar.show(state.info);
  at("compare-choice").hidden = !state.originalInfo;
  if (!state.originalInfo) await compare(false);
  inspector.hide();
  if (!isFirst || !hasView) upper.fit(state.info, { padding: padding() });
  await setLayer(layerOf(state.layer) ? state.layer : "relief");
  profile.refresh();
};

const compare = async (isOn) => {
  at("compare").checked = isOn;
  at("map-original").hidden = !isOn;
  state.isCompared = isOn;
  if (isOn && !lower) {
    lower = new TerrainMap("map-original", { label: "Map of the original" });
    keepTogether(upper.map, lower.map);
    lower.raise(upper.exaggeration);
    listen(lower);
    lower.recolour();
  }
  lower?.map.resize();
  swipe.set(isOn);
  if (isOn) upper.map.fire("move");
  await refresh();
};

const raise = () => {
  const isRaised = at("relief3d").checked;
  const factor = Number(at("exaggeration").value);
  at("exaggeration-choice").hidden = !isRaised;
  at("exaggeration-value").textContent = `×${factor}`;
  for (const map of [upper, lower].filter(Boolean)) map.raise(isRaised ? factor : 0);
};

const tilt = () => {
  raise();
  const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
  const isRaised = at("relief3d").checked;
  // A tilted map needs room in front.
  const zoom = upper.map.getZoom() + (isRaised ? -0.6 : 0.6);
  upper.map.easeTo({ pitch: isRaised ? 56 : 0, bearing: isRaised ? -18 : 0, zoom, duration: still ? 0 : 900 });
};

const touch = (place) => {
  if (profile.isOn) return profile.add(place);
  return inspector.show(state.info, place).catch((error) => { if (error.name !== "AbortError") report(error.message); });
};

function listen(terrain) {
  terrain.map.on("click", (event) => state.info && touch([event.lngLat.lng, event.lngLat.lat]));
  terrain.map.getCanvas().addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || !state.info) return;
    const { lng, lat } = terrain.map.getCenter();
    touch([lng, lat]);
  });
}

const drawing = (isOn) => {
  at("draw").checked = isOn;
  profile.set(isOn);
  for (const { map } of maps()) isOn ? map.doubleClickZoom.disable() : map.doubleClickZoom.enable();
};

const fold = (isFolded) => {
  at("panel").classList.toggle("is-folded", isFolded);
  at("fold").ariaExpanded = String(!isFolded);
  at("fold").ariaLabel = isFolded ? "Show the controls" : "Hide the controls";
};

const wire = () => {
  // Other cards stand clear of this one, however high it is.
  const stand = () => document.documentElement.style.setProperty("--facts", `${at("facts").offsetHeight}px`);
  new ResizeObserver(stand).observe(at("facts"));
  at("theme").onclick = () => setTheme(THEMES[(THEMES.indexOf(theme()) + 1) % THEMES.length]);
  isDark.addEventListener("change", () => setTheme(theme()));
  at("fold").onclick = () => fold(!at("panel").classList.contains("is-folded"));
  at("file").onchange = () => openFile(at("file").value, false).catch((error) => report(error.message));
  at("relief3d").onchange = tilt;
  at("exaggeration").oninput = raise;
  at("compare").onchange = () => compare(at("compare").checked);
  at("contours").onchange = () => drawContours(at("contours").checked);
  at("draw").onchange = () => drawing(at("draw").checked);
  at("profile-close").onclick = () => drawing(false);
  upper.map.on("zoomend", () => state.info && showLegend(at("legend"), layerOf(state.layer), state.info, upper.map.getZoom()));
  listen(upper);
  addEventListener("keydown", (event) => {
    const isTyping = event.target instanceof Element && event.target.matches("input:not([type=radio], [type=checkbox]), select, textarea");
    if (isTyping || event.ctrlKey || event.metaKey || event.altKey || !state.info) return;
    const switched = { t: "relief3d", c: "contours", s: "compare", p: "draw" }[event.key.toLowerCase()];
    if (switched && !at(switched).closest("[hidden]")) at(switched).click();
    else if (event.key.toLowerCase() === "d") at("theme").click();
    else if (event.key === "Escape") profile.isOn ? drawing(false) : inspector.hide();
    else if (/^[1-9]$/.test(event.key)) document.querySelectorAll("#layers input")[event.key - 1]?.click();
  });
};

const start = async () => {
  setTheme(theme());
  fold(innerWidth <= 720);
  wire();
  const { names, source } = await connect(maplibregl);
  state.source = source;
  at("file").replaceChildren(...names.map((name) => element("option", { value: name }, name)));
  at("file-choice").hidden = names.length < 2;
  await openFile(names[0], true);
  document.documentElement.dataset.ready = "true";
};

// Tests look at the maps through this.
window.terrane = { upper, lower: () => lower, state };
start().catch((error) => report(`The map could not be started: ${error.message}`));
