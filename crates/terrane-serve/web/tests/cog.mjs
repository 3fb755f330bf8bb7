// What the usual client reads of a COG for a picture of all of it: `node crates/terrane-serve/web/tests/cog.mjs FILE.tif… --size N`, with the npm
// package `geotiff` where Node finds it. Prints requests and bytes.

import { openSync, readSync, statSync } from "node:fs";
import { createServer } from "node:http";

const words = process.argv.slice(2);
const at = words.indexOf("--size");
const size = at < 0 ? 1024 : Number(words.splice(at, 2)[1]);
const { fromUrl } = await import(process.env.GEOTIFF ?? "geotiff").catch(() => {
  console.log("skipped: the npm package geotiff is not installed");
  process.exit(0);
});

for (const name of words) {
  const file = openSync(name);
  const { size: length } = statSync(name);
  const read = [];
  const host = createServer((request, response) => {
    const [, from, to] = /bytes=(\d+)-(\d+)/.exec(request.headers.range);
    const end = Math.min(Number(to), length - 1);
    const bytes = Buffer.alloc(end - Number(from) + 1);
    readSync(file, bytes, 0, bytes.length, Number(from));
    read.push(bytes.length);
    response.writeHead(206, { "content-range": `bytes ${from}-${end}/${length}`, "content-length": bytes.length }).end(bytes);
  }).listen(0);
  const started = performance.now();
  const tiff = await fromUrl(`http://127.0.0.1:${host.address().port}/${name}`);
  // The coarsest picture that still has as many pixels as the screen.
  const count = await tiff.getImageCount();
  let image = await tiff.getImage(0);
  for (let index = 1; index < count; index += 1) {
    const next = await tiff.getImage(index);
    if (Math.max(next.getWidth(), next.getHeight()) >= size && next.getWidth() < image.getWidth()) image = next;
  }
  await image.readRasters();
  const took = performance.now() - started;
  console.log(JSON.stringify({ name, level: `${image.getWidth()}x${image.getHeight()}`, requests: read.length, bytes: read.reduce((a, b) => a + b, 0), ms: Math.round(took) }));
  host.close();
  host.closeAllConnections();
}
