// The page of a job: what the server says of it once a second, without a reload.

import { graphOf } from "./graph.js";
import { bytes, count, duration, fill, make, moment, put, short, svg } from "./table.js";
import { legend, timeline, usual } from "./timeline.js";

const SPARK = 120, MOVES = 4, STILL_MS = 12000;
const at = (id) => document.getElementById(id);
let counters = new Map(), attempt = 0, stream = null, shownJob = "", letterCount = null, stateNames = "", sparks = { in: [], lag: [] };

legend(at("legend"));
at("jobs").addEventListener("change", (event) => { location.hash = encodeURIComponent(event.target.value); });
window.addEventListener("hashchange", open);
at("state-form").addEventListener("submit", showState);
open();

async function ask(path) {
  const answer = await fetch(`api/jobs${path}`);
  const found = await answer.json();
  if (!answer.ok) throw new Error(found.problem);
  return found;
}

async function open() {
  let jobs;
  try {
    jobs = await ask("");
  } catch (error) {
    lost();
    setTimeout(open, 3000);
    return;
  }
  const wanted = decodeURIComponent(location.hash.slice(1));
  const job = jobs.find((each) => each.job === wanted) || jobs.find((each) => each.runs) || jobs[0];
  at("jobs-label").classList.toggle("hidden", jobs.length < 2);
  at("job").classList.toggle("hidden", jobs.length > 1);
  at("jobs").replaceChildren(...jobs.map((each) => make("option", { selected: each === job }, each.job)));
  if (!job) {
    problem("there is no job here yet");
    setTimeout(open, 3000);
    return;
  }
  follow(job.job);
}

function follow(job) {
  if (stream) stream.close();
  [shownJob, counters, letterCount, stateNames, sparks] = [job, new Map(), null, "", { in: [], lag: [] }];
  for (const id of ["letters", "state-found"]) {
    at(id).replaceChildren();
    delete at(id).dataset.shown;
  }
  document.title = `${job} · twopc`;
  put(at("job"), job);
  stream = new EventSource(`api/jobs/${encodeURIComponent(job)}/events`);
  stream.onmessage = (event) => show(JSON.parse(event.data));
  stream.onopen = () => pill("live", "live", "good");
  stream.onerror = () => {
    lost();
    if (stream.readyState === EventSource.CLOSED) setTimeout(open, 3000);
  };
}

function lost() {
  pill("live", "no connection: what stands here is of before", "bad");
}

function pill(id, text, mood) {
  put(at(id), text);
  at(id).className = `pill ${mood}`;
}

function problem(text) {
  put(at("problem"), text);
  at("problem").classList.toggle("hidden", !text);
}

function show(job) {
  const described = job.described;
  pill("phase", job.phase, !described ? (job.phase.startsWith("not running") ? "" : "warn") : job.problem ? "bad" : job.phase === "running" ? "good" : "");
  put(at("since"), described && described.started_ms ? `attempt ${described.attempt}, since ${moment(described.started_ms)}` : "");
  problem([job.problem, ...(described ? described.input_notes : [])].filter(Boolean).join("\n"));
  const figures = figuresOf(described);
  showTiles(job, figures);
  hide("graph-section", !job.graph);
  if (job.graph) at("graph").replaceChildren(graphOf(job.graph, figures));
  timeline(at("timeline"), job.timeline);
  put(at("usual"), usual(job.checkpoints));
  showHistory(job);
  showSubtasks(job);
  showSplits(job, figures);
  showLetters(job, figures);
  showStateNames(job);
  showFacts(job);
}

function hide(id, hidden) {
  at(id).classList.toggle("hidden", hidden);
}

