// Runs jobgen in Python, beside the page: {form} is answered by the script, {form, key} by the lines of an option.
import { loadPyodide } from "./pyodide.mjs";

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
  const archive = read("jobgen.zip", fetch(`jobgen.zip${location.search}`), (response) => response.arrayBuffer());
  const loaded = loadPyodide({ env: { HOME: "/home/pyodide", XDG_CONFIG_HOME: "/jobgen/config" } });
  const python = await Promise.race([loaded, unusable]);
  python.unpackArchive(await archive, "zip", { extractDir: "/jobgen" });
  python.runPython("import sys; sys.path.insert(0, '/jobgen'); sys.dont_write_bytecode = True");
  return python.pyimport("jobgen.commands.web.answer");
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
