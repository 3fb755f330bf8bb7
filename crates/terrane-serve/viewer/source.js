// Where files and answers come from: a server, or files beside the page that are decoded in the browser.

import { readAddress } from "./address.js";
import { fetchJson } from "./words.js";

/** Tiles of more pixels for screens that have them. */
const scale = () => (devicePixelRatio > 1.4 ? "@2x" : "");

/** An address of this page's folder, with the braces of a template as they are. */
const here = (address) => new URL(address, document.baseURI).href.replaceAll("%7B", "{").replaceAll("%7D", "}");

/** `terrane serve`. */
class Server {
  info(name) {
    return fetchJson(`${encodeURIComponent(name)}/info`);
  }

  parts(name) {
    return fetchJson(`${encodeURIComponent(name)}/parts.json`);
  }

  point(name, [longitude, latitude], signal) {
    return fetchJson(`${name}/point/${longitude},${latitude}`, signal);
  }

  profile(name, points, count, signal) {
    const line = points.map(([longitude, latitude]) => `${longitude.toFixed(8)},${latitude.toFixed(8)}`).join(";");
    return fetchJson(`${name}/profile?line=${encodeURIComponent(line)}&points=${count}`, signal);
  }

  tiles(name, layer) {
    return here(`${name}/${layer}/{z}/{x}/{y}${scale()}.png`);
  }

  heights(name) {
    return here(`${name}/{z}/{x}/{y}.png`);
  }

  contours(name) {
    return here(`${name}/contours/{z}/{x}/{y}.mvt`);
  }
}

/** A folder that `terrane site` wrote. */
class Site {
  constructor(files, { open, protocol }) {
    this.files = files;
    this.open = open;
    this.protocol = protocol;
    this.terrains = {};
  }

  terrain(name) {
    this.terrains[name] ??= this.open(this.files[name].file);
    return this.terrains[name];
  }

  async info(name) {
    const { info } = await this.terrain(name);
    if (info.not_on_map) throw new Error(`${name}: ${info.not_on_map}`);
    return { ...info, name, original: null };
  }

  async parts(name) {
    return this.files[name].parts;
  }

  async point(name, [longitude, latitude], signal) {
    return (await this.terrain(name)).point(longitude, latitude, { signal });
  }

  async profile(name, points, count, signal) {
    return (await this.terrain(name)).profile(points, count, { signal });
  }

  tiles(name, layer) {
    return `terrane://${here(this.files[name].file)}/${layer}/{z}/{x}/{y}${scale()}`;
  }

  heights(name) {
    return `terrane://${here(this.files[name].file)}/height/{z}/{x}/{y}`;
  }

  contours(name) {
    return `terrane://${here(this.files[name].file)}/contours/{z}/{x}/{y}`;
  }
}

const find = async () => {
  const { tiles, attribution, names: all } = await fetchJson("catalog.json");
  const names = all.filter((name) => !tiles[name].is_original);
  if (!names.some((name) => tiles[name].file)) return { names, attribution, source: new Server() };
  const source = new Site(tiles, await import("./terrane/index.js"));
  // What fails here fails again where it is waited for.
  const { file } = readAddress();
  source.terrain(names.includes(file) ? file : names[0]).catch(() => {});
  return { names, attribution, source };
};

// The page loads this script before the map's library, which is large: files are found and decoders start meanwhile.
const found = find();
found.catch(() => {});

/** What this page is about: `{ names, attribution, source }`. */
export const connect = async ({ addProtocol }) => {
  const all = await found;
  if (all.source.protocol) addProtocol("terrane", all.source.protocol);
  return all;
};
