// The page: which file and layer are shown, and what the controls do.

import { VIEW, readAddress, writeAddress } from "./address.js";
import { Inspector } from "./inspect.js";
import { gradient, showLegend } from "./legend.js";
import { TerrainMap, keepTogether, maplibregl } from "./maps.js";
import { PartsBar, percent } from "./parts.js";
import { ProfileTool } from "./profile.js";
import { connect } from "./source.js";
import { Swipe } from "./swipe.js";
import { TITLES, bytes, element } from "./words.js";

const at = (id) => document.getElementById(id);
/** A sentence that stays until it is closed, or until what it speaks of is over. */
const report = (text) => {
  at("notice-text").textContent = text;
  at("notice").hidden = false;
};
const forget = () => { at("notice").hidden = true; };
const progress = (text) => { at("loading-text").textContent = text; };

const state = { names: [], info: null, source: null, parts: null, layer: "relief", isCompared: false, hasContours: false };
// Asked before the map writes its own view there.
const asked = readAddress();
const upper = new TerrainMap("map", { hash: VIEW, controls: true, label: "Map of the decoded surface", report });
let lower = null;
const maps = () => (lower && state.isCompared ? [upper, lower] : [upper]);
const swipe = new Swipe(at("swipe"), at("map"), at("stage"));
const source = () => state.source;
const inspector = new Inspector(at("point"), maps, source);
const partsBar = new PartsBar(at("parts"), source, (parts) => {
  state.parts = parts;
  showFacts(state.info);
});
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

/** Writes into the address what a link needs to show the same. */
const remember = () => {
  if (!state.info) return;
  writeAddress({
    file: state.names.length > 1 ? state.info.name : null,
    layer: state.layer === "relief" ? null : state.layer,
    "3d": at("relief3d").checked ? at("exaggeration").value : null,
    contours: state.hasContours ? "on" : null,
    compare: state.isCompared ? "on" : null,
  });
};

const refresh = async () => {
  const { info, layer } = state;
  remember();
  swipe.name({ difference: "difference", change: "proven change" }[layer] ?? "decoded");
  showLegend(at("legend"), layerOf(layer), info, upper.map.getZoom());
  await upper.show(info, layer, state.source);
  await upper.contour(state.hasContours ? info : null, state.source);
  if (lower && state.isCompared) await lower.show(state.originalInfo, ["difference", "change"].includes(layer) ? "relief" : layer, state.source);
};

const drawContours = (isOn) => {
  state.hasContours = isOn;
  at("contours").checked = isOn;
  remember();
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
  const damaged = state.parts?.damaged;
  // What is promised is promised of what is whole.
  if (damaged) parts.push(element("span", {}, element("b", { className: "damaged" }, `${percent(damaged / state.parts.bytes)} of the file damaged`)), element("span", {}, `elsewhere ${bound}`));
  else parts.push(element("span", {}, element("b", {}, bound)));
  if (info.rmse_m) parts.push(element("span", { className: "wide" }, `RMSE ${info.rmse_m.toFixed(3)} m`));
  parts.push(element("span", { className: "wide" }, info.crs));
  at("facts-text").replaceChildren(...parts);
};

/** Where the controls are a sheet, as on phones, and where there is little room above each other; as in the style sheet. */
const isNarrow = matchMedia("(max-width: 720px)");
const isLow = matchMedia("(max-height: 500px)");
const padding = () => {
  if (isNarrow.matches) return { left: 16, right: 16, top: 80, bottom: 90 };
  return isLow.matches ? { left: 290, right: 50, top: 10, bottom: 50 } : { left: 310, right: 40, top: 40, bottom: 110 };
};

/** Files that were asked for: one that is opened late does not replace a later choice. */
let openings = 0;

const openFile = async (name, { layer = state.layer, keepsView = false } = {}) => {
  const opening = (openings += 1);
  const info = await state.source.info(name);
  const originalInfo = info.original ? await state.source.info(info.original) : null;
  if (opening !== openings) return;
  Object.assign(state, { info, originalInfo, parts: null });
  const isKnown = layerOf(layer) && TITLES[layer];
  state.layer = isKnown ? layer : "relief";
  forget();
  document.title = `${name} – terrane`;
  at("file").value = name;
  listLayers();
  showFacts(state.info);
  partsBar.show(info, !isNarrow.matches && !isLow.matches);
  at("compare-choice").hidden = !state.originalInfo;
  if (!originalInfo && state.isCompared) await compare(false);
  inspector.hide();
  if (!keepsView) upper.fit(state.info, { padding: padding() });
  await setLayer(state.layer);
  profile.refresh();
};

