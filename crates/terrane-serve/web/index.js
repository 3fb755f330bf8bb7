// Terrane files in the browser: heights, profiles, map tiles and contours from a file on any static host.

import { definition, model as findModel } from "./assets.js";
import { Bytes } from "./bytes.js";
import { Input } from "./input.js";
import { aborted, everywhere, placeOf } from "./pool.js";

/** Rounds of reading that a request may take; two are usual. */
const ROUNDS = 64;

let numbers = 0;

export class Terrain {
  #number = (numbers += 1);
  #bytes;
  #model;
  #isClosed = false;
  /** A coordinate system that neither the decoder nor the package knows. */
  #unknownSystem;

  /** Use `open`. */
  constructor(input, { model } = {}) {
    this.#bytes = new Bytes(input.address ?? input.blob);
    this.#model = model;
    /** The address under which the map protocol knows it. */
    this.url = input.url ?? `blob-${this.#number}.trn`;
    /** What the file says of itself. */
    this.info = null;
  }

  /** Requests made and bytes read so far. */
  get traffic() {
    return { requests: this.#bytes.requests, bytes: this.#bytes.bytes };
  }

  async #modelFile(sha256) {
    return this.#model === undefined ? findModel(sha256) : new Input(this.#model).bytes();
  }

  /** Asks at a place until nothing is missing. */
  async #ask(place, request, { as, signal } = {}) {
    let message = { request: { ...request, file: this.#number } };
    for (let round = 0; round < ROUNDS; round += 1) {
      if (this.#isClosed) throw new Error("the file was closed");
      if (signal?.aborted) throw aborted();
      const { kind, value } = await place.call({ ...message, as }, signal);
      if (kind === "failed") throw new Error(`${this.name}: ${value}`);
      if (kind !== "needed") return value;
      message = { request: message.request };
      if (value.parts) {
        message.parts = await this.#bytes.read(value.parts);
        message.length = this.#bytes.length;
      } else if (value.model) {
        message.model = await this.#modelFile(value.model);
      } else if (value.system) {
        const found = await definition(value.system);
        if (found) await place.call({ request: { ask: "define", epsg: value.system, definition: found } });
        else {
          this.#unknownSystem = value.system;
          message.request = { ...message.request, without_system: true };
        }
      }
    }
    throw new Error(`${this.name}: the same part of the file is asked for again and again`);
  }

  /** Opens the file at a place, once. */
  #opened(place) {
    if (!place.opened.has(this.#number)) {
      const opening = this.#ask(place, { ask: "open" });
      place.opened.set(this.#number, opening);
      opening.catch(() => place.opened.delete(this.#number));
    }
    return place.opened.get(this.#number);
  }

  async #run(place, request, options) {
    await this.#opened(place);
    return this.#ask(place, request, options);
  }

  /** The file's name. */
  get name() {
    return this.url.replace(/[?#].*$/, "").split("/").at(-1).replace(/\.trn$/, "") || "terrain";
  }

  async load() {
    this.info = await this.#opened(placeOf());
    if (this.#unknownSystem) this.info.not_on_map = `the decoder for browsers has no definition of EPSG:${this.#unknownSystem}, so it cannot place the file on a map; \`terrane serve\` may`;
    return this;
  }

  /** What is known at a longitude and a latitude: height, slope, aspect, curvatures. */
  point(longitude, latitude, options) {
    return this.#run(placeOf(), { ask: "point", longitude, latitude }, options);
  }

  /** The height in metres; `null` where there is no data. */
  async height(longitude, latitude, options) {
    return (await this.point(longitude, latitude, options)).height_m;
  }

  /** Heights at equal distances along a line of longitudes and latitudes. */
  profile(line, count = 256, options = undefined) {
    return this.#run(placeOf(), { ask: "profile", line, count }, options);
  }

  /** Heights of pixels, row by row, as a Float64Array; NaN where there is no data. */
  async window({ level = 0, column, row, width, height }, options) {
    const bytes = await this.#run(placeOf(), { ask: "window", level, column, row, width, height }, options);
    return new Float64Array(bytes.buffer);
  }

  /** A map tile: an ImageBitmap or, as `pixels`, a Uint8ClampedArray of red, green, blue and alpha. */
  async tile(z, x, y, { layer = "height", side = 256, as = typeof createImageBitmap === "function" ? "bitmap" : "pixels", signal } = {}) {
    const value = await this.#run(placeOf(x, y), { ask: "tile", layer, z, x, y, side }, { as, signal });
    return as === "pixels" ? new Uint8ClampedArray(value.buffer) : value;
  }

  /** Contour lines of a map tile as a Mapbox vector tile, `interval` metres apart or as suits the zoom. */
  contours(z, x, y, { interval, signal } = {}) {
    return this.#run(placeOf(x, y), { ask: "contours", z, x, y, interval }, { signal });
  }

  /** How a map client finds the tiles of a layer. */
  async tilejson(layer = "height") {
    const address = `terrane://${this.url}/${layer}/{z}/{x}/{y}`;
    return this.#run(placeOf(), { ask: "tilejson", layer, name: this.name, address });
  }

  /** Forgets the file. */
  close() {
    this.#isClosed = true;
    this.#bytes.close();
    terrains.delete(this.url);
    for (const place of everywhere()) {
      if (place.opened.delete(this.#number)) place.call({ request: { ask: "close", file: this.#number } }).catch(() => {});
    }
  }
}

/** Open files by their addresses, for the map protocol. */
const terrains = new Map();

/** Opens a file: an address, a File or Blob, or its bytes; in Node also a path. */
export const open = async (input, options = {}) => {
  const terrain = new Terrain(new Input(input), options);
  const opening = terrain.load();
  terrains.set(terrain.url, opening);
  try {
    return await opening;
  } catch (error) {
    terrain.close();
    throw error;
  }
};

/** The parts of an address such as `terrane://https://host/alps.trn/slope/12/2138/1447@2x`. */
export const parse = (address) => {
  const rest = address.replace(/^terrane:\/\//, "");
  const [, place, z, x, y, scale] = /^(.*?)(?:\/(\d+)\/(\d+)\/(\d+)(?:@(\d)x)?)?$/s.exec(rest);
  const [, file, layer] = /^(.*?)(?:\/([a-z]+(?:-[a-z]+)*))?$/s.exec(place);
  return { file, layer: layer ?? "height", tile: z === undefined ? null : [z, x, y].map(Number), scale: Number(scale ?? 1) };
};

const find = (file) => {
  const { url } = terrains.has(file) ? { url: file } : new Input(file);
  return terrains.get(url) ?? open(file);
};

/** For MapLibre: `maplibregl.addProtocol("terrane", protocol)`. */
export const protocol = async ({ url }, { signal } = {}) => {
  const { file, layer, tile, scale } = parse(url);
  const terrain = await find(file);
  if (!tile) return { data: await terrain.tilejson(layer) };
  if (layer === "contours") return { data: (await terrain.contours(...tile, { signal })).buffer };
  return { data: await terrain.tile(...tile, { layer, side: 256 * scale, signal }) };
};
