// Charts as SVG, each with a table that says the same. Colours come from the style sheet, so that both themes work.

import { h, svg } from "./dom.js";

const MAX_WIDTH = 890;
const MIN_WIDTH = 280;
/** Below this width the texts of a row stand above its bar. */
const STACKED_WIDTH = 480;
const STACKED_ROW = 40;
const HEIGHT = 220;
const LEFT = 56;
const BOTTOM = 24;
const ROW = 28;
const NAME_WIDTH = 150;
/** Room for the text behind the longest bar. */
const TEXT_WIDTH = 240;
/** The same for a span. */
const SPAN_TEXT_WIDTH = 130;

/** What the card of a chart leaves at its sides, and the page at its own. */
const CARD_PADDING = 72;

/** The width of a chart: that of the page, so that its text has the size of other text on a phone, too. */
function chartWidth() {
  const room = document.querySelector(".view")?.clientWidth ?? MAX_WIDTH;
  return Math.max(MIN_WIDTH, Math.min(MAX_WIDTH, room - CARD_PADDING));
}

/**
 * A row of a narrow chart: a name, a text, and below them a bar.
 * @param {{width: number, y: number, name: string, text: string, from: number, length: number, kind: string}} row
 */
function stackedRow({ width, y, name, text, from, length, kind }) {
  return [
    svg("text", { x: 0, y: y + 13 }, shorten(name, 26)),
    svg("text", { x: width, y: y + 13, "text-anchor": "end" }, text),
    svg("rect", { x: from, y: y + 19, width: length, height: 10, rx: 3, class: `bar part-${kind}` }, svg("title", {}, `${name}: ${text}`)),
  ];
}

/**
 * A chart with its title, and its numbers as a table.
 * @param {string} title
 * @param {SVGElement} picture
 * @param {string[]} columns
 * @param {(string | number)[][]} rows
 * @param {HTMLElement | null} [legend]
 */
