// Workers, each with a decoder of its own; where there are none, as in Node, one decoder here.

import { Decoder } from "./decoder.js";
import { compile } from "./assets.js";
import { startWorker } from "./files.js";

/** Requests that a worker has at a time: one that it works on, and the next. */
const AT_ONCE = 2;

let module;

/** The module, fetched and compiled once for all workers. */
const compiled = () => {
  module ??= compile();
  module.catch(() => { module = undefined; });
  return module;
};

const aborted = () => new DOMException("the request was given up", "AbortError");

let hasWorkers = typeof Worker !== "undefined";

/** A worker that has said that it is ready; `done` is told every answer, `fail` why it stopped. */
const workerReady = async (compiling, done, fail) => {
  // Its script is loaded while the module is compiled.
  const worker = await startWorker();
  const ready = new Promise((resolve, reject) => {
    worker.onerror = (event) => reject(new Error(event.message || "its script cannot be loaded"));
    worker.onmessage = ({ data }) => (data.kind === "ready" ? resolve() : reject(new Error(data.value)));
  });
  ready.catch(() => worker.terminate());
  const module = await compiling.catch((error) => {
    worker.terminate();
    throw error;
  });
  worker.postMessage({ module });
  await ready;
  worker.onmessage = ({ data }) => done(data);
  worker.onerror = (event) => fail(event.message || "its script failed");
  return { post: (message) => worker.postMessage(message), stop: () => worker.terminate() };
};

/** A decoder in this thread. */
const decoderHere = async (compiling, done) => {
  const decoder = await Decoder.create(await compiling);
  const answer = ({ id, ...message }) => decoder.answer(message)
    .then((answered) => done({ id, ...answered }), (error) => done({ id, kind: "broken", value: error.message }));
  return { post: answer, stop: () => {} };
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
    const compiling = compiled();
    const done = (answer) => this.#done(answer);
    if (hasWorkers) {
      try {
        return await workerReady(compiling, done, (reason) => this.#break(reason));
      } catch (error) {
        // Where the module is missing, workers are not to blame.
        await compiling;
        if (hasWorkers) console.warn(`terrane: no worker can be started (${error.message}): the page decodes by itself and may stutter; its Content-Security-Policy must allow \`worker-src blob:\``);
        hasWorkers = false;
      }
    }
    return decoderHere(compiling, done);
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
const count = !hasWorkers ? 1 : Math.min(4, Math.max(1, cores - 1));
const places = Array.from({ length: count }, () => new Place());

/** The decoder for a tile: neighbours share what they decode, and so a worker. */
export const placeOf = (x = 0, y = 0) => places[hasWorkers ? ((x >> 1) + 3 * (y >> 1)) % places.length : 0];

export const everywhere = () => places;
export { aborted };
