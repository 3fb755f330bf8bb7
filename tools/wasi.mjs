// Runs a WebAssembly program with Node's WASI: `node tools/wasi.mjs PROGRAM.wasm ARGUMENT…`; it sees the folder it is called in.
import { readFile } from "node:fs/promises";
import { WASI } from "node:wasi";

const wasi = new WASI({ version: "preview1", args: process.argv.slice(2), env: {}, preopens: { ".": "." } });
const module = await WebAssembly.compile(await readFile(process.argv[2]));
process.exit(wasi.start(await WebAssembly.instantiate(module, wasi.getImportObject())));
