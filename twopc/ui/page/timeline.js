// The checkpoints as bars on one scale: trigger, pre-commit, store, completion, commit; by subtask where one is opened.

import { bytes, clock, duration, make } from "./table.js";

export const PHASES = [
  ["trigger", "waiting for the batch in hand"], ["pre-commit", "data loop stands still"], ["store", "snapshot is stored"],
  ["completion", "becomes durable"], ["commit", "transactions are committed"],
];
const MEANT = new Map(PHASES);

export function legend(place) {
  place.replaceChildren(...PHASES.map(([name, text]) => make("span", {}, make("i", { class: name }), `${name}: ${text}`)));
}

export function timeline(place, rows) {
  const longest = Math.max(1, ...rows.map((row) => row.end_ms - row.start_ms));
  const scale = niceScale(longest);
  const known = new Map([...place.children].map((child) => [child.dataset.key, child]));
  const wanted = rows.map((row) => lineOf(row, scale, known));
  for (const [at, line] of wanted.entries()) {
    if (place.children[at] !== line) place.insertBefore(line, place.children[at] || null);
  }
  while (place.children.length > wanted.length) place.lastChild.remove();
  if (!rows.length) place.replaceChildren(make("p", { class: "quiet" }, "no checkpoint has completed yet"));
}

// The scale stays as it is while it fits, so bars can be compared with those of a moment ago.
function niceScale(longest) {
  return [20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 1e4, 3e4, 6e4].find((each) => each >= longest) || longest;
}

function lineOf(row, scale, known) {
  const key = `${row.attempt}/${row.checkpoint_id}/${row.start_ms}`;
  const shown = JSON.stringify([row, scale]);
  const line = known.get(key) || make("details", { class: "checkpoint", "data-key": key });
  if (line.dataset.shown !== shown) {
    line.dataset.shown = shown;
    line.replaceChildren(make("summary", {}, ...cells(nameOf(row), whole(row, scale), row)), ...lanes(row, scale));
  }
  return line;
}

function nameOf(row) {
  const kind = row.label || (row.kind === "periodic" ? "" : row.kind);
  return make("span", {}, `${row.checkpoint_id} `, make("span", { class: "quiet wide" }, `${clock(row.start_ms)} `), make("span", { class: "quiet" }, kind));
}

// What is usual, beside which one sees what is not; empty where there are no two to compare.
export function usual(checkpoints) {
  const done = checkpoints.filter((each) => each.outcome === "completed" && each.triggered_ms);
  if (done.length < 2) return "";
  const took = spread(done.map((each) => each.ended_ms - each.triggered_ms), duration);
  const sizes = spread(done.map((each) => each.size_bytes), bytes);
  return `The last ${done.length} that completed took ${took}; size ${sizes}.`;
}

function spread(values, say) {
  const sorted = values.sort((one, other) => one - other);
  const upTo = (part) => say(sorted[Math.ceil(part * sorted.length) - 1]);
  return `${upTo(0.5)} (median), ${upTo(0.99)} (99 %), ${upTo(1)} (most)`;
}

function cells(name, parts, row) {
  const took = make("span", { class: row.error ? "took bad" : "took" }, row.error ? "aborted" : duration(row.end_ms - row.start_ms));
  return [name, bar(parts), took];
}

// Of all subtasks a phase is over when the last is through with it.
function whole(row, scale) {
  const parts = [];
  let from = row.start_ms;
  for (const [name] of PHASES) {
    const ends = row.parts.filter((part) => part.name === name).map((part) => part.end_ms);
    if (!ends.length) continue;
    const to = Math.max(from, ...ends);
    parts.push(part(name, row, from, to, scale));
    from = to;
  }
  if (row.error) parts.push(part("failed", row, from, row.end_ms, scale));
  return parts;
}

function lanes(row, scale) {
  const subtasks = [...new Set(row.parts.map((each) => each.subtask).filter((each) => each !== null))].sort((a, b) => a - b);
  const lines = subtasks.map((subtask) => {
    const own = row.parts.filter((each) => each.subtask === subtask || (each.subtask === null && each.name === "commit"));
    const parts = own.map((each) => part(each.name, row, each.start_ms, each.end_ms, scale));
    const pause = own.find((each) => each.name === "pre-commit");
    const stood = pause ? `stood ${duration(pause.end_ms - pause.start_ms)}` : "";
    return make("div", { class: "lane" }, make("span", { class: "who" }, `subtask ${subtask}`), bar(parts), make("span", { class: "took" }, stood));
  });
  if (row.error) lines.push(make("p", { class: "bad" }, row.error));
  return lines;
}

function bar(parts) {
  return make("span", { class: "bar" }, ...parts);
}

function part(name, row, from, to, scale) {
  const piece = make("i", { class: name, title: `${name}: ${duration(to - from)}${MEANT.has(name) ? `, ${MEANT.get(name)}` : ""}` });
  piece.style.left = `${(100 * (from - row.start_ms)) / scale}%`;
  piece.style.width = `${(100 * Math.max(0, to - from)) / scale}%`;
  return piece;
}
