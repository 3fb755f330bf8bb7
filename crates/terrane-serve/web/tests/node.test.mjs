// The package in Node: heights of golden files, tiles and points as the server gives them, and what it says when something
// is wrong. `just test-web` runs it: PACKAGE is the assembled package, TERRANE the program.

import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, openAsBlob, readFileSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath, pathToFileURL } from "node:url";
import { inflateSync } from "node:zlib";

const project = fileURLToPath(new URL("../../../..", import.meta.url));
const { open, parse } = await import(pathToFileURL(join(process.env.PACKAGE, "index.js")));
const terrane = process.env.TERRANE;
const folder = mkdtempSync(join(tmpdir(), "terrane-web-"));
const run = (...words) => execFileSync(terrane, [...words, "--progress", "none"], { cwd: folder, encoding: "utf8" });
let server, address;

before(async () => {
  run("generate", "dem.tif", "--size", "900x700", "--seed", "4", "--pixel-size", "2");
  for (const profile of ["fast", "standard"]) run("encode", "dem.tif", `${profile}.trn`, "--max-error", "0.1", "--profile", profile);
  server = spawn(terrane, ["serve", "--port", "0", "--json", "fast.trn", "standard.trn"], { cwd: folder });
  const [line] = await once(server.stdout, "data");
  ({ address } = JSON.parse(line));
});

after(() => {
  server.kill();
  rmSync(folder, { recursive: true });
});

/** The pixels of a PNG of bytes without interlacing: grey or colours, with alpha or without. */
const pixels = (png) => {
  let at = 8;
  let width = 0;
  let channels = 4;
  const data = [];
  while (at < png.length) {
    const length = png.readUInt32BE(at);
    const kind = png.toString("latin1", at + 4, at + 8);
    if (kind === "IHDR") {
      width = png.readUInt32BE(at + 8);
      channels = { 0: 1, 2: 3, 4: 2, 6: 4 }[png[at + 17]];
    }
    if (kind === "IDAT") data.push(png.subarray(at + 8, at + 8 + length));
    at += length + 12;
  }
  const rows = inflateSync(Buffer.concat(data));
  const stride = width * channels;
  const out = new Uint8ClampedArray((rows.length / (stride + 1)) * stride);
  const paeth = (a, b, c) => {
    const [x, y, z] = [Math.abs(b - c), Math.abs(a - c), Math.abs(a + b - 2 * c)];
    return x <= y && x <= z ? a : y <= z ? b : c;
  };
  for (let row = 0; row * stride < out.length; row += 1) {
    const filter = rows[row * (stride + 1)];
    for (let column = 0; column < stride; column += 1) {
      const here = row * stride + column;
      const a = column < channels ? 0 : out[here - channels];
      const b = row === 0 ? 0 : out[here - stride];
      const c = column < channels || row === 0 ? 0 : out[here - stride - channels];
      out[here] = (rows[row * (stride + 1) + 1 + column] + [0, a, b, (a + b) >> 1, paeth(a, b, c)][filter]) & 255;
    }
  }
  // Where red, green, blue and alpha are; -1 is no alpha.
  const places = { 1: [0, 0, 0, -1], 2: [0, 0, 0, 1], 3: [0, 1, 2, -1], 4: [0, 1, 2, 3] }[channels];
  return Uint8ClampedArray.from({ length: (out.length / channels) * 4 }, (_, index) => {
    const place = places[index % 4];
    return place < 0 ? 255 : out[(index >> 2) * channels + place];
  });
};

const tilesOf = ({ bounds: [west, south, east, north] }, z) => {
  const column = (longitude) => Math.floor(((longitude + 180) / 360) * 2 ** z);
  const row = (latitude) => Math.floor((0.5 - Math.asinh(Math.tan((latitude * Math.PI) / 180)) / (2 * Math.PI)) * 2 ** z);
  return [[column((west + east) / 2), row((south + north) / 2)], [column(west), row(north)]];
};