// Sums over subtasks of what each has counted in this attempt, and how fast that grows.
function figuresOf(described) {
  const found = { records: { in: 0, out: 0 }, speed: { in: null, out: null }, in: new Map(), out: new Map(), busy: new Map(), lags: new Map(), splits: new Map(), times: new Map(), wrong: {} };
  if (!described) return found;
  if (attempt !== described.attempt) [attempt, counters] = [described.attempt, new Map()];
  for (const { subtask, progress } of described.subtasks) {
    if (!progress) continue;
    const of = (name) => progress.figures[name] || [];
    for (const side of ["in", "out"]) {
      const value = progress[`records_${side}`];
      found.records[side] += value;
      found.speed[side] = sum(found.speed[side], rateOf(`${subtask} ${side}`, value));
      for (const { labels: [operator], value: counted } of of(`operator_num_records_${side}`)) {
        found[side].set(operator, sum(found[side].get(operator), rateOf(`${subtask} ${side} ${operator}`, counted)));
      }
    }
    for (const { labels: [operator], value } of of("operator_accumulate_busy_time_seconds")) {
      const part = rateOf(`${subtask} busy ${operator}`, value);
      if (part !== null) found.busy.set(operator, Math.max(found.busy.get(operator) || 0, part / 1000));
    }
    for (const { labels: [source, split], value } of of("split_pending_records")) {
      found.lags.set(source, sum(found.lags.get(source), value));
      found.splits.set(`${source} ${split}`, sum(found.splits.get(`${source} ${split}`), value));
    }
    for (const { labels: [operator, number], value } of of("operator_current_input_watermark_timestamp_seconds")) {
      found.times.set(operator, { ...found.times.get(operator), [number]: value });
    }
    for (const [name, figure] of WRONG) {
      for (const { value } of of(figure)) found.wrong[name] = (found.wrong[name] || 0) + value;
    }
  }
  return found;
}

const sum = (before, value) => (value === null ? before ?? null : (before || 0) + value);
const total = (map) => [...map.values()].reduce((before, value) => before + value, 0);
const WRONG = [["dead letters", "source_num_dead_letters"], ["skipped", "source_num_records_skipped"], ["late", "operator_num_late_records"]];

// A counter is told at times: its rate is that between the moments at which it was seen to move. When it came to what it
// was when the page began to look, nobody knows.
function rateOf(key, value) {
  const now = performance.now(), seen = counters.get(key) || [];
  if (!seen.length) seen.push({ at: null, value });
  else if (seen[seen.length - 1].value !== value) seen.push({ at: now, value });
  while (seen.length > MOVES) seen.shift();
  counters.set(key, seen);
  const [first, last] = [seen.find(({ at }) => at !== null), seen[seen.length - 1]];
  if (!first || first === last) return null;
  return now - last.at > STILL_MS ? 0 : Math.max(0, last.value - first.value) / ((last.at - first.at) / 1000);
}

function showTiles(job, figures) {
  const described = job.described, now = Date.now();
  const lag = figures.lags.size ? total(figures.lags) : null;
  if (described) remember(figures.speed.in, lag);
  const open = described ? described.subtasks.flatMap(({ progress }) => (progress && progress.open_transaction ? [progress.open_transaction] : [])) : [];
  const pending = described ? described.subtasks.flatMap(({ progress }) => (progress ? progress.pending_transactions : [])) : [];
  const last = job.checkpoints.find((each) => each.outcome === "completed");
  const wrong = Object.entries(figures.wrong).filter(([, value]) => value);
  const wrongOnes = wrong.reduce((before, [, value]) => before + value, 0);
  const tiles = [
    ["records in", rate(figures.speed.in), described ? `${count(figures.records.in)} in this attempt` : "", spark(sparks.in)],
    ["records out", rate(figures.speed.out), described ? `${count(figures.records.out)} in this attempt` : ""],
    ["lag", described ? (lag === null ? "unknown" : short(lag)) : "–", "records left to read", spark(sparks.lag)],
    ["last checkpoint", job.completed_ms ? `${duration(Math.max(0, now - job.completed_ms))} ago` : "none", last ? `${last.checkpoint_id}, took ${duration(last.ended_ms - last.triggered_ms)}, ${bytes(last.size_bytes)}` : ""],
    ["checkpoints", described ? `${count(described.completed)} completed` : "–", described ? `${count(described.failed)} aborted, ${described.in_flight.length} in flight` : ""],
    ["transactions", described ? `${open.length} open` : "–", described ? `${pending.length} pre-committed` : `${job.latest ? job.latest.outstanding.length : 0} outstanding`],
    ["records wrong", described ? count(wrongOnes) : "–", wrong.map(([name, value]) => `${count(value)} ${name}`).join(", ") || "in this attempt"],
  ];
  const shown = JSON.stringify(tiles.map(([name, value, note]) => [name, value, note]).concat([sparks]));
  if (at("tiles").dataset.shown === shown) return;
  at("tiles").dataset.shown = shown;
  at("tiles").replaceChildren(...tiles.map(([name, value, note, picture]) => make(
    "div", { class: "tile" }, make("div", { class: "name" }, name), make("div", { class: name === "records wrong" && wrongOnes ? "value warn" : "value" }, value), make("div", { class: "note" }, note), picture,
  )));
}

const rate = (value) => (value === null ? "–" : `${short(value)}/s`);

