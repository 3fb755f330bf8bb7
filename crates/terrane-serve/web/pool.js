// Workers, each with a decoder of its own; without workers, as in Node, one decoder here.

import { Decoder } from "./decoder.js";
import { compile } from "./assets.js";

/** Requests that a worker has at a time: one that it works on, and the next. */
const AT_ONCE = 2;

let module;

/** The module, fetched and compiled once for all workers. */
const compiled = () => {
  module ??= compile("terrane.wasm");
  module.catch(() => { module = undefined; });
  return module;
};

const aborted = () => new DOMException("the request was given up", "AbortError");

const startWorker = () => {
  const address = new URL("./worker.js", import.meta.url);
  if (address.origin === location.origin) return new Worker(new URL("./worker.js", import.meta.url), { type: "module" });
  // A worker's script must come from the page's own origin; what it imports need not.
  const script = new Blob([`import ${JSON.stringify(address.href)};`], { type: "text/javascript" });
  return new Worker(URL.createObjectURL(script), { type: "module" });
};

/** One decoder and those who wait for it. */
class Place {
  #waiting = [];
  #active = new Map();
  #id = 0;
  #worker;
  /** Files that are open here, and what opening them came to. */
  opened = new Map();

  async #start() {
    if (typeof Worker === "undefined") {
      const decoder = await Decoder.create(await compiled());
      return { post: ({ id, ...message }) => queueMicrotask(() => {
        try {
          this.#done({ id, ...decoder.handle(message) });
        } catch (error) {
          this.#done({ id, kind: "broken", value: error.message });
        }
      }), stop: () => {} };
    }
    const worker = startWorker();
    worker.onmessage = ({ data }) => this.#done(data);
    worker.onerror = (event) => this.#break(event.message || "its script cannot be loaded");
    // Its script is loaded while the module is compiled.
    const module = await compiled().catch((error) => {
      worker.terminate();
      throw error;
    });
    worker.postMessage({ module });
    return { post: (message) => worker.postMessage(message), stop: () => worker.terminate() };
  }

  #done({ id, kind, value }) {
    if (kind === "broken") return this.#break(value);
    const { resolve } = this.#active.get(id) ?? {};
    this.#active.delete(id);
    resolve?.({ kind, value });
    return this.#next();
  }

  /** Starts over after a fault. */
  #break(reason) {
    const failed = [...this.#active.values()];
    this.#active.clear();
    this.opened.clear();
    this.#worker?.then((worker) => worker.stop(), () => {});
    this.#worker = undefined;
    for (const { reject } of failed) reject(new Error(`the decoder stopped: ${reason}`));
    this.#next();
  }

  #next() {
    while (this.#active.size < AT_ONCE && this.#waiting.length > 0) {
      const job = this.#waiting.shift();
      if (job.signal?.aborted) {
        job.reject(aborted());
        continue;
      }
      const id = (this.#id += 1);
      this.#active.set(id, job);
      this.#worker ??= this.#start();
      this.#worker.then((worker) => worker.post({ id, ...job.message }), (error) => this.#break(error.message));
    }
  }

  /** Sends a message; what it says that is missing comes back as it is. */
  call(message, signal) {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ message, signal, resolve, reject });
      this.#next();
    });
  }
}

const cores = globalThis.navigator?.hardwareConcurrency ?? 4;
/** A core is left to the page, which draws meanwhile. */
const count = typeof Worker === "undefined" ? 1 : Math.min(4, Math.max(1, cores - 1));
const places = Array.from({ length: count }, () => new Place());

/** The decoder for a tile: neighbours share what they decode, and so a worker. */
export const placeOf = (x = 0, y = 0) => places[((x >> 1) + 3 * (y >> 1)) % places.length];

export const everywhere = () => places;
export { aborted };
