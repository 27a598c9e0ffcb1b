// The job's graph: operators in layers, from sources to sinks; rates and lag on the edges that are counted.

import { make, short, svg } from "./table.js";

const WIDTH = 210, HEIGHT = 46, ACROSS = 96, DOWN = 22, LETTERS = 30, BUSY = 0.8, LEAST = 0.8;

export function graphOf(definition, figures) {
  const operators = definition.operators;
  const edges = edgesOf(operators);
  const layers = layersOf(operators, edges);
  const places = placesOf(operators, layers);
  const width = Math.max(...[...places.values()].map(([x]) => x)) + WIDTH + 8;
  const height = Math.max(...[...places.values()].map(([, y]) => y)) + HEIGHT + 8;
  const picture = svg("svg", { class: "fits", viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": "graph of the job" });
  // A little too wide is made to fit; much too wide is scrolled, so that it can be read.
  [picture.style.maxWidth, picture.style.minWidth] = [`${width}px`, `${LEAST * width}px`];
  const letters = new Set(operators.map((each) => each.errors_to));
  const sources = new Set(operators.filter((each) => !each.inputs.length && !letters.has(each.id)).map((each) => each.id));
  for (const edge of edges) picture.append(...drawn(edge, places, edgeText(edge, sources, edges, figures)));
  for (const operator of operators) picture.append(node(operator, places.get(operator.id), edges, letters, figures.busy.get(operator.id)));
  return picture;
}

function edgesOf(operators) {
  const ids = new Set(operators.map((each) => each.id));
  const edges = [];
  for (const operator of operators) {
    for (const input of operator.inputs) {
      const from = ids.has(input) ? input : input.slice(0, input.lastIndexOf("."));
      edges.push({ from, to: operator.id, kind: "edge" });
    }
    if (operator.behind) edges.push({ from: operator.behind, to: operator.id, kind: "edge through" });
    if (operator.errors_to) edges.push({ from: operator.id, to: operator.errors_to, kind: "edge errors" });
  }
  return edges;
}

function layersOf(operators, edges) {
  const layers = new Map(operators.map((each) => [each.id, 0]));
  for (let round = 0; round < operators.length; round += 1) {
    let moved = false;
    for (const { from, to } of edges) {
      const layer = layers.get(from) + 1;
      if (layer > layers.get(to)) { layers.set(to, layer); moved = true; }
    }
    if (!moved) break;
  }
  return layers;
}

function placesOf(operators, layers) {
  const rows = new Map(), places = new Map();
  for (const operator of operators) {
    const layer = layers.get(operator.id), row = rows.get(layer) || 0;
    rows.set(layer, row + 1);
    places.set(operator.id, [4 + layer * (WIDTH + ACROSS), 4 + row * (HEIGHT + DOWN)]);
  }
  return places;
}

// A source's records are counted as they come in, a sink's as they go out; where a source goes several ways, all go each.
function edgeText({ from, to, kind }, sources, edges, figures) {
  if (kind === "edge errors") return ["errors"];
  if (sources.has(from)) {
    const lag = figures.lags.has(from) ? `lag ${short(figures.lags.get(from))}` : "";
    return [speed(figures.in.get(from)), lag].filter(Boolean);
  }
  const alone = edges.filter((each) => each.to === to && each.kind === "edge").length === 1;
  return alone ? [speed(figures.out.get(to))].filter(Boolean) : [];
}

const speed = (value) => (value === null || value === undefined ? "" : `${short(value)}/s`);

function drawn({ from, to, kind }, places, lines) {
  const [fromX, fromY] = places.get(from), [toX, toY] = places.get(to);
  const startX = fromX + WIDTH, startY = fromY + HEIGHT / 2, endX = toX, endY = toY + HEIGHT / 2, middle = endX - ACROSS / 2;
  const path = svg("path", { class: kind, d: `M${startX},${startY} H${middle - 14} Q${middle},${startY} ${middle},${(startY + endY) / 2} Q${middle},${endY} ${middle + 14},${endY} H${endX - 2}` });
  const tip = svg("path", { class: kind, d: `M${endX - 8},${endY - 4} L${endX - 2},${endY} L${endX - 8},${endY + 4}` });
  const texts = lines.map((line, at) => {
    const text = svg("text", { x: endX - ACROSS / 2, y: endY - 8 + at * 26, "text-anchor": "middle", class: "edge-text" });
    text.textContent = line;
    return text;
  });
  return [path, tip, ...texts];
}

// How busy an operator is: the part of its time that the busiest subtask spends in it.
function node(operator, [x, y], edges, letters, busy) {
  const isEnd = !operator.inputs.length || !edges.some(({ from }) => from === operator.id);
  const kind = letters.has(operator.id) ? "letters" : isEnd ? "end" : "";
  const name = svg("text", { x: x + 10, y: y + 19 });
  const isKnown = busy !== null && busy !== undefined;
  name.textContent = cut(operator.id, isKnown ? LETTERS - 6 : LETTERS);
  const part = svg("text", { x: x + WIDTH - 10, y: y + 19, "text-anchor": "end", class: busy >= BUSY ? "full" : "quiet" });
  part.textContent = isKnown ? `${Math.round(100 * busy)} %` : "";
  const what = svg("text", { x: x + 10, y: y + 36, class: "quiet" });
  what.textContent = cut(operator.what, LETTERS);
  const title = svg("title");
  title.textContent = `${operator.id}: ${operator.what}${operator.on_error ? `; on error: ${operator.on_error}` : ""}${isKnown ? `; takes ${part.textContent} of the time of the busiest subtask` : ""}`;
  return svg("g", {}, title, svg("rect", { class: `node ${kind}`, x, y, width: WIDTH, height: HEIGHT, rx: 7 }), name, part, what);
}

const cut = (text, most) => (text.length > most ? `${text.slice(0, most - 1)}…` : text);
