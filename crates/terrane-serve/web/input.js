// What a file is read from: an address, a Blob, bytes or, in Node, a path.

/** Node's own modules, without an `import` that a bundler for browsers would stumble over; none in a page. */
const node = (name) => (globalThis.document ? undefined : globalThis.process?.getBuiltinModule?.(name));

/** `https:`, `file:`; no drive of Windows, which has one letter. */
const SCHEME = /^[a-z][a-z\d+.-]+:/i;

const isBytes = (input) => input instanceof ArrayBuffer || ArrayBuffer.isView(input);

export class Input {
  /** Where it has one: what it is read from by `fetch`. */
  address;
  /** Else the promise of the file itself. */
  blob;
  /** What it is known by, where it has a name. */
  url;

  /** @param {string | URL | Blob | ArrayBuffer | ArrayBufferView} input */
  constructor(input) {
    if (input instanceof Blob) this.blob = Promise.resolve(input);
    else if (isBytes(input)) this.blob = Promise.resolve(new Blob([input]));
    else this.#locate(String(input));
  }

  #locate(text) {
    const { fileURLToPath, pathToFileURL } = node("node:url") ?? {};
    if (pathToFileURL && (!SCHEME.test(text) || /^file:/i.test(text))) {
      const path = SCHEME.test(text) ? fileURLToPath(text) : text;
      this.url = pathToFileURL(path).href;
      this.blob = onDisk(path);
      this.blob.catch(() => {});
    } else {
      this.url = globalThis.document ? new URL(text, document.baseURI).href : text;
      this.address = this.url;
    }
  }

  /** All of it. */
  async bytes() {
    if (this.blob) return new Uint8Array(await (await this.blob).arrayBuffer());
    const answer = await fetch(this.address);
    if (!answer.ok) throw new Error(`${this.address} cannot be read: the server answers ${answer.status}`);
    return new Uint8Array(await answer.arrayBuffer());
  }
}

const onDisk = async (path) => {
  const { openAsBlob, promises } = node("node:fs");
  try {
    // Says what is wrong by its name, where `openAsBlob` does not.
    await promises.access(path, promises.constants.R_OK);
    if (!(await promises.stat(path)).isFile()) throw new Error("it is no file");
    return await openAsBlob(path);
  } catch (error) {
    throw new Error(`${path} cannot be read: ${error.message}`, { cause: error });
  }
};
