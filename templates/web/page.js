// The form and its script. The address holds the form; worker.js makes the script.
const $ = (id) => document.getElementById(id);
const form = $("form");
const worker = location.protocol === "file:" ? {} : new Worker(`worker.js?${document.body.dataset.build}`, { type: "module" });
const texts = { script: "", command: "", file: "" };
const SHOWN = 3; // options at a line
let toAddress; // timers
let toSay;
let leads = false; // whether the site that was chosen leads to the field that it requires
let busy = false;
let waiting = false;
let toAsk = []; // options whose lines are not known yet
let links = []; // the options of each line

const fields = () => [...form.elements].filter((field) => field.name);
const applies = (field) => !field.closest("[hidden]");
const address = () => `#${new URLSearchParams({ ...values(), ...unknown })}`;
const schedulerOfSite = () => form.site.selectedOptions[0]?.dataset.scheduler;

function values() {
  return Object.fromEntries(
    fields().filter((field) => applies(field) && field.value.trim()).map((field) => [field.name, field.value.toWellFormed()]),
  );
}

// The fields of the address; a name or value that no field has is passed on, so that Python refuses it.
let unknown = {};
function fill({ hash }) {
  if ($(hash.slice(1))) return; // a link inside the page
  const parts = new URLSearchParams(hash.slice(1));
  const given = Object.fromEntries([...parts.keys()].map((key) => [key, parts.getAll(key).join("\n")]));
  if (!parts.size) return;
  for (const field of fields()) {
    field.value = given[field.name] ?? (field.name === "scheduler" ? field.options[0].value : "");
    if (given[field.name]) unfold(field);
  }
  if (!given.scheduler) form.scheduler.value = schedulerOfSite() ?? form.scheduler.value;
  fit();
  for (const field of fields().filter(applies))
    if (field.value === given[field.name]?.replace(/\r\n?/g, "\n")) delete given[field.name];
  unknown = given;
  warn();
}

// A link may come from anybody: code that it brings is named.
function warn() {
  const fields = code();
  $("code").hidden = !fields.length;
  $("code").replaceChildren("This link holds code that the job runs. Read it before you submit the script: ");
  fields.forEach((field, at) => $("code").append(at ? ", " : "", linkTo(field.name, labelOf(field))));
}

const code = () => fields().filter((field) => field.closest("[data-code]") && applies(field) && field.value.trim() && !proposed(field));
const proposed = (field) => [...(field.list?.options ?? [])].some((word) => word.value === field.value);
const labelOf = (field) => field.labels[0].firstChild.textContent.trim();

// Hides what the scheduler does not have, and the options of the training module if another program runs.
function fit() {
  $("training").hidden = !new RegExp($("training").dataset.program).test(form.program.value);
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
  leads = event instanceof Event && event.target === form.site;
  if (event?.target === form.site) {
    form.scheduler.value = schedulerOfSite() ?? form.scheduler.value;
  } else if (event?.target === form.scheduler) {
    if (schedulerOfSite() !== form.scheduler.value) form.site.value = "";
  }
  if (event) unknown = {};
  if (!code().length) $("code").hidden = true;
  fit();
  clearTimeout(toAddress); // browsers refuse many changes of the address at once
  toAddress = setTimeout(() => history.replaceState(null, "", address()), 300);
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
  const has = (field) => field.value || !$("training").contains(field); // its options have no line without a value
  const names = fields().filter((field) => applies(field) && field.name !== "scheduler" && has(field));
  return [...names].sort((a, b) => !!b.value - !!a.value).map((field) => field.name);
}

function failed(text) {
  Object.assign(texts, { script: "", command: "", file: "" });
  offer();
  tell(text, "");
  document.body.dataset.state = "failed";
}

// Shows a message and the state; a screen reader hears them after a pause in typing.
function tell(message, state) {
  $("message").hidden = !message;
  $("message").textContent = message;
  $("state").textContent = state;
  clearTimeout(toSay);
  toSay = setTimeout(() => {
    const text = `${message} ${state}`.trim();
    if ($("said").textContent !== text) $("said").textContent = text;
  }, 700);
}

// The buttons are for what there is.
function offer() {
  $("output").classList.toggle("old", !texts.script);
  for (const button of document.querySelectorAll("[data-text]")) button.disabled = !texts[button.dataset.text];
}

function show({ status, script, messages, command = "", file = "" }) {
  const said = messages.trim();
  $("message").classList.toggle("warning", status === 0);
  explain(status ? said : "");
  $("command").textContent = command;
  Object.assign(texts, { script, command, file: status ? "" : file });
  offer();
  if (status === 0) {
    const at = script.indexOf(`\n${document.body.dataset.mark}`) + 1 || script.length;
    $("runtime").textContent = script.slice(at);
    $("file").textContent = file;
    const lines = script.slice(0, at).split("\n");
    links = lines.map(() => []);
    $("script").replaceChildren(...lines.map(line));
    tell(said, size(lines.length - 1));
  } else tell(said, "There is no script for this form.");
  document.body.dataset.state = "shown";
}

function size(lines) {
  $("bar").firstChild.textContent = `Script: ${lines} lines`;
  return `The script has ${lines} lines, and the runtime below them.`;
}

