// The two maps: the decoded surface and, under it, the original.

import * as maplibregl from "./maplibre-gl.mjs";

/** Bounds of a source of tiles, which may not pass 180°: all longitudes where the raster does. */
const tileBounds = ({ bounds: [west, south, east, north] }) =>
  east > 180 ? [-180, south, 180, north] : [west, south, east, north];

export { maplibregl };

const colour = (name) => {
  // light-dark() is resolved by the browser where it is used.
  const probe = document.createElement("i");
  probe.style.color = `var(${name})`;
  document.body.append(probe);
  const value = getComputedStyle(probe).color;
  probe.remove();
  return value;
};

/** Contour lines: every fifth is heavier and says its height. The style names no glyphs, so the browser draws them. */
const CONTOURS = [
  {
    id: "contours", type: "line", layout: { "line-join": "round" },
    paint: { "line-color": "#5b3a1e", "line-opacity": ["case", ["get", "index"], 0.85, 0.5], "line-width": ["case", ["get", "index"], 1.4, 0.7] },
  },
  {
    id: "contours-heights", type: "symbol", filter: ["get", "index"],
    layout: {
      "symbol-placement": "line", "symbol-spacing": 200, "text-field": ["concat", ["to-string", ["get", "height"]], " m"],
      "text-font": ["sans-serif"], "text-size": 11, "text-padding": 4, "text-max-angle": 60,
    },
    paint: { "text-color": "#40260f", "text-halo-color": "rgba(255, 255, 255, 0.85)", "text-halo-width": 1.6 },
  },
];

/** What went wrong with a tile, without the address of each. */
const sentence = (error) => (error?.status ? `The map cannot be drawn: the server answers ${error.status}` : `The map cannot be drawn: ${error?.message ?? error}`);

export class TerrainMap {
  constructor(container, { hash = false, controls = false, label, report = () => {} }) {
    this.map = new maplibregl.Map({
      container,
      hash,
      attributionControl: false,
      maxPitch: 80,
      center: [0, 20],
      zoom: 1,
      style: { version: 8, sources: {}, layers: [{ id: "ground", type: "background", paint: { "background-color": colour("--ground") } }] },
      canvasContextAttributes: { antialias: true },
      locale: { "Map.Title": label },
    });
    if (controls) {
      this.map.addControl(new maplibregl.NavigationControl({ visualizePitch: true }), "top-right");
      this.map.addControl(new maplibregl.ScaleControl({ maxWidth: 120 }), "bottom-left");
    }
    // Tiles are asked for again and again: one sentence says what is wrong with all of them.
    this.map.on("error", ({ error }) => { if (error?.name !== "AbortError") report(sentence(error)); });
    this.map.on("dataloading", () => document.body.classList.add("is-loading"));
    this.map.on("idle", () => document.body.classList.remove("is-loading"));
    this.ready = new Promise((resolve) => this.map.once("load", resolve));
    this.exaggeration = 0;
    this.contours = null;
  }

  /** Shows an attribution, which is HTML, where there is one; MapLibre lets only harmless tags of it through. */
  attribute(attribution) {
    if (attribution) this.map.addControl(new maplibregl.AttributionControl({ compact: true, customAttribution: attribution }), "bottom-left");
  }

  /** Shows a layer of a file, replacing what was there. */
  async show(info, layer, source) {
    await this.ready;
    const { map } = this;
    const id = `${info.name}/${layer}`;
    this.addHeights(info, source);
    // Change has no colour where nothing is proven: the ground shows there.
    const ground = layer === "change" ? `${info.name}/hillshade` : null;
    if (ground) await this.show(info, "hillshade", source);
    if (!map.getSource(id)) {
      map.addSource(id, {
        type: "raster",
        tiles: [source.tiles(info.name, layer)],
        tileSize: 256,
        bounds: tileBounds(info),
        minzoom: info.layers.find((entry) => entry.name === layer)?.minzoom ?? info.minzoom,
        maxzoom: info.maxzoom,
      });
    }
    const shown = map.getStyle().layers.filter((entry) => entry.type === "raster").map((entry) => entry.id);
    if (!map.getLayer(id)) {
      const above = ["contours", "line"].find((other) => map.getLayer(other));
      map.addLayer({ id, type: "raster", source: id, paint: { "raster-fade-duration": 120, "raster-resampling": "linear" } }, above);
    }
    for (const other of shown) if (other !== id && other !== ground) map.removeLayer(other);
    for (const other of Object.keys(map.getStyle().sources)) {
      const isOld = !other.startsWith(`${info.name}/`) && other !== "line";
      if (isOld && other !== this.heights && other !== this.contours) map.removeSource(other);
    }
  }