test("golden files decode to their heights, in every bit", async () => {
  const model = readFileSync(join(project, "conformance/context.safetensors"));
  let count = 0;
  for (const name of readdirSync(join(project, "conformance"))) {
    const place = join(project, "conformance", name);
    if (!statSync(place).isDirectory() || name.startsWith("tokens")) continue;
    const expected = readFileSync(join(place, "heights.f64"));
    const terrain = await open(await openAsBlob(join(place, "input.trn")), { model });
    const { width, height } = terrain.info;
    const heights = await terrain.window({ column: 0, row: 0, width, height });
    const wanted = new Float64Array(expected.buffer.slice(expected.byteOffset, expected.byteOffset + expected.length));
    assert.equal(heights.length, wanted.length, name);
    // NaN is NaN, whichever it is.
    assert.ok(heights.every((value, index) => Object.is(value, wanted[index])), name);
    terrain.close();
    count += 1;
  }
  assert.ok(count > 10, `${count} golden files`);
});

test("packed models are those of their hashes", async () => {
  const { Decoder } = await import(pathToFileURL(join(process.env.PACKAGE, "decoder.js")));
  const { file } = await import(pathToFileURL(join(process.env.PACKAGE, "files.js")));
  const { files } = await import(pathToFileURL(join(process.env.PACKAGE, "files", "index.js")));
  const bytes = async (name) => new Uint8Array(await (await file(name)).arrayBuffer());
  // What the repository holds is what the package holds.
  assert.deepEqual(Buffer.from(await bytes("terrane.wasm")), readFileSync(join(project, "crates/terrane-serve/web/terrane.wasm")));
  const decoder = await Decoder.create(await WebAssembly.compile(await bytes("terrane.wasm")));
  const names = Object.keys(files).filter((name) => name.startsWith("models/"));
  assert.equal(names.length, 3);
  for (const name of names) {
    const packed = await bytes(name);
    assert.deepEqual(decoder.model(packed), { kind: "value", value: { sha256: name.match(/[0-9a-f]{64}/)[0] } });
    assert.equal(decoder.model(packed.subarray(0, packed.length / 2)).kind, "failed");
  }
});

test("a file of tokens is refused with a sentence", async () => {
  const file = await openAsBlob(join(project, "conformance/tokens-int8/input.trn"));
  await assert.rejects(open(file), /holds tokens/);
});

for (const profile of ["fast", "standard"]) {
  test(`tiles of ${profile} are the server's`, async () => {
    const terrain = await open(await openAsBlob(join(folder, `${profile}.trn`)));
    const info = await (await fetch(`${address}/${profile}/info`)).json();
    for (const key of ["minzoom", "maxzoom", "lowest_m", "crs", "bytes"]) assert.deepEqual(terrain.info[key], info[key], key);
    // Machines round sines differently in the last place.
    for (const side of [0, 1, 2, 3]) assert.ok(Math.abs(terrain.info.bounds[side] - info.bounds[side]) < 1e-12);
    assert.deepEqual(terrain.info.layers.map(({ name, unit }) => [name, unit]), info.layers.map(({ name, unit }) => [name, unit]));
    const level = info.layers.find(({ name }) => name === "slope").legend.stops[0][1].match(/[0-9a-f]{2}/g).map((text) => parseInt(text, 16));
    let [count, differing] = [0, 0];
    for (const { name: layer } of info.layers) {
      for (const z of [info.minzoom, info.minzoom + 2, info.maxzoom]) {
        for (const [x, y] of tilesOf(info, z)) {
          const png = Buffer.from(await (await fetch(`${address}/${profile}/${layer}/${z}/${x}/${y}.png`)).arrayBuffer());
          const ours = await terrain.tile(z, x, y, { layer, as: "pixels" });
          const theirs = pixels(png);
          assert.equal(ours.length, theirs.length);
          // On level water an aspect is one of the last places of numbers, which machines round differently.
          const slopes = layer === "aspect" ? await terrain.tile(z, x, y, { layer: "slope", as: "pixels" }) : null;
          const isLevel = (index) => slopes?.subarray(index & ~3, (index & ~3) + 3).every((value, channel) => value === level[channel]);
          const off = ours.map((value, index) => (isLevel(index) ? 0 : Math.abs(value - theirs[index])));
          // Colours come from angles too: one step at a pixel here and there.
          const allowed = layer === "height" ? 0 : 1;
          assert.ok(off.every((value) => value <= allowed), `${layer} ${z}/${x}/${y}`);
          differing += off.filter((value) => value > 0).length;
          count += 1;
        }
      }
    }
    assert.equal(count, 8 * 3 * 2);
    assert.ok(differing <= 20, `${differing} bytes of 12.6 million differ`);
    console.log(`${profile}: ${differing} bytes of ${count * 262144} differ`);
    const theirs = await (await fetch(`${address}/${profile}`)).json();
    const tilejson = await terrain.tilejson();
    for (const key of ["tilejson", "minzoom", "maxzoom", "tileSize", "encoding", "nodata_height_m", "unit"]) assert.deepEqual(tilejson[key], theirs[key], key);
    assert.match(tilejson.tiles[0], /^terrane:.*\/height\/\{z\}\/\{x\}\/\{y\}$/);
    terrain.close();
  });
}

