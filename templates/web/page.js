// The form and its script. The address holds the form; worker.js makes the script.
const $ = (id) => document.getElementById(id);
const form = $("form");
const worker = new Worker("worker.js", { type: "module" });
const texts = { script: "", command: "", file: "" };
const SHOWN = 3; // options at a line
let toAddress; // a timer
let busy = false;
let waiting = false;
let toAsk = []; // options whose lines are not known yet
let links = []; // the options of each line

const fields = () => [...form.elements].filter((field) => field.name);
const applies = (field) => !field.closest(".field").hidden;

function values() {
  return Object.fromEntries(
    fields().filter((field) => applies(field) && field.value.trim()).map((field) => [field.name, field.value]),
  );
}

// The fields of the address; a name that no field has is passed on, so that Python refuses it.
let unknown = {};
function fill() {
  const given = Object.fromEntries(new URLSearchParams(location.hash.slice(1)));
  if (!Object.keys(given).length) return;
  unknown = given;
  for (const field of fields()) {
    field.value = given[field.name] ?? (field.name === "scheduler" ? field.options[0].value : "");
    if (field.name in given && field.value === given[field.name].replace(/\r\n?/g, "\n")) delete unknown[field.name];
    if (given[field.name]) field.closest("details")?.setAttribute("open", "");
  }
}

// Hides what the scheduler does not have.
function fit() {
  const name = form.scheduler.value;
  for (const one of form.querySelectorAll("[data-without]")) {
    const without = one.dataset.without.split(" ").includes(name);
    if (one.tagName === "OPTION") {
      one.hidden = one.disabled = without;
      if (without && one.selected) one.parentElement.value = "";
    } else one.hidden = without;
  }
}

function changed(event) {
  if (event?.target === form.site) {
    const scheduler = form.site.selectedOptions[0].dataset.scheduler;
    if (scheduler) form.scheduler.value = scheduler;
  } else if (event?.target === form.scheduler) {
    const place = form.site.selectedOptions[0].dataset.scheduler;
    if (place && place !== form.scheduler.value) form.site.value = "";
  }
  if (event) unknown = {};
  fit();
  const now = { ...values(), ...unknown };
  clearTimeout(toAddress); // browsers refuse many changes of the address at once
  toAddress = setTimeout(() => history.replaceState(null, "", `#${new URLSearchParams(now)}`), 300);
  document.body.dataset.state = "asked";
  toAsk = [];
  if (busy) waiting = true;
  else ask();
}

function ask(key) {
  busy = true;
  worker.postMessage({ form: { ...values(), ...unknown }, key });
}

worker.onmessage = ({ data: { key, answer, error } }) => {
  busy = false;
  if (waiting) {
    waiting = false;
    ask();
    return;
  }
  if (error) failed(error);
  else if (key) {
    for (const line of answer) links[line]?.push(key);
  } else {
    show(answer);
    toAsk = answer.status ? [] : order();
  }
  if (toAsk.length) ask(toAsk.shift());
  else if (key) link();
};
worker.onerror = (event) => failed(event.message || "Python cannot be loaded");

// The options with values first: a line that comes from one of them is not linked to a default.
function order() {
  const names = fields().filter((field) => applies(field) && field.name !== "scheduler");
  return [...names].sort((a, b) => !!b.value - !!a.value).map((field) => field.name);
}

function failed(text) {
  $("state").textContent = "";
  $("message").hidden = false;
  $("message").textContent = text;
}

function show({ status, script, messages, command = "", file = "" }) {
  const said = messages.trim();
  $("message").hidden = !said;
  $("message").textContent = said;
  for (const field of fields()) field.removeAttribute("aria-invalid");
  const named = /--([a-z-]+)/.exec(status ? said : "")?.[1].replaceAll("-", "_");
  if (named) $(`f-${named}`)?.setAttribute("aria-invalid", "true");
  $("command").textContent = command;
  texts.command = command;
  $("output").classList.toggle("old", status !== 0 && texts.script !== "");
  if (status === 0) {
    Object.assign(texts, { script, file });
    const at = script.indexOf("\n# ======== jobgen runtime ") + 1 || script.length;
    $("runtime").textContent = script.slice(at);
    $("file").textContent = file;
    const lines = script.slice(0, at).split("\n");
    links = lines.map(() => []);
    $("script").replaceChildren(...lines.map(line));
    $("state").textContent = `The script has ${lines.length} lines, and the runtime below them.`;
  } else $("state").textContent = "There is no script for this form.";
  document.body.dataset.state = "shown";
}

function line(text) {
  const row = document.createElement("div");
  row.className = "line";
  row.append(Object.assign(document.createElement("code"), { textContent: text }));
  return row;
}

function link() {
  links.forEach((keys, at) => {
    const set = keys.filter((key) => form[key].value);
    const row = $("script").children[at];
    row.dataset.from = keys.join(" ");
    const from = document.createElement("span");
    from.className = "from";
    for (const key of (set.length ? set : keys).slice(0, SHOWN)) {
      const flag = document.querySelector(`label[for=f-${key}]`).textContent;
      const one = Object.assign(document.createElement("a"), { href: `#f-${key}`, textContent: flag, className: set.length ? "" : "default" });
      one.onclick = (event) => (event.preventDefault(), focusOn(key));
      from.append(one, " ");
    }
    row.querySelector(".from")?.remove();
    row.append(from);
  });
  document.body.dataset.state = "linked";
}

function focusOn(key) {
  form[key].closest("details")?.setAttribute("open", "");
  form[key].focus();
}

form.addEventListener("input", changed);
form.addEventListener("submit", (event) => event.preventDefault());
form.addEventListener("reset", () => setTimeout(() => changed({ target: form })));
form.addEventListener("focusin", ({ target }) => {
  for (const row of $("script").children) row.classList.toggle("on", (row.dataset.from ?? "").split(" ").includes(target.name));
});
addEventListener("hashchange", () => (fill(), changed()));

for (const button of document.querySelectorAll("[data-copy]"))
  button.onclick = async () => {
    await copy(button.dataset.copy === "link" ? location.href : texts[button.dataset.copy]);
    $("state").textContent = `${button.textContent.replace("Copy", "Copied:")}.`;
  };

async function copy(text) {
  if (navigator.clipboard) return navigator.clipboard.writeText(text);
  const field = Object.assign(document.createElement("textarea"), { value: text }); // a page without https
  document.body.append(field);
  field.select();
  document.execCommand("copy");
  field.remove();
}

$("download").onclick = () => {
  const address = URL.createObjectURL(new Blob([texts.script], { type: "text/x-shellscript" }));
  Object.assign(document.createElement("a"), { href: address, download: form.scheduler.selectedOptions[0].dataset.file }).click();
  setTimeout(() => URL.revokeObjectURL(address), 1000);
};

if (form.site.value) changed({ target: form.site });
fill();
changed();
