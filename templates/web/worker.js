// Runs jobgen in Python, beside the page: {form} is answered by the script, {form, key} by the lines of an option.
import { loadPyodide } from "./pyodide.mjs";

const ready = start();

async function start() {
  const archive = fetch("jobgen.zip").then((response) => response.arrayBuffer());
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
    postMessage({ error: String(error) });
  }
};
