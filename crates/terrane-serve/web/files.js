// The files of the decoder as they lie beside this script: the module, models, definitions of coordinate systems, the worker's script.
// The npm package has a script of the same name and calls, with the files inside.

/** A file by its name. */
export const file = async (name) => {
  const address = new URL(`./${name}`, import.meta.url);
  const answer = await fetch(address);
  if (!answer.ok) throw new Error(`${address} cannot be read: the server answers ${answer.status}`);
  return answer;
};

/** A worker with a decoder. */
export const startWorker = async () => new Worker(new URL("./worker.js", import.meta.url), { type: "module" });