export function figure(title, picture, columns, rows, legend = null) {
  return h(
    "figure",
    {},
    h("figcaption", {}, title),
    h("div", { class: "picture", tabindex: "0", role: "group", "aria-label": `${title}, as a picture` }, picture),
    legend,
    h("details", {}, h("summary", {}, "As a table"), h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": `${title}, as a table` }, h("table", { class: "numbers" }, h("thead", {}, h("tr", {}, columns.map((text) => h("th", { scope: "col" }, text)))), h("tbody", {}, rows.map((row) => h("tr", {}, row.map((cell, index) => (index === 0 ? h("th", { scope: "row" }, cell) : h("td", {}, cell))))))))),
  );
}

/**
 * Horizontal bars. Their texts say what the table would.
 * @param {{name: string, value: number, text: string, kind?: string}[]} bars
 * @param {string} title
 */
export function barChart(bars, title) {
  return figure(title, barPicture(bars, title), ["Name", "Amount"], bars.map((bar) => [bar.name, bar.text]));
}

/**
 * The same without a table, for a page that has one.
 * @param {{name: string, value: number, text: string, kind?: string}[]} bars
 * @param {string} title
 */
export function barPicture(bars, title) {
  const most = Math.max(1, ...bars.map((bar) => bar.value));
  const width = chartWidth();
  const isStacked = width < STACKED_WIDTH;
  const row = isStacked ? STACKED_ROW : ROW;
  const height = Math.max(row, bars.length * row);
  const room = isStacked ? width : width - NAME_WIDTH - TEXT_WIDTH;
  const rows = bars.flatMap((bar, index) => {
    const y = index * row;
    const length = Math.max(2, (bar.value / most) * room);
    if (isStacked) return stackedRow({ width, y, name: bar.name, text: bar.text, from: 0, length, kind: bar.kind ?? "plain" });
    return [
      svg("text", { x: NAME_WIDTH - 8, y: y + 18, "text-anchor": "end" }, shorten(bar.name, 20)),
      svg("rect", { x: NAME_WIDTH, y: y + 4, width: length, height: ROW - 8, rx: 3, class: `bar part-${bar.kind ?? "plain"}` }),
      svg("text", { x: NAME_WIDTH + length + 8, y: y + 18 }, bar.text),
    ];
  });
  return svg("svg", { viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": title }, ...rows);
}

/**
 * The names of layers beside their colours.
 * @param {{name: string, kind: string}[]} layers
 */
export function layerLegend(layers) {
  return h("ul", { class: "legend" }, layers.map(({ name, kind }) => h("li", {}, h("span", { class: `swatch part-${kind}`, "aria-hidden": "true" }), name)).reverse());
}

/**
 * A line over a sequence of points, with an optional limit and marks. Layers say what the points consist of, from the bottom up.
 * @param {{title: string, points: {x: number, y: number}[], layers?: {name: string, kind: string, values: number[]}[], limit?: number | null, marks?: {x: number, text: string}[], formatY: (y: number) => string, formatX: (x: number) => string}} chart
 */
export function lineChart({ title, points, layers = [], limit = null, marks = [], formatY, formatX }) {
  const width = chartWidth();
  const xs = points.map((point) => point.x);
  const [first, last] = [Math.min(...xs), Math.max(...xs)];
  const top = Math.max(1, limit ?? 0, ...points.map((point) => point.y)) * 1.05;
  const x = (/** @type {number} */ value) => LEFT + ((value - first) / Math.max(1, last - first)) * (width - LEFT - 12);
  const y = (/** @type {number} */ value) => HEIGHT - BOTTOM - (value / top) * (HEIGHT - BOTTOM - 12);
  const draw = (/** @type {{x: number, y: number}[]} */ line) => line.map((point, index) => `${index ? "L" : "M"}${x(point.x).toFixed(1)} ${y(point.y).toFixed(1)}`).join("");
  const path = draw(points);
  let floor = points.map((point) => ({ x: point.x, y: 0 }));
  const areas = layers.map(({ name, kind, values }) => {
    const roof = floor.map((point, index) => ({ x: point.x, y: point.y + (values[index] ?? 0) }));
    const d = `${draw([...roof, ...floor.toReversed()])}Z`;
    floor = roof;
    return svg("path", { d, class: `part part-${kind}` }, svg("title", {}, name));
  });
  const grid = [0, 0.5, 1].flatMap((share) => {
    const value = (top / 1.05) * share;
    return [
      svg("line", { x1: LEFT, x2: width - 12, y1: y(value), y2: y(value), class: "grid" }),
      svg("text", { x: LEFT - 6, y: y(value) + 4, "text-anchor": "end" }, formatY(value)),
    ];
  });
  const base = HEIGHT - BOTTOM;
  return svg(
    "svg",
    { viewBox: `0 0 ${width} ${HEIGHT}`, width, height: HEIGHT, role: "img", "aria-label": title },
    ...grid,
    ...(areas.length > 0 ? areas : [svg("path", { d: `${path}L${x(last).toFixed(1)} ${base}L${x(first).toFixed(1)} ${base}Z`, class: "area" })]),
    svg("path", { d: path, class: "line" }),
    limit ? svg("line", { x1: LEFT, x2: width - 12, y1: y(limit), y2: y(limit), class: "limit" }) : null,
    ...marks.map((mark) => svg("line", { x1: x(mark.x), x2: x(mark.x), y1: 12, y2: base, class: "mark" }, svg("title", {}, mark.text))),
    svg("text", { x: LEFT, y: HEIGHT - 6 }, formatX(first)),
    svg("text", { x: width - 12, y: HEIGHT - 6, "text-anchor": "end" }, formatX(last)),
  );
}

/**
 * Spans on one axis of time, a row for each.
 * @param {{title: string, spans: {name: string, kind: string, from: number, to: number, text: string}[], total: number, formatX: (x: number) => string}} chart
 */
export function spanChart({ title, spans, total, formatX }) {
  const width = chartWidth();
  const isStacked = width < STACKED_WIDTH;
  const row = isStacked ? STACKED_ROW : ROW;
  const left = isStacked ? 0 : NAME_WIDTH;
  const height = spans.length * row + BOTTOM;
  const room = width - left - (isStacked ? 10 : SPAN_TEXT_WIDTH);
  const x = (/** @type {number} */ value) => left + (value / Math.max(1, total)) * room;
  const rows = spans.flatMap((span, index) => {
    const y = index * row;
    const from = x(span.from);
    const length = Math.max(2, x(span.to) - from);
    if (isStacked) return stackedRow({ width, y, name: span.name, text: span.text, from, length, kind: span.kind });
    return [
      svg("text", { x: left - 8, y: y + 18, "text-anchor": "end" }, shorten(span.name, 20)),
      svg("rect", { x: from, y: y + 5, width: length, height: ROW - 10, rx: 3, class: `bar part-${span.kind}` }, svg("title", {}, `${span.name}: ${span.text}`)),
      svg("text", { x: from + length + 6, y: y + 18 }, span.text),
    ];
  });
  return svg(
    "svg",
    { viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": title },
    svg("line", { x1: left, x2: left + room, y1: height - BOTTOM + 4, y2: height - BOTTOM + 4, class: "grid" }),
    ...rows,
    svg("text", { x: left, y: height - 4 }, formatX(0)),
    svg("text", { x: left + room, y: height - 4, "text-anchor": "end" }, formatX(total)),
  );
}

/** @param {string} text @param {number} length */
function shorten(text, length) {
  return text.length > length ? `${text.slice(0, length - 1)}…` : text;
}
