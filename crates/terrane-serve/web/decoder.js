// The WebAssembly module: one request at a time, as JSON, and its answer.

const KINDS = ["failed", "text", "bytes", "needed"];

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
    const text = this.#decoder.decode(bytes);
    return { kind: KINDS[kind], value: KINDS[kind] === "failed" ? text : JSON.parse(text) };
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
    this.#fill(this.#encoder.encode(JSON.stringify(request)));
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
}