function remember(speed, lag) {
  sparks.in.push(Math.round(speed || 0));
  sparks.lag.push(lag || 0);
  for (const line of Object.values(sparks)) if (line.length > SPARK) line.shift();
}

function spark(values) {
  if (values.length < 3) return null;
  const most = Math.max(1, ...values);
  const points = values.map((value, number) => `${(number * 100) / (SPARK - 1)},${22 - (value * 20) / most}`).join(" ");
  return svg("svg", { width: "100%", height: 24, viewBox: "0 0 100 24", preserveAspectRatio: "none", "aria-hidden": "true" }, svg("polyline", { points, "vector-effect": "non-scaling-stroke" }));
}

function showHistory(job) {
  fill(at("checkpoints"), [
    ["id", (each) => each.checkpoint_id || "–"], ["attempt", (each) => each.attempt], ["kind", (each) => each.kind], ["label", (each) => each.label],
    ["triggered", (each) => moment(each.triggered_ms)], ["took", (each) => (each.ended_ms && each.triggered_ms ? duration(each.ended_ms - each.triggered_ms) : ""), "number"],
    ["size", (each) => (each.size_bytes ? bytes(each.size_bytes) : ""), "number"], ["outcome", (each) => [each.outcome, mood(each.outcome)]],
    ["reason", (each) => [each.reason, each.message].filter(Boolean).join(": "), "text"],
  ], job.checkpoints, "no checkpoint yet");
  fill(at("attempts"), [
    ["attempt", (each) => each.attempt], ["began", (each) => moment(each.started_ms)], ["lasted", (each) => (each.ended_ms ? duration(each.ended_ms - each.started_ms) : ""), "number"],
    ["subtasks", (each) => each.parallelism, "number"], ["from checkpoint", (each) => each.restored || "none", "number"], ["outcome", (each) => [each.outcome, mood(each.outcome)]],
    ["reason", (each) => each.reason, "text"],
  ], job.attempts.slice(0, 20), "no attempt yet");
  const wrong = [
    ...job.attempts.filter((each) => ["failed", "ended"].includes(each.outcome)).map((each) => [each.ended_ms, `attempt ${each.attempt} ${each.outcome}`, each.reason]),
    ...job.checkpoints.filter((each) => each.outcome === "aborted").map((each) => [each.ended_ms, `checkpoint ${each.checkpoint_id || "asked for"} aborted`, [each.reason, each.message].filter(Boolean).join(": ")]),
    ...(job.described ? job.described.failures : []).map((each) => [each.time_ms, `checkpoint ${each.checkpoint_id || "asked for"} aborted`, [each.reason, each.message].filter(Boolean).join(": ")]),
    ...(job.latest && job.latest.damage ? [[0, `checkpoint ${job.latest.checkpoint_id} is damaged`, job.latest.damage]] : []),
  ];
  const rows = [...new Map(wrong.map((each) => [`${each[0]} ${each[1]}`, each])).values()].sort((a, b) => b[0] - a[0]).slice(0, 20);
  fill(at("failures"), [["at", ([time]) => moment(time)], ["what", ([, what]) => [what, "bad"]], ["why", ([, , why]) => why, "text"]], rows, "nothing, in the last hundred checkpoints and attempts");
}

const mood = (outcome) => ({ completed: "good", running: "good", finished: "good", failed: "bad", aborted: "bad" })[outcome] || "";

function showSubtasks(job) {
  const described = job.described, now = Date.now();
  hide("subtasks-section", !described && !(job.latest && job.latest.outstanding.length));
  const age = (progress) => {
    const [oldest] = (progress && progress.figures.subtask_oldest_transaction_start_timestamp_seconds) || [];
    return oldest ? duration(Math.max(0, now - oldest.value)) : "";
  };
  if (described) fill(at("subtasks"), [
    ["subtask", (each) => each.subtask], ["process", (each) => (each.attached ? `${each.pid} on ${each.host}` : ["not attached", "bad"])],
    ["in", ({ progress }) => (progress ? count(progress.records_in) : ""), "number"], ["out", ({ progress }) => (progress ? count(progress.records_out) : ""), "number"],
    ["lag", ({ progress }) => (progress ? (progress.lag === null ? "unknown" : count(progress.lag)) : ""), "number"],
    ["open transaction", ({ progress }) => (progress && progress.open_transaction) || ""], ["pre-committed", ({ progress }) => (progress ? progress.pending_transactions.join(", ") : ""), "text"],
    ["oldest", ({ progress }) => age(progress), "number"], ["committed up to", (each) => each.committed || "", "number"],
    ["busy in", ({ progress }) => (progress && progress.slow) || "", "text"],
  ], described.subtasks, "no subtask yet");
  const outstanding = described ? [] : (job.latest && job.latest.outstanding) || [];
  put(at("outstanding"), outstanding.length ? `checkpoint ${job.latest.checkpoint_id} has transactions that nobody has confirmed; the next run commits them first: ${outstanding.join(", ")}` : "");
}

