// Decodes and draws in a worker.

import { Decoder } from "./decoder.js";

let decoder;

/** Heights are read from colours: nothing may change them. */
const EXACT = { premultiplyAlpha: "none", colorSpaceConversion: "none" };

const answer = async ({ id, as, ...message }) => {
  const { kind, value } = (await decoder).handle(message);
  if (kind !== "bytes") return postMessage({ id, kind, value });
  if (as === "bitmap") {
    const { side } = message.request;
    const pixels = new ImageData(new Uint8ClampedArray(value.buffer), side, side);
    const bitmap = await createImageBitmap(pixels, EXACT);
    return postMessage({ id, kind, value: bitmap }, [bitmap]);
  }
  return postMessage({ id, kind, value }, [value.buffer]);
};

onmessage = ({ data }) => {
  if (data.module) decoder = Decoder.create(data.module);
  // A trap leaves the module in no state to go on: the page starts another worker.
  else answer(data).catch((error) => postMessage({ id: data.id, kind: "broken", value: String(error?.message ?? error) }));
};
