// What the decoder needs beside itself: the module, models and definitions of coordinate systems.

import { file } from "./files.js";

const bytes = async (name) => new Uint8Array(await (await file(name)).arrayBuffer());

/** The module, compiled. */
export const compile = async () => {
  if (WebAssembly.compileStreaming) {
    // Compiled while it is read; a host that names another type for it, or refuses, is asked again below.
    const found = await WebAssembly.compileStreaming(file("terrane.wasm")).catch(() => null);
    if (found) return found;
  }
  return WebAssembly.compile(await bytes("terrane.wasm"));
};

let systems;

/** The definition of a coordinate system as PROJ writes it; `undefined` where it is not among them. */
export const definition = async (epsg) => {
  systems ??= bytes("systems.txt").then((found) => new TextDecoder().decode(found));
  systems.catch(() => { systems = undefined; });
  const found = new RegExp(`^${epsg} (.*)$`, "m").exec(await systems);
  return found?.[1];
};

const models = new Map();

/** The file of the model that has a hash. */
export const model = (sha256) => {
  if (!models.has(sha256)) {
    const found = bytes(`models/${sha256}.packed`).catch((error) => {
      models.delete(sha256);
      throw new Error(`the file needs the model ${sha256}, and this package has none of this hash: give it as \`model\``, { cause: error });
    });
    models.set(sha256, found);
  }
  return models.get(sha256);
};
