// Parts of a file, by range requests or from a Blob: merged where they lie together, asked for once, and kept for a while.

/** The first read, which opens most files. */
const FIRST = 16384;
/** Parts that are nearer than this are read as one. */
const NEAR = 8192;
/** Bytes that are kept. */
const KEPT = 32 << 20;
/** Milliseconds in which those who ask are waited for, so that their parts are read together. */
const PATIENCE = 2;

export class Bytes {
  #input;
  #chunks = [];
  #queue = [];
  #stop = new AbortController();
  #tag;
  /** The file's length, once it is known. */
  length;
  /** Requests made, and bytes read. */
  requests = 0;
  bytes = 0;

  /** @param {string | Promise<Blob>} input an address or the file itself */
  constructor(input) {
    this.#input = input;
  }

  /** Parts, each `[offset, length]`, in their order. */
  read(parts) {
    return new Promise((resolve, reject) => {
      if (this.#queue.length === 0) setTimeout(() => this.#flush(), PATIENCE);
      this.#queue.push({ parts, resolve, reject });
    });
  }

  close() {
    this.#stop.abort();
    this.#chunks = [];
  }

  /** Chunks that have something of a part, in their order. */
  #chunksOf([offset, length]) {
    return this.#chunks.filter((chunk) => chunk.offset < offset + length && offset < chunk.end).sort((a, b) => a.offset - b.offset);
  }

  /** What of a part is in no chunk, as starts and ends. */
  #missing([offset, length]) {
    const found = [];
    const end = offset + (offset === 0 ? Math.max(length, FIRST) : length);
    let at = offset;
    for (const chunk of this.#chunksOf([offset, end - offset])) {
      if (chunk.offset > at) found.push([at, chunk.offset]);
      at = Math.max(at, chunk.end);
    }
    if (at < Math.min(end, this.length ?? end)) found.push([at, end]);
    return found;
  }

  #flush() {
    const asked = this.#queue.splice(0);
    const missing = asked.flatMap(({ parts }) => parts).flatMap((part) => this.#missing(part)).sort(([a], [b]) => a - b);
    const runs = [];
    for (const [start, end] of missing) {
      const last = runs.at(-1);
      if (last && start <= last[1] + NEAR) last[1] = Math.max(last[1], end);
      else runs.push([start, end]);
    }
    for (const [start, end] of runs) this.#fetch(start, end);
    for (const { parts, resolve, reject } of asked) {
      Promise.all(parts.map((part) => this.#part(part))).then(resolve, reject);
    }
  }

  #fetch(offset, end) {
    const chunk = { offset, end };
    chunk.bytes = this.#range(offset, end).then((bytes) => {
      chunk.size = bytes.length;
      this.#tidy();
      return bytes;
    });
    chunk.bytes.catch(() => { this.#chunks = this.#chunks.filter((other) => other !== chunk); });
    this.#chunks.push(chunk);
  }

  async #part(part) {
    const [offset, length] = part;
    const chunks = this.#chunksOf(part);
    // Those used last are kept longest.
    this.#chunks = [...this.#chunks.filter((chunk) => !chunks.includes(chunk)), ...chunks];
    const bytes = new Uint8Array(length);
    let filled = 0;
    for (const chunk of chunks) {
      const read = await chunk.bytes;
      const from = Math.max(offset, chunk.offset);
      const piece = read.subarray(from - chunk.offset, offset + length - chunk.offset);
      bytes.set(piece, from - offset);
      filled = Math.max(filled, from - offset + piece.length);
    }
    // Less where the file ends.
    return { offset, bytes: bytes.subarray(0, filled) };
  }

  #tidy() {
    let kept = 0;
    this.#chunks = this.#chunks.toReversed().filter((chunk) => (kept += chunk.size ?? 0) <= KEPT).toReversed();
  }

  async #range(offset, end) {
    this.requests += 1;
    const bytes = typeof this.#input === "string" ? await this.#answer(offset, end) : await this.#slice(offset, end);
    this.bytes += bytes.length;
    return bytes;
  }

  async #slice(offset, end) {
    const blob = await this.#input;
    this.length = blob.size;
    try {
      return new Uint8Array(await blob.slice(offset, end).arrayBuffer());
    } catch (error) {
      throw new Error(`the file can no longer be read; if it changed, open it again (${error.message})`, { cause: error });
    }
  }

  async #answer(offset, end) {
    const address = this.#input;
    const fail = (reason) => { throw new Error(`${shown(address)} cannot be read: ${reason}`); };
    let answer;
    try {
      answer = await fetch(address, { headers: { Range: `bytes=${offset}-${end - 1}` }, signal: this.#stop.signal });
    } catch (error) {
      if (error.name === "AbortError") throw error;
      return fail(`${error.message}; is the server there${globalThis.document ? ", and does it let this page read the file (CORS)" : ""}?`);
    }
    if (answer.status !== 206) {
      answer.body?.cancel().catch(() => {});
      if (answer.status === 200) return fail("the server ignores range requests; put the file on one that answers them");
      return fail(`the server answers ${answer.status}`);
    }
    const tag = answer.headers.get("etag") ?? answer.headers.get("last-modified");
    if (tag && this.#tag && tag !== this.#tag) return fail("it changed while it was read; open it again");
    this.#tag ??= tag;
    // A server of another origin may not let the page see this.
    const length = /\/(\d+)$/.exec(answer.headers.get("content-range") ?? "")?.[1];
    if (length) this.length = Number(length);
    return new Uint8Array(await answer.arrayBuffer());
  }
}

/** An address without what may be secret. */
const shown = (address) => address.replace(/\?.*$/, "").replace(/\/\/[^/@]*@/, "//");