function showSplits(job, figures) {
  const stored = job.latest ? job.latest.positions : [];
  const rows = stored.map((each) => ({ ...each, lag: figures.splits.get(`${each.source} ${each.split}`) }));
  const known = new Set(rows.map((each) => `${each.source} ${each.split}`));
  for (const [name, lag] of figures.splits) {
    if (!known.has(name)) rows.push({ source: name.slice(0, name.indexOf(" ")), split: name.slice(name.indexOf(" ") + 1), position: "", lag });
  }
  const heads = [["source", (each) => each.source], ["partition", (each) => each.split], ["position at the checkpoint", (each) => each.position, "number"], ["lag", (each) => (each.lag === undefined ? "" : count(each.lag)), "number"]];
  for (const [operator, times] of figures.times) heads.push([`event time of ${operator}`, (each) => moment(times[(/\[(\d+)\]$/.exec(each.split) || [])[1]])]);
  fill(at("splits"), heads, rows, "no position is stored yet");
}

function showLetters(job, figures) {
  hide("letters-section", !job.letter_topics.length);
  if (!job.letter_topics.length) return;
  const told = figures.wrong["dead letters"] || 0;
  if (letterCount === told) return;
  letterCount = told;
  readLetters(job.letter_topics);
}

async function readLetters(topics) {
  try {
    const found = (await Promise.all(topics.map((topic) => ask(`/${encodeURIComponent(shownJob)}/letters?topic=${encodeURIComponent(topic)}`)))).flat();
    put(at("letter-topics"), found.length ? `the newest; all of them: twopc dead-letters list ${topics.join(" or ")}` : "");
    fill(at("letters"), [
      ["letter", (each) => each.letter], ["record", (each) => each.record || "not said"], ["at", (each) => moment(each.timestamp)], ["went wrong in", (each) => each.step],
      ["why", (each) => `${each.exception}: ${each.message}`, "text"], ["key", (each) => plain(each, "key")], ["value", (each) => plain(each, "value"), "text"], ["", (each) => (each.replayed ? "replayed" : "")],
    ], found, "none");
  } catch (error) {
    letterCount = null;
    put(at("letter-topics"), String(error.message));
  }
}

function plain(row, name) {
  const text = row[name] === undefined ? `${row[`${name}_base64`]} (base64)` : row[name];
  return text === null ? "null" : text.length > 200 ? `${text.slice(0, 200)}…` : text;
}

async function showStateNames(job) {
  hide("state-section", !job.latest);
  if (!job.latest || stateNames === `${shownJob} ${job.attempts.length}`) return;
  stateNames = `${shownJob} ${job.attempts.length}`;
  try {
    const { states } = await ask(`/${encodeURIComponent(shownJob)}/states`);
    hide("state-section", !states.length);
    at("state-name").replaceChildren(...states.map((each) => make("option", { value: each.state }, each.serde ? `${each.state} (${each.serde})` : each.state)));
  } catch (error) {
    stateNames = "";
    put(at("state-found"), String(error.message));
  }
}

async function showState(event) {
  event.preventDefault();
  const wanted = new URLSearchParams({ state: at("state-name").value, key: at("state-key").value, as: at("state-as").value });
  const place = at("state-found");
  delete place.dataset.shown;
  try {
    const { checkpoint_id: id, entries } = await ask(`/${encodeURIComponent(shownJob)}/state?${wanted}`);
    fill(place, [
      [`value in checkpoint ${id}`, (each) => each.problem || JSON.stringify(each.value ?? each.value_base64, null, 1), "text"], ["partition", (each) => each.partition], ["subtask", (each) => each.subtask],
    ], entries, `checkpoint ${id} has no such key`);
  } catch (error) {
    place.replaceChildren(make("p", { class: "bad" }, String(error.message)));
  }
}

function showFacts(job) {
  const rows = [...Object.entries(job.versions).map(([name, value]) => [`version of ${name}`, value || "missing"]), ...Object.entries(job.settings)];
  hide("facts-section", !rows.length);
  fill(at("facts"), [["setting", ([name]) => name], ["value", ([, value]) => value, "text"]], rows, "");
}
