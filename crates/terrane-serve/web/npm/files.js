// The package's files, each compressed inside a script of its own: bundlers, development servers, pages and Node all read scripts,
// while each has another way, or none, to carry files of other kinds along.

import { files } from "./files/index.js";

const decoded = (text) => {
  const letters = atob(text);
  const bytes = new Uint8Array(letters.length);
  for (let at = 0; at < bytes.length; at += 1) bytes[at] = letters.charCodeAt(at);
  return bytes;
};

/** A file by its name. */
export const file = async (name) => {
  if (!Object.hasOwn(files, name)) throw new Error(`the package holds no ${name}`);
  const { default: text } = await files[name]();
  const stream = new Blob([decoded(text)]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream, { headers: { "content-type": name.endsWith(".wasm") ? "application/wasm" : "application/octet-stream" } });
};

/** A worker with a decoder. Its script is the page's own, so that the page may have this package from elsewhere. */
export const startWorker = async () => {
  const script = await (await file("worker.js")).text();
  const address = URL.createObjectURL(new Blob([script], { type: "text/javascript" }));
  return new Worker(address);
};
