// Runs jobgen in Python, beside the page: {form} is answered by the script, {form, key} by the lines of an option.
import { loadPyodide } from "./pyodide.mjs";

const ready = start().catch((error) => {
  throw new Error(`Python cannot be loaded: ${error.message}; load the page again`);
});

async function start() {
  const archive = fetch(`jobgen.zip${location.search}`).then((response) => {
    if (!response.ok) throw new Error(`jobgen.zip: ${response.status} ${response.statusText}`);
    return response.arrayBuffer();
  });
  const wasm = await fetch("pyodide.asm.wasm", { method: "HEAD" }); // Pyodide waits for ever without it
  if (!wasm.ok) throw new Error(`pyodide.asm.wasm: ${wasm.status} ${wasm.statusText}`);
  const python = await loadPyodide({ env: { HOME: "/home/pyodide", XDG_CONFIG_HOME: "/jobgen/config" } });
  python.unpackArchive(await archive, "zip", { extractDir: "/jobgen" });
  python.runPython("import sys; sys.path.insert(0, '/jobgen'); sys.dont_write_bytecode = True");
  return python.pyimport("jobgen.commands.web.answer");
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
