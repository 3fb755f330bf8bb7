// Decodes and draws in a worker.

import { Decoder } from "./decoder.js";

let decoder;

const answer = async ({ id, ...message }) => {
  const { kind, value } = await (await decoder).answer(message);
  postMessage({ id, kind, value }, kind === "bytes" ? [value.buffer ?? value] : []);
};

onmessage = ({ data }) => {
  // A trap leaves the module in no state to go on: the page starts another worker.
  const broken = (error) => postMessage({ id: data.id, kind: "broken", value: String(error?.message ?? error) });
  if (data.module) {
    decoder = Decoder.create(data.module);
    decoder.then(() => postMessage({ kind: "ready" }), broken);
  } else answer(data).catch(broken);
};
