// All sessions: what each is doing, questions first.

import { Problem, api, can, sessionPath } from "./api.js";
import { emptyState, h, replaceChildren } from "./dom.js";
import { formatAgo, formatCost, formatTokens } from "./format.js";
import { notify, notifyQuestion } from "./notify.js";
import { answerButtons } from "./questions.js";
import { follow } from "./stream.js";

const STATES = {
  question: "waits for your answer",
  working: "working",
  interrupted: "interrupted",
  idle: "idle",
  failed: "failed",
  trashed: "in the trash",
};
/** The lists, in their order, with the states that belong to each. */
const GROUPS = [
  ["Waiting for you", ["question"]],
  ["At work", ["working", "interrupted"]],
  ["Quiet", ["idle", "failed", "trashed"]],
];
const TICK_MS = 30000;
const PAGE_LEN = 100;

/** @type {import("./app.js").View} */
export async function overviewView(place) {
  document.title = "Sessions · Longhaul";
  /** @type {Map<string, any>} sessions by id */
  const sessions = new Map();
  let query = "";
  /** @type {any[] | null} the sessions that a search found */
  let found = null;
  let isDrawn = false;

  const search = h("input", { type: "search", id: "search", placeholder: "Search", oninput: onSearch });
  /** @type {Map<string, ReturnType<typeof sessionRow>>} */
  const rows = new Map();
  const groups = GROUPS.map(([name, states]) => {
    const list = h("ul", { class: "sessions" });
    return { list, section: h("section", { hidden: true }, h("h2", {}, name), list), has: (/** @type {string} */ state) => states.includes(state) };
  });
  const nothing = h("div", {});
  const lists = h("div", { class: "session-lists" }, groups.map((group) => group.section), nothing);
  const status = h("p", { class: "quiet", role: "status" });
  place.append(
    h("div", { class: "title-row" }, h("h1", {}, "Sessions"), can("act") ? h("button", { type: "button", onclick: toggleForm, "aria-expanded": "false" }, "New session") : null),
    newSessionForm(),
    h("div", { class: "search-row" }, h("label", { for: "search", class: "unseen" }, "Search the sessions"), search),
    status,
    lists,
    h("p", {}, h("button", { type: "button", class: "plain", onclick: showTrash }, "Show the trash")),
  );

  follow({
    async resume() {
      await load();
      return "/api/events";
    },
    receive(message) {
      if (message.type !== "session") return;
      merge(message);
      draw();
    },
  });
  const ticking = setInterval(draw, TICK_MS);
  return () => clearInterval(ticking);

  async function load() {
    const list = await api(`/api/sessions?limit=${PAGE_LEN}`);
    sessions.clear();
    for (const item of list.items) sessions.set(item.id, item);
    isDrawn = true;
    draw();
  }

  /** @param {any} message */
  function merge(message) {
    const before = sessions.get(message.id);
    if (!message.state) {
      sessions.delete(message.id);
      return;
    }
    sessions.set(message.id, { ...before, ...message });
    if (message.question) notifyQuestion({ ...message.question, session: message.key });
    if (before?.state === "working" && message.state === "idle") {
      notify(`${message.key} is done`, before.title ?? "", `#/session/${encodeURIComponent(message.key)}`);
    }
    if (!before || before.state !== message.state || before.key !== message.key) void loadSummary(message);
  }

  /** Titles and times aren't part of the stream. @param {any} message */
  async function loadSummary(message) {
    const { key, id, title, work_dir, last_at, pinned, context } = await api(sessionPath(message.id)).catch(() => message);
    const current = sessions.get(id);
    if (!current) return;
    sessions.set(id, { ...current, key, title, work_dir, last_at, pinned, context });
    draw();
  }

  async function showTrash() {
    try {
      found = (await api(`/api/sessions?limit=${PAGE_LEN}&state=trashed`)).items;
      status.textContent = found?.length ? "In the trash. Open a session to restore it." : "The trash is empty.";
      draw();
    } catch (error) {
      status.textContent = String(/** @type {Error} */ (error).message);
    }
  }

  async function onSearch() {
    query = search.value.trim();
    if (!query) {
      found = null;
      status.textContent = "";
      draw();
      return;
    }
    const mine = query;
    await new Promise((resolve) => setTimeout(resolve, 200));
    if (mine !== query) return;
    try {
      const list = await api(`/api/sessions?limit=${PAGE_LEN}&query=${encodeURIComponent(mine)}`);
      if (mine !== query) return;
      found = list.items;
      status.textContent = list.items.length === 1 ? "1 session found" : `${list.items.length} sessions found`;
      draw();
    } catch (error) {
      status.textContent = error instanceof Problem ? error.message : String(error);
    }
  }

  function draw() {
    if (!isDrawn) return;
    const shown = found ? found.map((item) => sessions.get(item.id) ?? item) : [...sessions.values()].filter((session) => session.state !== "trashed");
    shown.sort((one, other) => String(other.last_at ?? "").localeCompare(String(one.last_at ?? "")));
    const focused = document.activeElement;
    for (const group of groups) {
      const members = shown.filter((session) => group.has(session.state));
      group.section.hidden = members.length === 0;
      arrange(group.list, members.map((session) => rowOf(session).element));
    }
    // An element that moves loses the keyboard.
    if (focused instanceof HTMLElement && focused !== document.activeElement && lists.contains(focused)) focused.focus({ preventScroll: true });
    for (const [id, row] of rows) if (!row.element.isConnected) rows.delete(id);
    replaceChildren(
      nothing,
      shown.length > 0
        ? null
        : found
          ? emptyState("Nothing found", "No session has these words.")
          : emptyState("No sessions yet", "Start one here, or with ", h("code", {}, "longhaul"), " in a project's folder."),
    );
  }

  /** The row of a session, with what is known about it now. @param {any} session */
  function rowOf(session) {
    const row = rows.get(session.id) ?? sessionRow();
    rows.set(session.id, row);
    row.update(session);
    return row;
  }

  /** @param {Event} event */
  function toggleForm(event) {
    const form = /** @type {HTMLElement} */ (place.querySelector(".new-session"));
    form.hidden = !form.hidden;
    /** @type {HTMLElement} */ (event.currentTarget).setAttribute("aria-expanded", String(!form.hidden));
    if (!form.hidden) form.querySelector("input")?.focus();
  }
}

