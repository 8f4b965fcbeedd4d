// Runs jobgen in Python, beside the page: {form} is answered by the script, {form, key} by the lines of an option.
import { loadPyodide } from "./pyodide.mjs";

const FOLDER = "/jobgen";
const ENV = { HOME: "/home/pyodide", XDG_CONFIG_HOME: `${FOLDER}/config` };
const BUILD = location.search;
const CACHE = `jobgen ${location.pathname}`;
const KEPT = `memory${BUILD}`;
const FIRST = `import sys
sys.path.insert(0, "${FOLDER}")
sys.dont_write_bytecode = True
from jobgen.commands.web.answer import answer
answer('{"scheduler": "slurm"}')`;

// Pyodide waits for ever for a pyodide.asm.wasm that is not sent, ends early or has another type.
const unusable = new Promise((_, reject) => {
  const instantiate = WebAssembly.instantiateStreaming;
  WebAssembly.instantiateStreaming = (answer, imports) => {
    const made = read("pyodide.asm.wasm", answer, (response) => instantiate(response, imports));
    made.catch(reject);
    return made;
  };
});
const ready = start().catch((error) => {
  throw new Error(`Python cannot be loaded: ${error.message}; load the page again`);
});

async function start() {
  const archive = read("jobgen.zip", fetch(`jobgen.zip${BUILD}`), (response) => response.arrayBuffer());
  const kept = await snapshot().catch(() => undefined);
  if (kept)
    try {
      return await begin(archive, { _loadSnapshot: kept });
    } catch {} // it is not whole, or this browser cannot take it: Python begins anew
  return begin(archive, { _makeSnapshot: true });
}

async function begin(archive, how) {
  const python = await Promise.race([loadPyodide({ env: ENV, ...how }), unusable]);
  python.unpackArchive(await archive, "zip", { extractDir: FOLDER });
  if (how._makeSnapshot) {
    python.runPython(FIRST);
    if (self.caches) keep(python).catch(() => {}); // without https or room the next visit begins anew, too
  }
  return python.pyimport("jobgen.commands.web.answer");
}

// The memory of Python after a first script is kept: later visits begin with it, and import nothing. It can hold
// no compiled module, so it is made before there is a site, for which msgspec is loaded.
async function keep(python) {
  const memory = new Response(python.makeMemorySnapshot());
  const cache = await caches.open(CACHE);
  await cache.put(KEPT, memory);
  for (const one of await cache.keys()) if (!one.url.endsWith(BUILD)) await cache.delete(one);
}

async function snapshot() {
  const found = await self.caches?.match(KEPT, { cacheName: CACHE });
  return found && new Uint8Array(await found.arrayBuffer());
}

// Reads the server's answer; an error names the file.
async function read(file, answer, how) {
  try {
    const response = await answer;
    if (!response.ok) throw new Error(`${response.status} ${response.statusText}`);
    return await how(response);
  } catch (error) {
    throw new Error(`${file}: ${error.message}`);
  }
}

onmessage = async ({ data: { form, key } }) => {
  try {
    const python = await ready;
    const text = JSON.stringify(form);
    postMessage({ key, answer: JSON.parse(key ? python.lines(text, key) : python.answer(text)) });
  } catch (error) {
    postMessage({ error: error.message });
  }
};