// Says at the field that a message names why it is wrong, and goes there if a site was chosen which requires it.
function explain(said) {
  for (const field of form.querySelectorAll("[aria-invalid]")) field.removeAttribute("aria-invalid");
  for (const why of form.querySelectorAll(".why")) why.hidden = true;
  if (said) Object.assign($("bar").firstChild, { textContent: "No script: see why", href: "#message" });
  else $("bar").firstChild.href = "#output";
  const key = keyOf(said);
  const field = key && $(`f-${key}`);
  if (!field) return;
  field.setAttribute("aria-invalid", "true");
  Object.assign($(`w-${key}`), { hidden: false, textContent: said.replace("jobgen: ", "") });
  $("bar").firstChild.href = `#f-${key}`;
  if (leads) focusOn(key);
}

// The field of a message. Words of the program come from its field, and from those of the training module.
function keyOf(said) {
  const key = /--([\w-]+)/.exec(said)?.[1].replaceAll("-", "_");
  if (!said.includes("(after --)")) return /^jobgen: (train\.\w+).* \(form\)/.exec(said)?.[1] ?? key;
  return { ...values(), ...unknown }[`train.${key}`] ? `train.${key}` : "program";
}

// The first script is in the page before Python is loaded; that of a link comes later.
function first() {
  const lines = [...$("script").children].map((row) => row.textContent);
  if (location.hash.length > 1) $("output").classList.add("old");
  else {
    const script = `${lines.join("\n")}${$("runtime").textContent}`;
    Object.assign(texts, { script, command: $("command").textContent, file: $("file").textContent });
    offer();
    size(lines.length - 1);
  }
  if (location.protocol === "file:")
    $("state").textContent = "A page that was opened as a file cannot load Python: serve its folder, as python3 -m http.server does.";
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
    const from = document.createElement("span");
    from.className = "from";
    for (const key of (set.length ? set : keys).slice(0, SHOWN)) {
      const one = linkTo(key, form[key].closest(".field").dataset.flag);
      from.append(Object.assign(one, { className: set.length ? "" : "default", tabIndex: -1 }), " ");
    }
    row.querySelector(".from")?.remove();
    row.append(from);
  });
  const first = $("script").querySelector("a");
  if (first) first.tabIndex = 0;
  mark();
  document.body.dataset.state = "linked";
}

function linkTo(key, textContent) {
  const one = Object.assign(document.createElement("a"), { href: `#f-${key}`, textContent });
  one.onclick = (event) => (event.preventDefault(), focusOn(key));
  return one;
}

// Marks the lines of the field that has the focus.
function mark() {
  links.forEach((keys, at) => $("script").children[at].classList.toggle("on", keys.includes(document.activeElement.name)));
}

// The links of the script are one stop of the tab key; the arrow keys go from one to the next.
$("script").onkeydown = (event) => {
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  const all = [...$("script").querySelectorAll("a")];
  const next = step && all[all.indexOf(event.target) + step];
  if (!next || event.target.tagName !== "A") return;
  event.preventDefault();
  event.target.tabIndex = -1;
  next.tabIndex = 0;
  next.focus();
};

function focusOn(key) {
  unfold(form[key]);
  form[key].focus();
}

function unfold(field) {
  for (let one = field.closest("details"); one; one = one.parentElement.closest("details")) one.open = true;
}

form.addEventListener("input", changed);
form.addEventListener("submit", (event) => event.preventDefault());
form.addEventListener("reset", () => setTimeout(() => changed({ target: form.site })));
form.addEventListener("focusin", mark);
form.addEventListener("click", ({ target }) => {
  if (target.className !== "about") return;
  const text = $(target.getAttribute("aria-controls"));
  text.hidden = !text.hidden;
  target.setAttribute("aria-expanded", String(!text.hidden));
});
addEventListener("hashchange", ({ newURL }) => (fill(new URL(newURL)), changed())); // location may be that of a timer

for (const button of document.querySelectorAll(".copy"))
  button.onclick = async () => {
    await copy(texts[button.dataset.text] ?? new URL(address(), location.href).href);
    const holds = button.dataset.text ? [] : code();
    const more = holds.length ? ` It holds code that the job runs: ${holds.map(labelOf).join(", ")}.` : "";
    const what = button.textContent.replace(/^Copy ?/, "") || "script";
    $("state").textContent = $("said").textContent = `Copied: ${what}.${more}`;
  };

async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    const before = document.activeElement; // a page without https has no clipboard
    const field = Object.assign(document.createElement("textarea"), { value: text });
    document.body.append(field);
    field.select();
    document.execCommand("copy");
    field.remove();
    before.focus();
  }
}

$("bar").firstChild.onclick = (event) => {
  const key = event.target.hash.replace("#f-", "");
  if (form[key]) (event.preventDefault(), focusOn(key));
};

$("download").onclick = () => {
  const address = URL.createObjectURL(new Blob([texts.script], { type: "text/x-shellscript" }));
  Object.assign(document.createElement("a"), { href: address, download: form.scheduler.selectedOptions[0].dataset.file }).click();
  setTimeout(() => URL.revokeObjectURL(address), 1000);
};

first();
fill(location);
if (location.protocol === "file:") fit();
else changed();