/**
 * Puts elements into this order. What is in its place already is not touched, so that a click or the keyboard never loses its target.
 * @param {HTMLElement} parent
 * @param {HTMLElement[]} wanted
 */
function arrange(parent, wanted) {
  const kept = new Set(wanted);
  for (const child of [...parent.children]) if (!kept.has(/** @type {HTMLElement} */ (child))) child.remove();
  wanted.forEach((element, index) => {
    if (parent.children[index] !== element) parent.insertBefore(element, parent.children[index] ?? null);
  });
}

/** A session in a list. Its elements stay, and their text changes. */
function sessionRow() {
  const title = h("span", { class: "session-title", dir: "auto" });
  const key = h("span", { class: "session-key" });
  const link = h("a", { class: "session-link" }, title, key);
  const state = h("span", {});
  const doing = h("p", { class: "doing", dir: "auto" });
  const question = h("div", { class: "question-brief" });
  const facts = h("p", { class: "facts" });
  const element = h("li", {}, link, state, doing, question, facts);
  let asked = "";
  return { element, update };

  /** @param {any} session */
  function update(session) {
    element.className = `session ${session.state}`;
    link.href = `#/session/${encodeURIComponent(session.key)}`;
    setText(title, session.title ?? "(nothing said yet)");
    setText(key, session.key);
    state.className = `state state-${session.state}`;
    setText(state, STATES[/** @type {keyof typeof STATES} */ (session.state)] ?? session.state);
    setText(doing, session.state === "question" ? "" : (session.doing ?? ""));
    const context = session.context?.tokens ? `${formatTokens(session.context.tokens)} tokens` : "";
    const cost = session.cost_today ? `${formatCost(session.cost_today)} today` : "";
    setText(facts, [session.work_dir, context, cost, formatAgo(session.last_at)].filter(Boolean).join(" · "));
    const id = session.question?.id ?? "";
    if (id === asked) return;
    asked = id;
    replaceChildren(question, id ? [h("p", { dir: "auto", class: "question-text" }, session.question.text), answerButtons(session.key, session.question)] : null);
  }
}

/** @param {HTMLElement} element @param {string} text */
function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

/** The form that makes a session. */
function newSessionForm() {
  const key = h("input", { id: "new-key", autocomplete: "off", required: true, maxlength: 512 });
  const folder = h("input", { id: "new-folder", autocomplete: "off", placeholder: "/path/to/project" });
  const message = h("p", { role: "alert", class: "wrong" });
  return h(
    "form",
    { class: "new-session card", hidden: true, onsubmit: create },
    h("label", { for: "new-key" }, "Key"),
    key,
    h("label", { for: "new-folder" }, "Work folder"),
    folder,
    h("p", { class: "quiet" }, "Without a folder the session has no file tools and no commands."),
    message,
    h("button", { type: "submit", class: "primary" }, "Create"),
  );

  /** @param {Event} event */
  async function create(event) {
    event.preventDefault();
    try {
      const session = await api("/api/sessions", { body: { key: key.value.trim(), ...(folder.value.trim() ? { work_dir: folder.value.trim() } : {}) } });
      location.hash = `#/session/${encodeURIComponent(session.key)}`;
    } catch (error) {
      message.textContent = String(/** @type {Error} */ (error).message);
    }
  }
}
