// What the surface is at a point.

import { maplibregl } from "./maps.js";
import { TITLES, bearing, degrees, digitsOf, element, fixed, metres, perMetre } from "./words.js";

const rows = (point, original, digits) => {
  const pairs = [
    [TITLES.slope, degrees(point.slope_deg)],
    [TITLES.aspect, point.aspect_deg === null ? "level" : `${degrees(point.aspect_deg, 0)} ${bearing(point.aspect_deg)}`],
    [TITLES.laplacian, perMetre(point.laplacian_per_m)],
    [TITLES["profile-curvature"], perMetre(point.profile_curvature_per_m)],
    [TITLES["plan-curvature"], perMetre(point.plan_curvature_per_m)],
  ];
  const list = element("dl");
  for (const [name, value] of pairs) {
    const cell = element("dd", {}, value);
    if (name === TITLES.aspect && point.aspect_deg !== null) {
      const arrow = element("span", { className: "arrow", ariaHidden: "true" }, "↑");
      arrow.style.transform = `rotate(${point.aspect_deg}deg)`;
      cell.prepend(arrow);
    }
    list.append(element("dt", {}, name), cell);
  }
  if (original?.height_m !== undefined && original.height_m !== null) {
    const difference = point.height_m - original.height_m;
    list.append(
      element("div", { className: "rule" }),
      element("dt", {}, "Original"), element("dd", {}, metres(original.height_m, digits)),
      element("dt", {}, "Difference"), element("dd", {}, metres(difference, digits)),
    );
  }
  return list;
};

export class Inspector {
  constructor(box, maps, source) {
    this.box = box;
    this.maps = maps;
    this.source = source;
    this.markers = [];
  }

  /** Asks for a point and shows the answer. */
  async show(info, [longitude, latitude]) {
    this.request?.abort();
    this.request = new AbortController();
    const ask = (name) => this.source().point(name, [longitude, latitude], this.request.signal);
    this.mark([longitude, latitude]);
    const [point, original] = await Promise.all([ask(info.name), info.original ? ask(info.original) : null]);
    const close = element("button", { className: "plain close", type: "button", ariaLabel: "Close", onclick: () => this.hide() });
    close.innerHTML = '<svg viewBox="0 0 24 24" aria-hidden="true"><path d="M6 6l12 12M18 6L6 18"/></svg>';
    const where = element("p", { className: "place" }, `${latitude.toFixed(6)}°, ${longitude.toFixed(6)}°`);
    const digits = digitsOf(info);
    const parts = point.height_m === null
      ? [element("h2", {}, "No data"), where]
      : [element("h2", {}, fixed(point.height_m, digits), element("small", {}, " m")), where, rows(point, original, digits + 1)];
    Object.assign(this.box.dataset, { longitude, latitude, height: point.height_m });
    this.box.replaceChildren(close, ...parts);
    this.box.hidden = false;
  }

  mark(place) {
    for (const marker of this.markers) marker.remove();
    this.markers = this.maps().map(({ map }) =>
      new maplibregl.Marker({ element: element("div", { className: "marker" }) }).setLngLat(place).addTo(map));
  }

  hide() {
    this.box.hidden = true;
    for (const marker of this.markers) marker.remove();
    this.markers = [];
  }
}
