// The head of a session: its name, what it is doing, how full its context is, what it has cost, and its settings.

import { api, can, sessionPath } from "./api.js";
import { announce, h, replaceChildren } from "./dom.js";
import { formatCost, formatCount, formatTokens } from "./format.js";

const MODES = [
  ["ask", "Ask before edits and commands"],
  ["auto-edit", "Ask before commands"],
  ["auto", "Don't ask"],
  ["plan", "Only read and plan"],
];
const STATES = { idle: "Idle", working: "Working", question: "Waiting for your answer", interrupted: "Interrupted", trashed: "In the trash" };

/**
 * @param {string} key
 * @param {string} panel the panel that is shown
 */
export function sessionHead(key, panel) {
  const base = `#/session/${encodeURIComponent(key)}`;
  const state = h("span", { class: "state" });
  const doing = h("span", { class: "doing", dir: "auto" });
  const facts = h("p", { class: "facts" });
  const message = h("p", { role: "alert", class: "wrong" });
  const mode = h("select", { id: "mode", onchange: () => change({ mode: mode.value }) }, MODES.map(([value, text]) => h("option", { value }, text)));
  const model = h("input", { id: "model", list: "models", autocomplete: "off", spellcheck: "false", onchange: () => change({ model: model.value.trim() }), onfocus: loadModels });
  const models = h("datalist", { id: "models" });
  const orders = h(
    "div",
    { class: "orders" },
    orderButton("Compact", "/compact"),
    orderButton("Retry", "/retry"),
    orderButton("Continue", "/continue"),
    can("admin") ? h("button", { type: "button", onclick: remove }, "Delete") : null,
  );
  mode.disabled = !can("admin");
  model.disabled = !can("admin");
  const settings = h(
    "details",
    { class: "settings", onkeydown: closeOnEscape },
    h("summary", {}, "Settings"),
    h("div", { class: "card" }, h("label", { for: "model" }, "Model"), model, models, h("label", { for: "mode" }, "Permission"), mode, can("act") ? orders : null, message),
  );
  const link = (/** @type {string} */ name, /** @type {string} */ text) => h("a", { href: name ? `${base}/${name}` : base, "aria-current": name === panel ? "page" : null }, text);
  const element = h(
    "div",
    { class: "session-head" },
    h("div", { class: "title-row" }, h("h1", {}, key), state),
    doing,
    facts,
    h(
      "div",
      { class: "head-row" },
      h("nav", { "aria-label": "Of this session", class: "tabs" }, link("", "Conversation"), link("figures", "Figures"), link("tasks", "Tasks")),
      settings,
    ),
  );
  return { element, update };

  /** @param {any} status */
  function update(status) {
    state.className = `state state-${status.state}`;
    state.textContent = STATES[/** @type {keyof typeof STATES} */ (status.state)] ?? status.state;
    doing.textContent = status.doing ?? "";
    const { tokens, window } = status.context;
    const share = window ? ` of ${formatTokens(window)}` : "";
    const cost = status.cost.cost === null ? "" : formatCost(status.cost.cost) + (status.cost.unpriced ? " and more" : "");
    const waiting = status.waiting ? `${formatCount(status.waiting)} waiting` : "";
    replaceChildren(
      facts,
      [status.model, `turn ${formatCount(status.turns)}`].filter(Boolean).join(" · "),
      " · ",
      window ? h("meter", { min: 0, max: window, value: Math.min(tokens, window), high: window * 0.8, "aria-label": "Context in use" }) : null,
      window ? " " : null,
      [`${formatTokens(tokens)}${share} tokens`, cost, waiting].filter(Boolean).join(" · "),
    );
    if (document.activeElement !== mode) mode.value = status.mode;
    if (document.activeElement !== model) model.value = status.model;
  }

  /** @param {KeyboardEvent} event */
  function closeOnEscape(event) {
    if (event.key !== "Escape") return;
    settings.open = false;
    settings.querySelector("summary")?.focus();
  }

  /** @param {any} body */
  async function change(body) {
    message.textContent = "";
    try {
      await api(sessionPath(key), { method: "PATCH", body });
      announce("Changed");
    } catch (error) {
      message.textContent = String(/** @type {Error} */ (error).message);
    }
  }

  async function loadModels() {
    if (models.childElementCount > 0) return;
    const list = await api("/api/models?limit=100").catch(() => ({ items: [] }));
    const usable = list.items.filter((/** @type {any} */ provider) => provider.key_is_set || provider.local);
    replaceChildren(models, usable.filter((/** @type {any} */ provider) => provider.default_model).map((/** @type {any} */ provider) => h("option", { value: `${provider.name}/${provider.default_model}` })));
  }

  /** @param {string} text @param {string} path */
  function orderButton(text, path) {
    return h("button", { type: "button", onclick: () => order(path, text) }, text);
  }

  /** @param {string} path @param {string} text */
  async function order(path, text) {
    message.textContent = "";
    try {
      await api(sessionPath(key, path), { method: "POST" });
      announce(`${text}: asked`);
    } catch (error) {
      message.textContent = String(/** @type {Error} */ (error).message);
    }
  }

  async function remove() {
    if (!window.confirm(`Move ${key} to the trash? Its turn ends. You can restore it.`)) return;
    try {
      await api(sessionPath(key), { method: "DELETE" });
      location.hash = "#/";
    } catch (error) {
      message.textContent = String(/** @type {Error} */ (error).message);
    }
  }
}