  addHeights(info, source) {
    const { map } = this;
    const id = `${info.name}/height`;
    if (this.heights === id) return;
    const old = this.heights;
    map.setTerrain(null);
    map.addSource(id, {
      type: "raster-dem",
      encoding: "terrarium",
      // No bounds: around the data the ground goes on at its lowest height instead of falling to zero.
      tiles: [source.heights(info.name)],
      tileSize: 256,
      maxzoom: Math.min(info.maxzoom, 17),
    });
    this.heights = id;
    if (old) map.removeSource(old);
    this.raise(this.exaggeration);
  }

  /** Draws contour lines of a file over the map, or none. */
  async contour(info, source) {
    await this.ready;
    const { map } = this;
    const id = info && `${info.name}/contours`;
    if (this.contours === id) return;
    for (const layer of CONTOURS) if (map.getLayer(layer.id)) map.removeLayer(layer.id);
    if (this.contours && map.getSource(this.contours)) map.removeSource(this.contours);
    this.contours = id;
    if (!info) return;
    map.addSource(id, { type: "vector", tiles: [source.contours(info.name)], bounds: tileBounds(info), minzoom: info.minzoom, maxzoom: info.maxzoom });
    const above = map.getLayer("line") ? "line" : undefined;
    for (const layer of CONTOURS) map.addLayer({ ...layer, source: id, "source-layer": "contours" }, above);
  }

  /** Lifts the map by its heights, or lays it flat at 0. */
  raise(exaggeration) {
    this.exaggeration = exaggeration;
    if (!this.heights) return;
    this.map.setTerrain(exaggeration > 0 ? { source: this.heights, exaggeration } : null);
  }

  fit(info, options = {}) {
    const [west, south, east, north] = info.bounds;
    this.map.fitBounds([[west, south], [east, north]], { padding: options.padding, animate: false, pitch: options.pitch ?? 0, bearing: options.bearing ?? 0 });
    // A large file without overviews has no tiles for so coarse a view; those of 256 pixels are shown a zoom before theirs.
    const least = info.minzoom - 1;
    if (this.map.getZoom() < least) this.map.jumpTo({ center: [(west + east) / 2, (south + north) / 2], zoom: least });
  }

  /** Takes the colours of the page. */
  async recolour() {
    await this.ready;
    this.map.setPaintProperty("ground", "background-color", colour("--ground"));
    this.map.setSky({
      "sky-color": colour("--sky"), "horizon-color": colour("--ground"), "fog-color": colour("--ground"),
      "sky-horizon-blend": 0.6, "horizon-fog-blend": 0.7, "fog-ground-blend": 0.85, "atmosphere-blend": 0,
    });
  }

  /** A line on the map. */
  async line(points) {
    await this.ready;
    const { map } = this;
    const data = {
      type: "FeatureCollection",
      features: [
        ...(points.length > 1 ? [{ type: "Feature", properties: {}, geometry: { type: "LineString", coordinates: points } }] : []),
        ...points.map((point) => ({ type: "Feature", properties: {}, geometry: { type: "Point", coordinates: point } })),
      ],
    };
    if (map.getSource("line")) {
      map.getSource("line").setData(data);
      return;
    }
    map.addSource("line", { type: "geojson", data });
    const isLine = ["==", ["geometry-type"], "LineString"];
    map.addLayer({ id: "line", type: "line", source: "line", filter: isLine, layout: { "line-cap": "round", "line-join": "round" }, paint: { "line-color": "#ffffff", "line-width": 6, "line-opacity": 0.9 } });
    map.addLayer({ id: "line-inner", type: "line", source: "line", filter: isLine, layout: { "line-cap": "round", "line-join": "round" }, paint: { "line-color": "#c4672b", "line-width": 3 } });
    map.addLayer({ id: "line-corners", type: "circle", source: "line", filter: ["==", ["geometry-type"], "Point"], paint: { "circle-radius": 5, "circle-color": "#c4672b", "circle-stroke-color": "#ffffff", "circle-stroke-width": 2 } });
  }
}

/** Keeps two maps at the same view. */
export const keepTogether = (first, second) => {
  let isFollowing = false;
  const follow = (from, to) => () => {
    if (isFollowing) return;
    isFollowing = true;
    to.jumpTo({ center: from.getCenter(), zoom: from.getZoom(), bearing: from.getBearing(), pitch: from.getPitch() });
    isFollowing = false;
  };
  first.on("move", follow(first, second));
  second.on("move", follow(second, first));
  follow(first, second)();
};
