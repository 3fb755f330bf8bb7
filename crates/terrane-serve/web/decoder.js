// The WebAssembly module: one request at a time, and its answer.

const KINDS = ["failed", "value", "bytes", "needed"];

/** Heights are read from colours: nothing may change them. */
const EXACT = { premultiplyAlpha: "none", colorSpaceConversion: "none" };

/** The numbers of a request in their order, of which an interval may be none; and its texts. */
const NUMBERS = ["file", "without_system", "epsg", "z", "x", "y", "side", "interval", "longitude", "latitude", "count", "level", "column", "row", "width", "height"];
const TEXTS = ["ask", "definition", "layer", "name", "address"];

/** A request as the module reads it. */
const written = (request, encoder) => {
  const { line = [] } = request;
  const numbers = NUMBERS.map((name) => Number(request[name] ?? (name === "interval" ? NaN : 0)));
  const bytes = new Uint8Array(new Float64Array([...numbers, line.length, ...line.flat()]).buffer);
  const texts = encoder.encode(TEXTS.map((name) => request[name] ?? "").join("\0"));
  const all = new Uint8Array(bytes.length + texts.length);
  all.set(bytes);
  all.set(texts, bytes.length);
  return all;
};

/** A value that the module wrote. */
const read = (bytes, decoder) => {
  const view = new DataView(bytes.buffer, bytes.byteOffset);
  let at = 0;
  const take = (count) => (at += count) - count;
  const length = () => view.getUint32(take(4), true);
  const text = () => {
    const count = length();
    const start = take(count);
    return decoder.decode(bytes.subarray(start, start + count));
  };
  const kinds = {
    0: () => null,
    t: () => true,
    f: () => false,
    n: () => view.getFloat64(take(8), true),
    s: text,
    a: () => Array.from({ length: length() }, () => value()),
    o: () => Object.fromEntries(Array.from({ length: length() }, () => [text(), value()])),
  };
  const value = () => kinds[String.fromCharCode(bytes[take(1)])]();
  return value();
};

/** The library of map projections reads numbers by JavaScript's functions, whose names end in a hash. */
const imports = (module, text) => {
  const known = {
    parseFloat: (start, length) => parseFloat(text(start, length)),
    parseInt: (start, length, radix) => parseInt(text(start, length), radix),
  };
  const made = {};
  for (const { module: group, name } of WebAssembly.Module.imports(module)) {
    (made[group] ??= {})[name] = known[name.split("_")[3]];
  }
  return made;
};

export class Decoder {
  #exports;
  #encoder = new TextEncoder();
  #decoder = new TextDecoder();

  /** @param {WebAssembly.Module} module */
  static async create(module) {
    const made = new Decoder();
    const text = (start, length) => made.#decoder.decode(new Uint8Array(made.#exports.memory.buffer, start, length));
    made.#exports = (await WebAssembly.instantiate(module, imports(module, text))).exports;
    return made;
  }

  #fill(bytes) {
    // Asked for first: the memory may grow, and with it move.
    const start = this.#exports.buffer(bytes.length);
    new Uint8Array(this.#exports.memory.buffer, start, bytes.length).set(bytes);
  }

  #answer(kind) {
    const { memory, answer, answer_length } = this.#exports;
    const bytes = new Uint8Array(memory.buffer, answer(), answer_length());
    if (KINDS[kind] === "bytes") return { kind: "bytes", value: bytes.slice() };
    return { kind: KINDS[kind], value: KINDS[kind] === "failed" ? this.#decoder.decode(bytes) : read(bytes, this.#decoder) };
  }

  /** Gives parts of a file; `length` is that of the file, where it is known. */
  give(file, parts, length) {
    for (const { offset, bytes } of parts) {
      this.#fill(bytes);
      this.#exports.give(file, offset, length ?? NaN);
    }
  }

  /** Gives the file of a model. */
  model(bytes) {
    this.#fill(bytes);
    return this.#answer(this.#exports.model());
  }

  /** Answers a request: `{ kind, value }`. */
  ask(request) {
    this.#fill(written(request, this.#encoder));
    return this.#answer(this.#exports.ask());
  }

  /** Takes what was missing, and answers a request. */
  handle({ request, parts, length, model }) {
    if (model) {
      const loaded = this.model(model);
      if (loaded.kind === "failed") return loaded;
    }
    if (parts) this.give(request.file, parts, length);
    return this.ask(request);
  }

  /** The answer to a message, with pixels as an ImageBitmap where the page asks for one. */
  async answer({ as, ...message }) {
    const { kind, value } = this.handle(message);
    if (kind !== "bytes" || as !== "bitmap") return { kind, value };
    const { side } = message.request;
    const pixels = new ImageData(new Uint8ClampedArray(value.buffer), side, side);
    return { kind, value: await createImageBitmap(pixels, EXACT) };
  }
}
