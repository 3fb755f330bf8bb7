// A line drawn on the map and the heights along it.

import { drawChart } from "./chart.js";
import { maplibregl } from "./maps.js";
import { digitsOf, distance, element, metres } from "./words.js";

export class ProfileTool {
  constructor(maps, source, info, report) {
    this.maps = maps;
    this.source = source;
    this.info = info;
    this.report = report;
    this.points = [];
    this.isOn = false;
    this.section = document.getElementById("profile");
    this.text = document.getElementById("profile-text");
    this.chart = document.getElementById("chart");
    document.getElementById("profile-undo").onclick = () => this.undo();
    document.getElementById("profile-add").onclick = () => {
      const { lng, lat } = this.maps()[0].map.getCenter();
      this.add([lng, lat]);
    };
    new ResizeObserver(() => this.draw()).observe(this.chart);
  }

  set(isOn) {
    this.isOn = isOn;
    this.section.hidden = !isOn;
    document.body.classList.toggle("is-drawing", isOn);
    document.body.classList.toggle("has-profile", isOn);
    if (!isOn) this.points = [];
    this.refresh();
  }

  add(point) {
    this.points.push(point);
    this.refresh();
  }

  undo() {
    this.points.pop();
    this.refresh();
  }

  async refresh() {
    for (const map of this.maps()) map.line(this.points);
    document.getElementById("profile-undo").disabled = this.points.length === 0;
    this.request?.abort();
    if (this.points.length < 2) {
      this.profile = null;
      this.chart.replaceChildren();
      this.text.textContent = this.isOn ? (this.points.length ? "Click where it ends" : "Click where the line starts, then where it goes") : "";
      this.chart.hidden = true;
      this.hover(null);
      return;
    }
    this.request = new AbortController();
    const { signal } = this.request;
    const ask = (name) => this.source().profile(name, this.points, 400, signal);
    try {
      const { name, original } = this.info();
      [this.profile, this.original] = await Promise.all([ask(name), original ? ask(original) : null]);
    } catch (error) {
      if (error.name !== "AbortError") this.report(error.message);
      return;
    }
    const { length_m, ascent_m, descent_m } = this.profile;
    this.text.textContent = `${distance(length_m)} · ↑ ${metres(ascent_m, 1)} · ↓ ${metres(descent_m, 1)}${this.original ? " · dashed: original" : ""}`;
    this.chart.hidden = false;
    this.draw();
  }

  draw() {
    if (this.profile && !this.chart.hidden) drawChart(this.chart, this.profile, this.original, digitsOf(this.info()), (point) => this.hover(point));
  }

  hover(point) {
    for (const marker of this.markers ?? []) marker.remove();
    this.markers = point
      ? this.maps().map(({ map }) => new maplibregl.Marker({ element: element("div", { className: "marker small" }) })
          .setLngLat([point.longitude_deg, point.latitude_deg]).addTo(map))
      : [];
  }
}
