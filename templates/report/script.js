"use strict";
// The page can be read without this: it sorts tables, hides runs and reads values under the pointer.
const each = (selector, act, root = document) => root.querySelectorAll(selector).forEach(act);

each("input[data-run]", (box) => box.addEventListener("change", () =>
  each(`.line[data-run="${box.dataset.run}"]`, (line) => line.classList.toggle("off", !box.checked))));

each("table.sortable th[scope=col]", (head) => {
  const button = document.createElement("button");
  button.append(...head.childNodes);
  head.append(button);
  button.addEventListener("click", () => sortBy(head));
});

function sortBy(head) {
  const up = head.getAttribute("aria-sort") !== "ascending", at = head.cellIndex;
  each("th", (other) => other.removeAttribute("aria-sort"), head.parentNode);
  head.setAttribute("aria-sort", up ? "ascending" : "descending");
  const said = (row) => row.cells[at].dataset.value ?? row.cells[at].textContent.trim();
  const number = (text) => text === "" || text === "None" ? NaN : Number(text);
  const body = head.closest("table").tBodies[0];
  body.append(...[...body.rows].sort((one, two) => {
    const [a, b] = [said(one), said(two)], [m, n] = [number(a), number(b)];
    if (isNaN(m) && isNaN(n)) return (up ? 1 : -1) * a.localeCompare(b);
    if (isNaN(m) || isNaN(n)) return isNaN(m) ? 1 : -1;  // what is no number comes last, up or down
    return (up ? 1 : -1) * (m - n);
  }));
}

const short = (value) => Number(value.toPrecision(4)).toString();

each("svg.chart", (chart) => {
  const [x0, x1, left, right] = chart.dataset.x.split(" ").map(Number);
  const [y0, y1, bottom, top] = chart.dataset.y.split(" ").map(Number);
  const log = "log" in chart.dataset, percent = "percent" in chart.dataset;
  const tip = Object.assign(document.createElement("div"), { className: "tip", hidden: true });
  const cursor = document.createElementNS(chart.namespaceURI, "line");
  cursor.setAttribute("class", "cursor");
  chart.after(tip);
  const value = (y) => {
    const part = (y - bottom) / (top - bottom);
    const found = log ? y0 * (y1 / y0) ** part : y0 + part * (y1 - y0);
    return percent ? short(100 * found) + " %" : short(found);
  };
  const places = [...chart.querySelectorAll(".line")].map((line) => [line,
    [...line.querySelectorAll("polyline, circle")].flatMap((shape) => shape.points
      ? [...shape.points].map((point) => [point.x, point.y])
      : [[shape.cx.baseVal.value, shape.cy.baseVal.value]])]);
  const nearest = (points, x) => points.reduce((a, b) => Math.abs(b[0] - x) < Math.abs(a[0] - x) ? b : a);

  chart.addEventListener("pointermove", (event) => {
    const box = chart.getBoundingClientRect(), frame = chart.closest("figure").getBoundingClientRect();
    const scale = chart.viewBox.baseVal.width / box.width;
    const x = Math.min(right, Math.max(left, (event.clientX - box.left) * scale));
    const at = x0 + (x - left) / (right - left) * (x1 - x0);
    const lines = places.filter(([line]) => !line.classList.contains("off")).map(([line, points]) =>
      `${+line.dataset.run + 1} ${line.dataset.series}: ${value(nearest(points, x)[1])}`);
    tip.textContent = [chart.dataset.by === "step" ? `step ${Math.round(at)}` : `${short(at)} s`, ...lines].join("\n");
    tip.hidden = false;
    const after = event.clientX - frame.left < frame.width / 2;
    tip.style.cssText = `white-space: pre; top: ${chart.offsetTop + 12}px; ` + (after
      ? `left: ${event.clientX - frame.left + 16}px` : `right: ${frame.right - event.clientX + 16}px`);
    for (const [name, place] of [["x1", x], ["x2", x], ["y1", top], ["y2", bottom]]) cursor.setAttribute(name, place);
    chart.append(cursor);
  });
  chart.addEventListener("pointerleave", () => { tip.hidden = true; cursor.remove(); });
});