test("points, profiles and contours are those of the program", async () => {
  const terrain = await open(await openAsBlob(join(folder, "fast.trn")));
  const [west, south, east, north] = terrain.info.bounds;
  for (const part of [0.2, 0.41, 0.63]) {
    const place = [west + (east - west) * part, south + (north - south) * (0.9 - part)];
    const [query] = JSON.parse(run("query", "fast.trn", "--at", place.join(","), "--crs", "EPSG:4326", "--json"));
    const point = await terrain.point(...place);
    assert.ok(Math.abs(point.height_m - query.height_m) < 1e-9, `${point.height_m} ${query.height_m}`);
    assert.ok(Math.abs(point.slope_deg - query.slope_deg) < 1e-9);
    assert.equal(await terrain.height(...place), point.height_m);
  }
  assert.equal(await terrain.height(west - 1, south), null);
  const line = [[west, south], [(west + east) / 2, north], [east, south]];
  const profile = await terrain.profile(line, 300);
  const text = line.map((corner) => corner.join(",")).join(";");
  const { name, ...theirs } = await (await fetch(`${address}/fast/profile?line=${text}&points=300`)).json();
  assert.equal(profile.points.length, 300);
  assert.ok(Math.abs(profile.length_m - theirs.length_m) < 1e-6 && Math.abs(profile.ascent_m - theirs.ascent_m) < 1e-6);
  const z = terrain.info.minzoom + 2;
  const [[x, y]] = tilesOf(terrain.info, z);
  assert.ok((await terrain.contours(z, x, y)).length > 100);
  assert.ok((await terrain.contours(z, x, y, { interval: 1 })).length > (await terrain.contours(z, x, y, { interval: 50 })).length);
  terrain.close();
  await assert.rejects(terrain.height(west, south), /closed/);
});

test("a file is read by few ranges, merged and kept", async () => {
  const bytes = readFileSync(join(folder, "fast.trn"));
  const asked = [];
  const host = createServer((request, response) => {
    const [, from, to] = /bytes=(\d+)-(\d+)/.exec(request.headers.range ?? "") ?? [];
    const isWhole = from === undefined || request.url.startsWith("/whole");
    asked.push(request.headers.range);
    if (request.url.startsWith("/none")) return response.writeHead(404).end();
    if (isWhole) return response.writeHead(200).end(bytes);
    const end = Math.min(Number(to), bytes.length - 1);
    const head = request.url.startsWith("/hidden") ? {} : { "content-range": `bytes ${from}-${end}/${bytes.length}` };
    return response.writeHead(206, head).end(bytes.subarray(Number(from), end + 1));
  }).listen(0);
  const base = `http://127.0.0.1:${host.address().port}`;
  try {
    // Also where the length is hidden from the page.
    for (const place of ["dem.trn", "hidden/dem.trn"]) {
      asked.length = 0;
      const terrain = await open(`${base}/${place}`);
      assert.equal(asked[0], "bytes=0-16383");
      const { bounds: [west, south, east, north] } = terrain.info;
      const middle = [west + 0.37 * (east - west), south + 0.41 * (north - south)];
      await terrain.height(...middle);
      const opened = asked.length;
      // The head, a page, the coarsest level; then the records of the point and of those around it.
      assert.ok(opened <= 5, asked.join(" "));
      await terrain.height(...middle);
      assert.equal(asked.length, opened);
      assert.equal(terrain.traffic.requests, opened);
      const ranges = asked.map((range) => range.match(/\d+/g).map(Number));
      assert.ok(ranges.every(([from], index) => index === 0 || ranges.slice(0, index).every(([a, b]) => from < a || from > b)), "bytes are read twice");
      terrain.close();
    }
    await assert.rejects(open(`${base}/whole/dem.trn`), /ignores range requests/);
    await assert.rejects(open(`${base}/none/dem.trn`), /answers 404/);
    const controller = new AbortController();
    const terrain = await open(`${base}/dem.trn`);
    controller.abort();
    await assert.rejects(terrain.tile(3, 4, 2, { signal: controller.signal }), { name: "AbortError" });
  } finally {
    host.close();
    host.closeAllConnections();
  }
});

