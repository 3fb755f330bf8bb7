// Heights along a line as a drawing.

import { distance, metres } from "./words.js";

const NAMESPACE = "http://www.w3.org/2000/svg";
const MARGIN = { left: 52, right: 14, top: 16, bottom: 22 };

const node = (tag, attributes, ...children) => {
  const made = document.createElementNS(NAMESPACE, tag);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
};

/** Round steps of 1, 2 or 5 for about so many parts. */
export const steps = (low, high, count) => {
  const raw = (high - low) / count;
  const size = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((factor) => factor * size).find((value) => value >= raw * 0.999);
  const values = [];
  for (let value = Math.ceil(low / step - 1e-9) * step; value <= high + step * 1e-9; value += step) values.push(value);
  return values;
};

/** A path through the points that have a height, broken where there is none. */
const trace = (points, x, y) => {
  let path = "";
  let isOpen = false;
  for (const point of points) {
    if (point.height_m === null) {
      isOpen = false;
      continue;
    }
    path += `${isOpen ? "L" : "M"}${x(point.distance_m).toFixed(1)} ${y(point.height_m).toFixed(1)}`;
    isOpen = true;
  }
  return path;
};

const areas = (points, x, y, floor) => {
  let path = "";
  let run = [];
  const close = () => {
    if (run.length > 1) path += `M${x(run[0].distance_m)} ${floor}${trace(run, x, y).replace("M", "L")}L${x(run.at(-1).distance_m)} ${floor}Z`;
    run = [];
  };
  for (const point of points) point.height_m === null ? close() : run.push(point);
  close();
  return path;
};

/** Draws profiles into a box, with heights of so many decimal places; `onPoint` is told the point under the cursor, or null. */
export const drawChart = (box, profile, original, places, onPoint) => {
  const { width, height } = box.getBoundingClientRect();
  const heights = [profile, original].filter(Boolean).flatMap((one) => one.points.map((point) => point.height_m)).filter((value) => value !== null);
  if (heights.length === 0) {
    box.replaceChildren();
    return;
  }
  let [low, high] = [Math.min(...heights), Math.max(...heights)];
  const pad = Math.max((high - low) * 0.08, 0.05);
  [low, high] = [low - pad, high + pad];
  const length = Math.max(profile.length_m, 1e-6);
  const x = (value) => MARGIN.left + (value / length) * (width - MARGIN.left - MARGIN.right);
  const y = (value) => height - MARGIN.bottom - ((value - low) / (high - low)) * (height - MARGIN.top - MARGIN.bottom);
  const label = `Heights from ${metres(Math.min(...heights), 1)} to ${metres(Math.max(...heights), 1)} over ${distance(profile.length_m)}; arrow keys move along the line`;
  const svg = node("svg", { viewBox: `0 0 ${width} ${height}`, role: "slider", tabindex: 0, "aria-label": label, "aria-valuemin": 0, "aria-valuemax": profile.points.length - 1, "aria-valuenow": 0 });
  const levels = steps(low, high, 4);
  const digits = Math.max(0, -Math.floor(Math.log10(levels.length > 1 ? levels[1] - levels[0] : 1)));
  for (const value of levels) {
    svg.append(node("line", { class: "grid", x1: MARGIN.left, x2: width - MARGIN.right, y1: y(value), y2: y(value) }),
      node("text", { class: "axis", x: MARGIN.left - 7, y: y(value) + 4, "text-anchor": "end" }, metres(value, Math.min(digits, 2))));
  }
  for (const value of steps(0, length, Math.max(2, width / 140))) {
    svg.append(node("text", { class: "axis", x: x(value), y: height - 6, "text-anchor": "middle" }, distance(value)));
  }
  svg.append(node("path", { class: "area", d: areas(profile.points, x, y, height - MARGIN.bottom) }));
  svg.append(node("path", { class: "trace", d: trace(profile.points, x, y) }));
  if (original) svg.append(node("path", { class: "trace before", d: trace(original.points, x, y) }));
  const cursor = node("g", { visibility: "hidden" });
  const rule = node("line", { class: "cursor", y1: MARGIN.top, y2: height - MARGIN.bottom });
  const dot = node("circle", { class: "dot", r: 5 });
  const text = node("text", { class: "read", y: 11 });
  cursor.append(rule, dot, text);
  svg.append(cursor);

  let at = 0;
  const point = (index) => {
    at = Math.min(profile.points.length - 1, Math.max(0, index));
    const found = profile.points[at];
    const across = x(found.distance_m);
    rule.setAttribute("x1", across);
    rule.setAttribute("x2", across);
    dot.setAttribute("cx", across);
    dot.setAttribute("cy", found.height_m === null ? -99 : y(found.height_m));
    const words = `${found.height_m === null ? "no data" : metres(found.height_m, places)} at ${distance(found.distance_m)}`;
    text.textContent = words;
    text.setAttribute("x", Math.min(width - 70, Math.max(MARGIN.left + 60, across)));
    text.setAttribute("text-anchor", "middle");
    cursor.setAttribute("visibility", "visible");
    svg.setAttribute("aria-valuenow", at);
    svg.setAttribute("aria-valuetext", words);
    onPoint(found);
  };
  const leave = () => {
    cursor.setAttribute("visibility", "hidden");
    onPoint(null);
  };
  svg.addEventListener("pointermove", (event) => {
    const part = (event.clientX - svg.getBoundingClientRect().left - MARGIN.left) / (width - MARGIN.left - MARGIN.right);
    point(Math.round(part * (profile.points.length - 1)));
  });
  svg.addEventListener("pointerleave", leave);
  svg.addEventListener("blur", leave);
  svg.addEventListener("keydown", (event) => {
    const step = { ArrowLeft: -1, ArrowRight: 1, PageDown: -16, PageUp: 16, Home: -1e6, End: 1e6 }[event.key];
    if (!step) return;
    event.preventDefault();
    point(at + step);
  });
  box.replaceChildren(svg);
};