/** Opens a file that was chosen; where that fails, the one before stays. */
const choose = (name, options) => openFile(name, options).catch((error) => {
  report(error.message);
  if (state.info) at("file").value = state.info.name;
});

/** Shows what an address says. */
const follow = async (asked) => {
  const { names } = state;
  const isHere = names.includes(asked.file);
  const name = isHere ? asked.file : names[0];
  // A view belongs to the file that it was written with.
  const keepsView = VIEW in asked && (isHere || names.length === 1);
  if (state.info?.name !== name) await openFile(name, { layer: asked.layer ?? "relief", keepsView });
  else await setLayer(layerOf(asked.layer) ? asked.layer : "relief");
  if (asked.file && !isHere && names.length > 1) report(`There is no file ${asked.file} here.`);
  await drawContours(asked.contours === "on");
  if (state.originalInfo) await compare(asked.compare === "on");
  const factor = Number(asked["3d"]);
  const isRaised = factor > 0;
  if (isRaised) at("exaggeration").value = factor;
  if (at("relief3d").checked === isRaised) return isRaised ? raise() : undefined;
  at("relief3d").checked = isRaised;
  return keepsView ? raise() : tilt();
};

/** Shows what the address says or, where its file cannot be opened, the next one that can. */
const openFirst = async () => {
  const { names } = state;
  const first = names.includes(asked.file) ? asked.file : names[0];
  let failure;
  for (const name of [first, ...names.filter((other) => other !== first)]) {
    progress(`Opening ${name}…`);
    try {
      await follow(name === first ? asked : { file: name });
      if (failure) report(failure.message);
      return;
    } catch (error) {
      failure ??= error;
    }
  }
  throw failure ?? new Error("there are no files here");
};

const compare = async (isOn) => {
  at("compare").checked = isOn;
  at("map-original").hidden = !isOn;
  state.isCompared = isOn;
  if (isOn && !lower) {
    lower = new TerrainMap("map-original", { label: "Map of the original" });
    lower.attribute(state.attribution);
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
  remember();
  for (const map of [upper, lower].filter(Boolean)) map.raise(isRaised ? factor : 0);
};

/** Milliseconds after a step of the wheel in which the map finds out that it is one. */
const WHEEL_MS = 60;
let turned = -WHEEL_MS;

const tilt = () => {
  raise();
  clearTimeout(tilt.timer);
  const { map } = upper;
  // A wheel that still zooms would stop this movement.
  if (performance.now() - turned < WHEEL_MS || map.scrollZoom.isActive()) {
    tilt.timer = setTimeout(tilt, WHEEL_MS);
    return;
  }
  const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
  const isRaised = at("relief3d").checked;
  // A tilted map needs room in front.
  const zoom = map.getZoom() + (isRaised ? -0.6 : 0.6);
  map.easeTo({ pitch: isRaised ? 56 : 0, bearing: isRaised ? -18 : 0, zoom, duration: still ? 0 : 900 });
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
  at("file").onchange = () => choose(at("file").value);
  at("notice-close").onclick = forget;
  addEventListener("hashchange", () => state.info && follow(readAddress()).catch((error) => report(error.message)));
  at("relief3d").onchange = tilt;
  at("exaggeration").oninput = raise;
  at("compare").onchange = () => compare(at("compare").checked);
  at("contours").onchange = () => drawContours(at("contours").checked);
  at("draw").onchange = () => drawing(at("draw").checked);
  at("profile-close").onclick = () => drawing(false);
  upper.map.on("zoomend", () => state.info && showLegend(at("legend"), layerOf(state.layer), state.info, upper.map.getZoom()));
  upper.map.getCanvas().addEventListener("wheel", () => { turned = performance.now(); }, { passive: true });
  listen(upper);
  addEventListener("keydown", (event) => {
    const isTyping = event.target instanceof Element && event.target.matches("input:not([type=radio], [type=checkbox], [type=range]), select, textarea");
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
  fold(isNarrow.matches);
  wire();
  const { names, attribution, source } = await connect(maplibregl);
  Object.assign(state, { names, attribution, source });
  upper.attribute(attribution);
  at("file").replaceChildren(...names.map((name) => element("option", { value: name }, name)));
  at("file-choice").hidden = names.length < 2;
  await openFirst();
  document.documentElement.dataset.ready = "true";
};

// Tests look at the maps through this.
window.terrane = { upper, lower: () => lower, state };
start().catch((error) => {
  document.documentElement.dataset.failed = "true";
  report(`The map could not be started: ${error.message}`);
});