test("damaged files are errors, and the decoder goes on", async () => {
  const bytes = readFileSync(join(folder, "fast.trn"));
  for (const [from, count] of [[0, 0], [0, 100], [0, 20000]]) await assert.rejects(open(new Blob([bytes.subarray(from, count)])));
  await assert.rejects(open(new Blob([Buffer.alloc(40000, 7)])), /not a terrane file/);
  const broken = Buffer.from(bytes);
  for (let at = 600; at < broken.length; at += 97) broken[at] ^= 255;
  await assert.rejects(open(new Blob([broken])).then((terrain) => terrain.window({ column: 0, row: 0, width: terrain.info.width, height: terrain.info.height })));
  const whole = await open(new Blob([bytes]));
  assert.equal(whole.info.width, 900);
  await assert.rejects(whole.window({ column: 0, row: 0, width: 1e6, height: 1e6 }), /inside the raster/);
  await assert.rejects(whole.tile(2, 9, 9, { as: "pixels" }), /there is no tile/);
  whole.close();
});

test("a system without a definition is named, and pixels are read all the same", async () => {
  // The key of the projected system in the raster, from WGS 84 / UTM zone 32N to a code that nothing has.
  const raster = readFileSync(join(folder, "dem.tif"));
  const key = Buffer.from(Uint16Array.of(3072, 0, 1, 32632).buffer);
  const at = raster.indexOf(key);
  assert.ok(at > 0 && raster.indexOf(key, at + 1) < 0);
  raster.writeUInt16LE(29999, at + 6);
  writeFileSync(join(folder, "elsewhere.tif"), raster);
  run("encode", "elsewhere.tif", "elsewhere.trn", "--max-error", "0.1", "--profile", "fast");
  const terrain = await open(join(folder, "elsewhere.trn"));
  assert.match(terrain.info.not_on_map, /has no definition of EPSG:29999/);
  const heights = await terrain.window({ column: 0, row: 0, width: 9, height: 9 });
  assert.equal(heights.length, 81);
  terrain.close();
});

test("paths, addresses of files and bytes", async () => {
  const path = join(folder, "fast.trn");
  for (const input of [path, pathToFileURL(path), pathToFileURL(path).href, readFileSync(path), new Uint8Array(readFileSync(path)).buffer]) {
    const terrain = await open(input);
    assert.equal(terrain.info.width, 900);
    // Of a file on the disk only parts are read.
    if (!ArrayBuffer.isView(input) && !(input instanceof ArrayBuffer)) assert.equal(terrain.url, pathToFileURL(path).href);
    assert.ok(terrain.traffic.bytes < statSync(path).size);
    terrain.close();
  }
  await assert.rejects(open("no/such.trn"), (error) => /^Error: no\/such\.trn cannot be read: ENOENT/.test(String(error)) && !/CORS/.test(error.message));
  await assert.rejects(open("file:///no/such.trn"), /such\.trn cannot be read/);
  await assert.rejects(open(folder), /cannot be read/);
});

test("addresses of the protocol", () => {
  const file = "https://host/a.b/alps.trn";
  assert.deepEqual(parse(`terrane://${file}`), { file, layer: "height", tile: null, scale: 1 });
  assert.deepEqual(parse(`terrane://${file}/plan-curvature`), { file, layer: "plan-curvature", tile: null, scale: 1 });
  assert.deepEqual(parse(`terrane://${file}/slope/12/3/4@2x`), { file, layer: "slope", tile: [12, 3, 4], scale: 2 });
  assert.deepEqual(parse(`terrane://${file}?key=a/b/height/1/0/1`), { file: `${file}?key=a/b`, layer: "height", tile: [1, 0, 1], scale: 1 });
});
