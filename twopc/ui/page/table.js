// Elements, tables and figures as text. Whatever comes from a job is set as text, never as HTML.

export function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== null && value !== undefined && value !== false) element.setAttribute(name, value);
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

export function svg(tag, attributes = {}, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

// Columns: [head, cell of a row, class]. The element is left alone where nothing has changed, so a selection lasts.
export function fill(place, columns, rows, nothing) {
  const cells = rows.map((row) => columns.map(([, cell]) => cell(row)));
  const shown = JSON.stringify([columns.map(([head]) => head), cells, nothing]);
  if (place.dataset.shown === shown) return;
  place.dataset.shown = shown;
  if (!rows.length) {
    place.replaceChildren(make("p", { class: "quiet" }, nothing));
    return;
  }
  const head = make("tr", {}, ...columns.map(([name, , kind]) => make("th", { class: kind, scope: "col" }, name)));
  const body = cells.map((row) => make("tr", {}, ...row.map((cell, at) => td(cell, columns[at][2]))));
  place.replaceChildren(make("table", {}, make("thead", {}, head), make("tbody", {}, ...body)));
}

function td(cell, kind) {
  const [text, mood] = Array.isArray(cell) ? cell : [cell, ""];
  const kinds = [kind, mood].filter(Boolean).join(" ");
  return make("td", { class: kinds || null }, text === null || text === undefined ? "" : String(text));
}

export function put(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

export const count = (value) => (value === null || value === undefined ? "" : Math.round(value).toLocaleString("en"));

export function short(value) {
  if (value === null || value === undefined) return "";
  const sizes = [[1e9, "G"], [1e6, "M"], [1e4, "k"]];
  for (const [size, unit] of sizes) {
    if (value >= size) return `${(value / (unit === "k" ? 1e3 : size)).toFixed(1)}${unit}`;
  }
  return value < 10 && value % 1 ? value.toFixed(1) : count(value);
}

export function bytes(value) {
  for (const [size, unit] of [[2 ** 30, "GB"], [2 ** 20, "MB"], [2 ** 10, "kB"]]) {
    if (value >= size) return `${(value / size).toFixed(1)} ${unit}`;
  }
  return `${count(value)} B`;
}

export function duration(milliseconds) {
  if (milliseconds === null || milliseconds === undefined) return "";
  if (milliseconds < 1000) return `${count(milliseconds)} ms`;
  const seconds = milliseconds / 1000;
  if (seconds < 120) return `${seconds < 10 ? seconds.toFixed(1) : count(seconds)} s`;
  if (seconds < 7200) return `${count(seconds / 60)} min`;
  return seconds < 172800 ? `${count(seconds / 3600)} h` : `${count(seconds / 86400)} days`;
}

export function moment(milliseconds) {
  if (!milliseconds) return "";
  const at = new Date(milliseconds);
  const two = (number) => String(number).padStart(2, "0");
  return `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())} ${clock(milliseconds)}`;
}

// The time of day, where the day is plain from what stands beside it.
export function clock(milliseconds) {
  const at = new Date(milliseconds);
  return [at.getHours(), at.getMinutes(), at.getSeconds()].map((number) => String(number).padStart(2, "0")).join(":");
}
