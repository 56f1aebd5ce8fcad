// What was spent, and on what.

import { api, serverNow } from "./api.js";
import { barPicture } from "./charts.js";
import { errorText, h, replaceChildren } from "./dom.js";
import { formatCost, formatCount } from "./format.js";

const GROUPS = [["cause", "Cause"], ["session", "Session"], ["model", "Model"], ["day", "Day"]];
const SPANS = [["", "All time"], ["1d", "Last day"], ["7d", "Last 7 days"], ["30d", "Last 30 days"]];
const DAY_MS = 24 * 60 * 60 * 1000;

/** @type {import("./app.js").View} */
export async function statementView(place) {
  document.title = "Statement · Longhaul";
  const by = h("select", { id: "by", onchange: load }, GROUPS.map(([value, text]) => h("option", { value }, text)));
  const since = h("select", { id: "since", onchange: load }, SPANS.map(([value, text]) => h("option", { value }, text)));
  const body = h("div", { "aria-live": "polite" });
  place.append(h("h1", {}, "Statement"), h("div", { class: "search-row" }, h("label", { for: "by" }, "By"), by, h("label", { for: "since" }, "Since"), since), body);
  /** Counts loads, so that a late answer does not replace a newer one. */
  let loads = 0;
  await load();

  async function load() {
    const mine = (loads += 1);
    try {
      const statement = await loadStatement();
      if (mine === loads) draw(statement);
    } catch (error) {
      if (mine === loads) replaceChildren(body, h("p", { role: "alert", class: "wrong" }, errorText(error)));
    }
  }

  async function loadStatement() {
    const days = parseInt(since.value, 10);
    const start = days ? `&since=${new Date(serverNow() - days * DAY_MS).toISOString().slice(0, 10)}` : "";
    return api(`/api/statement?by=${by.value}&order=newest&limit=1000${start}`);
  }

  /** @param {any} statement */
  function draw(statement) {
    const name = GROUPS.find(([value]) => value === by.value)?.[1] ?? "";
    const title = `Tokens by ${name.toLowerCase()}`;
    const shown = statement.items.slice(0, 12);
    replaceChildren(
      body,
      h("p", { class: "total" }, totalText(statement.total)),
      h("figure", {}, h("figcaption", {}, title), h("div", { class: "picture", tabindex: "0", role: "group", "aria-label": `${title}, as a picture` }, barPicture(shown.map((/** @type {any} */ item) => ({ name: item.name, value: item.input + item.output, text: `${formatCount(item.input + item.output)} tokens, ${item.cost === null ? "price unknown" : formatCost(item.cost)}` })), title))),
      h(
        "div",
        { class: "scroll", tabindex: "0", role: "region", "aria-label": "Statement as a table" },
        h(
          "table",
          { class: "numbers" },
          h("thead", {}, h("tr", {}, [name, "Calls", "Input", "Cached", "Output", "Cost"].map((text) => h("th", { scope: "col" }, text)))),
          h("tbody", {}, [...statement.items, statement.total].map((/** @type {any} */ item) => h("tr", {}, h("th", { scope: "row" }, item.name), [item.calls, item.input, item.cached, item.output].map((number) => h("td", {}, formatCount(number))), h("td", {}, formatCost(item.cost))))),
        ),
      ),
    );
  }
}

/** What was spent in all. @param {any} total */
function totalText({ cost, calls, unpriced }) {
  const count = `${formatCount(calls)} model ${calls === 1 ? "call" : "calls"}`;
  if (calls === 0) return "No model calls.";
  if (cost === null) return `${count}, at a price that is not known.`;
  return [h("strong", {}, formatCost(cost)), ` for ${count}`, unpriced ? `; the price of ${formatCount(unpriced)} of them is not known` : "", "."];
}
