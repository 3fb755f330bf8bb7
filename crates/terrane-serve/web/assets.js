// What lies beside this script: the module, models and definitions of coordinate systems.

/** Bytes of a file of this package. */
export const asset = async (name) => {
  const address = new URL(`./${name}`, import.meta.url);
  if (address.protocol === "file:") {
    const { readFile } = await import("node:fs/promises");
    return new Uint8Array(await readFile(address));
  }
  const answer = await fetch(address);
  if (!answer.ok) throw new Error(`${address} cannot be read: the server answers ${answer.status}`);
  return new Uint8Array(await answer.arrayBuffer());
};

/** The module, fetched and compiled. */
export const compile = async (name) => {
  const address = new URL(`./${name}`, import.meta.url);
  if (address.protocol !== "file:" && WebAssembly.compileStreaming) {
    // Compiled while it is read; a host that names another type for it, or refuses, is asked again below.
    const found = await WebAssembly.compileStreaming(fetch(address)).catch(() => null);
    if (found) return found;
  }
  return WebAssembly.compile(await asset(name));
};

let systems;

/** The definition of a coordinate system as PROJ writes it; `undefined` where nobody knows it. */
export const definition = async (epsg) => {
  systems ??= asset("systems.txt").then((bytes) => new TextDecoder().decode(bytes));
  systems.catch(() => { systems = undefined; });
  const found = new RegExp(`^${epsg} (.*)$`, "m").exec(await systems);
  return found?.[1];
};

const models = new Map();

/** The file of the model that has a hash. */
export const model = (sha256) => {
  if (!models.has(sha256)) {
    const found = asset(`models/${sha256}.packed`).catch((error) => {
      models.delete(sha256);
      throw new Error(`the file needs the model ${sha256}, and this package has none of this hash: give it as \`model\``, { cause: error });
    });
    models.set(sha256, found);
  }
  return models.get(sha256);
};
