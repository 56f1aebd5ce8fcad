// The head of a session: its name, what it is doing, how full its context is, what it has cost, and its settings.

import { act, api, can, sessionPath } from "./api.js";
import { errorText, h, replaceChildren } from "./dom.js";
import { formatCost, formatCount, formatTokens, sessionHref, showControls, showDirections } from "./format.js";
import { CAUSES, stateOf } from "./session-state.js";

const MODES = [
  ["ask", "Ask before edits and commands"],
  ["auto-edit", "Ask before commands"],
  ["auto", "Don't ask"],
  ["plan", "Only read and plan"],
];

/** The parts of a session, each a page of its own: the last part of its address, and its name. */
const PANELS = [
  ["", "Conversation"],
  ["figures", "Figures"],
  ["tasks", "Tasks"],
  ["agents", "Subagents"],
];

/**
 * @param {string} key
 * @param {string} panel the panel that is shown
 */
export function sessionHead(key, panel) {
  const base = sessionHref(key);
  /** @type {any} the last status */
  let known = {};
  const state = h("span", { class: "state" });
  const doing = h("span", { class: "doing", dir: "auto" });
  const facts = h("p", { class: "facts" });
  const parent = h("p", { class: "facts" });
  const message = h("p", { role: "alert", class: "wrong" });
  const feedback = h("p", { class: "quiet", role: "status" });
  const mode = h("select", { id: "mode", onchange: () => change({ mode: mode.value }) }, MODES.map(([value, text]) => h("option", { value }, text)));
  const model = h("input", { id: "model", list: "models", autocomplete: "off", spellcheck: "false", onchange: () => change({ model: model.value.trim() }), onfocus: loadModels });
  const models = h("datalist", { id: "models" });
  const name = h("input", { id: "session-name", autocomplete: "off", spellcheck: "false", maxlength: 512, value: key, onchange: () => rename(name.value.trim()) });
  const pinned = h("input", { id: "pinned", type: "checkbox", onchange: () => change({ pinned: pinned.checked }) });
  const orders = h(
    "div",
    { class: "orders" },
    orderButton("Compact", "/compact"),
    orderButton("Retry", "/retry"),
    orderButton("Continue", "/continue"),
    h("button", { type: "button", onclick: fork }, "Fork"),
    can("admin") ? h("button", { type: "button", onclick: remove }, "Delete") : null,
  );
  for (const field of [mode, model, name, pinned]) field.disabled = !can("admin");
  const settings = h(
    "details",
    { class: "settings", ontoggle: watchOutside, onkeydown: closeOnEscape },
    h("summary", {}, "Settings"),
    h(
      "div",
      { class: "card" },
      h("label", { for: "model" }, "Model"),
      model,
      models,
      h("label", { for: "mode" }, "Permission"),
      mode,
      h("label", { for: "session-name" }, "Key"),
      name,
      h("p", { class: "check" }, pinned, " ", h("label", { for: "pinned" }, "Pinned: retention never removes it")),
      can("admin") ? null : h("p", { class: "quiet" }, "Changing these needs a token of scope admin."),
      can("act") ? orders : null,
      message,
      feedback,
    ),
  );
  const panelLinks = PANELS.map(([name, text]) => h("a", { href: name ? `${base}/${name}` : base, "aria-current": name === panel ? "page" : null }, text));
  // Most sessions have no subagents.
  const agents = panelLinks.at(-1);
  agents.hidden = panel !== "agents";
  const element = h(
    "div",
    { class: "session-head" },
    h("div", { class: "title-row" }, h("h1", {}, showControls(key)), state),
    doing,
    facts,
    parent,
    h(
      "div",
      { class: "head-row" },
      h("nav", { "aria-label": "Of this session", class: "tabs" }, panelLinks),
      settings,
    ),
  );
  return { element, update };

  /** @param {any} status @param {boolean} [isReceiving] whether the text of an answer is arriving */
  function update(status, isReceiving = false) {
    const now = stateOf(status);
    state.className = `state state-${now.name}`;
    state.textContent = now.text;
    // The conversation itself says why its last turn failed.
    const reason = panel === "" && status.state !== "working" ? "" : now.reason;
    doing.textContent = showDirections(isReceiving && status.state === "working" ? "receiving an answer" : reason);
    const { tokens, window } = status.context;
    const share = window ? ` of ${formatTokens(window)}` : "";
    const cost = status.cost.cost === null ? "" : formatCost(status.cost.cost) + (status.cost.unpriced ? " and more" : "");
    const waiting = status.waiting ? `${formatCount(status.waiting)} waiting` : "";
    replaceChildren(
      facts,
      [status.model, [`turn ${formatCount(status.turns)}`, CAUSES[status.cause]].filter(Boolean).join(" ")].filter(Boolean).join(" · "),
      " · ",
      window ? h("meter", { min: 0, max: window, value: Math.min(tokens, window), high: window * 0.8, "aria-label": "Context in use" }) : null,
      window ? " " : null,
      [`${formatTokens(tokens)}${share} tokens`, cost, waiting].filter(Boolean).join(" · "),
    );
    replaceChildren(parent, status.parent ? ["Subagent of ", h("a", { href: sessionHref(status.parent.key) }, showControls(status.parent.key))] : null);
    const count = status.children.length;
    agents.hidden = count === 0 && panel !== "agents";
    agents.textContent = count ? `Subagents (${count})` : "Subagents";
    known = status;
    if (document.activeElement !== mode) mode.value = status.mode;
    if (document.activeElement !== model) model.value = status.model;
    pinned.checked = status.pinned;
  }

  /** While the settings are open, Escape and a click beside them close them. */
  function watchOutside() {
    const listen = settings.open ? document.addEventListener : document.removeEventListener;
    listen.call(document, "pointerdown", closeFromOutside);
    listen.call(document, "keydown", /** @type {any} */ (closeOnEscape));
  }

  /** @param {Event} event */
  function closeFromOutside(event) {
    if (!settings.isConnected || !settings.contains(/** @type {Node} */ (event.target))) close();
  }

  /** @param {KeyboardEvent} event */
  function closeOnEscape(event) {
    if (event.key !== "Escape") return;
    close();
    settings.querySelector("summary")?.focus();
  }

  function close() {
    settings.open = false;
    message.textContent = feedback.textContent = "";
    if (!settings.isConnected) watchOutside();
  }

  /** @param {any} body */
  async function change(body) {
    message.textContent = feedback.textContent = "";
    try {
      await api(sessionPath(key), { method: "PATCH", body });
      feedback.textContent = "Changed.";
    } catch (error) {
      message.textContent = errorText(error);
      // What was refused must not look as if it held.
      mode.value = known.mode;
      model.value = known.model;
      pinned.checked = known.pinned;
    }
  }

  /** @param {string} wanted */
  async function rename(wanted) {
    if (!wanted || wanted === key) return;
    message.textContent = feedback.textContent = "";
    try {
      const renamed = await api(sessionPath(key), { method: "PATCH", body: { key: wanted } });
      location.hash = sessionHref(renamed.key);
    } catch (error) {
      message.textContent = errorText(error);
      name.value = key;
    }
  }

  async function fork() {
    message.textContent = feedback.textContent = "";
    try {
      const made = await act(sessionPath(key, "/fork"));
      location.hash = sessionHref(made.key);
    } catch (error) {
      message.textContent = errorText(error);
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
    message.textContent = feedback.textContent = "";
    try {
      const { note } = await api(sessionPath(key, path), { method: "POST" });
      feedback.textContent = note ?? `${text}: asked.`;
    } catch (error) {
      message.textContent = errorText(error);
    }
  }

  async function remove() {
    message.textContent = "";
    try {
      const { items: agents } = await api(`/api/agents?session=${encodeURIComponent(key)}&limit=1000`);
      const along = agents.length === 0 ? "" : ` with ${agents.length === 1 ? "1 subagent" : `${formatCount(agents.length)} subagents`}`;
      if (!window.confirm(`Move ${key}${along} to the trash? Its turn ends. You can restore it.`)) return;
      await api(sessionPath(key), { method: "DELETE" });
      location.hash = "#/";
    } catch (error) {
      message.textContent = errorText(error);
    }
  }
}
