// What the colours mean.

import { brief, element, metres } from "./words.js";

export const gradient = (layer, angle = "90deg") => {
  const stops = layer.legend?.stops;
  if (!stops) return "linear-gradient(135deg, #f4f4f2, #8d918e 55%, #3f4442)";
  const [low, high] = [stops[0][0], stops.at(-1)[0]];
  const parts = stops.map(([value, colour]) => `${colour} ${((value - low) / (high - low)) * 100}%`);
  return `linear-gradient(${angle}, ${parts.join(", ")})`;
};

const NOTES = {
  laplacian: "blue: hollows · orange: ridges and edges",
  "profile-curvature": "along the line of fall; orange: convex",
  "plan-curvature": "along contour lines; orange: spurs",
  difference: "decoded minus original; magenta: data on one side alone",
  change: "since the earlier file; red: lower · blue: higher · no colour: not proven",
  aspect: "where the ground falls to",
};

const ticks = (layer, info, zoom) => {
  const { kind } = layer.legend;
  if (kind === "range") return [info.lowest_m, (info.lowest_m + info.highest_m) / 2, info.highest_m].map((height) => metres(height, 0));
  if (kind === "linear") return ["0°", "30°", "60°", "90°"];
  if (kind === "cyclic") return ["N", "E", "S", "W", "N"];
  const zooms = Object.keys(layer.limit_by_zoom).map(Number);
  const nearest = Math.min(Math.max(Math.round(zoom + 1), zooms[0]), zooms.at(-1));
  const limit = layer.limit_by_zoom[nearest];
  // Curvatures are drawn by their root: a quarter of the limit stands half way.
  const half = kind === "root" ? limit / 4 : limit / 2;
  const values = [-limit, -half, 0, half, limit].map(brief);
  const unit = layer.unit === "1/m" ? " /m" : ` ${layer.unit}`;
  return [...values.slice(0, 4), values[4] + unit];
};

/** Fills the legend of a layer at a zoom. */
export const showLegend = (box, layer, info, zoom) => {
  if (!layer?.legend) {
    box.replaceChildren();
    return;
  }
  const bar = element("div", { className: "bar", role: "presentation" });
  bar.style.background = gradient(layer);
  const row = element("div", { className: "ticks" });
  row.append(...ticks(layer, info, zoom).map((text) => element("span", {}, text)));
  const note = NOTES[layer.name];
  box.replaceChildren(bar, row, ...(note ? [element("p", {}, note)] : []));
};
