// Pictures of a session: how full its context was, what was spent on what, and where the time of a turn went.

import { api, sessionPath } from "./api.js";
import { barChart, figure, layerLegend, lineChart, spanChart } from "./charts.js";
import { emptyState, errorText, h, replaceChildren } from "./dom.js";
import { formatClock, formatCost, formatCount, formatDuration, formatMoment, formatShortMoment, formatTokens } from "./format.js";

/** @param {HTMLElement} place @param {string} key */
export async function figuresPanel(place, key) {
  const loading = h("p", { class: "quiet", role: "status" }, "Loading…");
  place.append(loading);
  const [figures, status] = await Promise.all([api(sessionPath(key, "/figures")), api(sessionPath(key))]).finally(() => loading.remove());
  if (figures.by_turn.length === 0 && status.turns === 0) {
    place.append(emptyState("No figures yet", "They appear after the first turn."));
    return;
  }
  if (figures.context.length > 0) place.append(contextFigure(figures));
  place.append(partsFigure(status.context));
  if (figures.by_cause.length > 0) place.append(causeFigure(figures));
  place.append(timelineSection(key, status.turns));
}

/** Turns to choose from. */
const MAX_TURNS = 500;
/** What the spans of a turn are. */
const KINDS = { model: "Model", tool: "Tools", question: "Questions", wait: "Waits", retry: "Retries", compaction: "Compaction" };
const PARTS = { system: "System prompt", tools: "Tools", memory: "Memory", summary: "Summary", pins: "Directives", turns: "Conversation", tool_output: "Tool output" };

/** @param {any} context */
function partsFigure(context) {
  const parts = Object.entries(PARTS).map(([part, name]) => ({ name, kind: part, value: context.parts[part] ?? 0 }));
  const bars = parts.filter((part) => part.value > 0).map((part) => ({ ...part, text: `${formatCount(part.value)} tokens` }));
  return barChart(bars, "What the context holds now (estimated)");
}

/** @param {any} figures */
function contextFigure(figures) {
  const points = figures.context.map((/** @type {any} */ call) => ({ x: call.seq, y: call.input }));
  const limit = figures.context.findLast((/** @type {any} */ call) => call.window)?.window ?? null;
  const marks = figures.compactions.map((/** @type {any} */ one) => ({ x: one.seq, text: `Compacted from ${formatCount(one.before)} to ${formatCount(one.after)} tokens` }));
  const at = new Map(figures.context.map((/** @type {any} */ call) => [call.seq, call.at]));
  const title = "Context over time, in tokens";
  const layers = contextLayers(figures.context);
  const picture = lineChart({ title, points, layers, limit, marks, formatY: formatTokens, formatX: (seq) => (at.has(seq) ? formatShortMoment(/** @type {string} */ (at.get(seq))) : "") });
  const rows = [
    ...figures.context.map((/** @type {any} */ call, /** @type {number} */ index) => ({ seq: call.seq, cells: [formatMoment(call.at), call.turn ?? "", formatCount(call.input), "", ...layers.map(({ values }) => (call.parts ? formatCount(values[index] ?? 0) : ""))] })),
    ...figures.compactions.map((/** @type {any} */ one) => ({ seq: one.seq, cells: [formatMoment(one.at), "", formatCount(one.after), `compacted from ${formatCount(one.before)}`, ...layers.map(() => "")] })),
  ].sort((one, other) => one.seq - other.seq);
  const columns = ["When", "Turn", "Tokens", "What", ...layers.map(({ name }) => name)];
  return figure(title, picture, columns, rows.map((row) => row.cells), layers.length > 0 ? layerLegend(layers) : null);
}

/** The parts of each call's context, as far as they are known. @param {any[]} calls */
function contextLayers(calls) {
  const layers = Object.entries(PARTS).map(([kind, name]) => ({ kind, name, values: calls.map((call) => call.parts?.[kind] ?? 0) }));
  return layers.filter(({ values }) => values.some((value) => value > 0));
}

/** @param {any} figures */
function causeFigure(figures) {
  const bars = figures.by_cause.map((/** @type {any} */ item) => ({ name: item.cause, value: item.input + item.output, text: `${formatCount(item.input + item.output)} tokens, ${item.cost === null ? "price unknown" : formatCost(item.cost)}` }));
  return barChart(bars, "Tokens and cost by cause");
}

/** @param {string} key @param {number} count turns that have begun */
function timelineSection(key, count) {
  // A person looks at the newest ones.
  const turns = Array.from({ length: Math.min(count, MAX_TURNS) }, (_, index) => count - index);
  const place = h("div", { "aria-live": "polite" });
  const choice = h("select", { id: "turn", onchange: load }, turns.map((/** @type {number} */ turn) => h("option", { value: turn }, `Turn ${turn}`)));
  void load();
  return h("section", {}, h("h2", {}, "Where the time of a turn went"), h("div", { class: "search-row" }, h("label", { for: "turn" }, "Turn"), choice), place);

  async function load() {
    const turn = choice.value;
    try {
      const timeline = await api(sessionPath(key, `/turns/${turn}/timeline`));
      if (turn === choice.value) replaceChildren(place, timelineFigure(timeline));
    } catch (error) {
      replaceChildren(place, h("p", { role: "alert", class: "wrong" }, errorText(error)));
    }
  }
}

/** @param {any} timeline */
function timelineFigure(timeline) {
  const start = Date.parse(timeline.started_at);
  const end = start + timeline.took_ms;
  const spans = timeline.spans.map((/** @type {any} */ span) => {
    const from = Math.max(0, Date.parse(span.started_at) - start);
    const to = Math.max(from, (span.ended_at ? Date.parse(span.ended_at) : end) - start);
    return { name: span.name || span.kind, kind: span.kind, from, to, text: formatDuration(to - from) + (span.outcome && span.outcome !== "ok" ? `, ${span.outcome}` : "") };
  });
  const title = `Turn ${timeline.turn}: ${formatDuration(end - start)}`;
  const picture = spanChart({ title, spans, total: Math.max(1, end - start), formatX: (x) => formatClock(start + x) });
  const totals = timeline.totals.filter((/** @type {any} */ total) => total.ms > 0).map((/** @type {any} */ { kind, ms }) => ({ kind, name: `${KINDS[/** @type {keyof typeof KINDS} */ (kind)] ?? kind}: ${formatDuration(ms)}` }));
  const leftOut = timeline.left_out ? h("p", { class: "quiet" }, `${formatCount(timeline.left_out)} more are not shown.`) : null;
  const rows = spans.map((/** @type {any} */ span) => [span.name, span.kind, formatDuration(span.from), span.text]);
  return h("div", {}, figure(title, picture, ["What", "Kind", "Began after", "Took"], rows, layerLegend(totals.toReversed())), leftOut);
}
