// All sessions: what each is doing, questions first.

import { api, can } from "./api.js";
import { emptyState, errorText, h, replaceChildren } from "./dom.js";
import { formatAgo, formatCost, formatTokens, formatUnindexed, sessionHref, showControls, showDirections } from "./format.js";
import { notify, notifyQuestion } from "./notify.js";
import { briefAnswers, questionBody, settleButtons } from "./questions.js";
import { CAUSES, stateOf } from "./session-state.js";
import { singleFlight } from "./single-flight.js";
import { follow } from "./stream.js";

/** The lists, in their order, with the states that belong to each. What is in no list is quiet. */
const GROUPS = [
  ["Waiting for you", ["question"]],
  ["At work", ["working", "interrupted"]],
  ["Failed", ["failed"]],
  ["Quiet", null],
];
const TICK_MS = 30000;
/** Sessions that one request loads. */
const LOAD_LEN = 500;
/** Sessions whose titles and times are loaded again after a change: the newest. */
const NEWEST_LEN = 50;
const NEWEST_DELAY_MS = 250;
/** Sessions that are shown at first, and that each "Show more" adds. */
const SHOWN_LEN = 100;

/** @type {import("./app.js").View} */
export async function overviewView(place) {
  document.title = "Sessions · Longhaul";
  /** @type {Map<string, any>} sessions by id */
  const sessions = new Map();
  let query = "";
  /** @type {any[] | null} the sessions that a search found */
  let found = null;
  let shownLen = SHOWN_LEN;
  let isOpen = true;
  /** Counts loads of the list, so that a new one ends the one before. */
  let loads = 0;
  let isLoaded = false;
  /** Sessions that the stream has told of since the list was asked for. @type {Set<string>} */
  let told = new Set();

  let newestTimer = 0;
  const loadNewest = singleFlight(fetchNewest);

  const search = h("input", { type: "search", id: "search", placeholder: "Search", oninput: onSearch });
  /** @type {Map<string, ReturnType<typeof sessionRow>>} */
  const rows = new Map();
  const groups = GROUPS.map(([name, states]) => {
    const list = h("ul", { class: "sessions" });
    return { list, section: h("section", { hidden: true }, h("h2", {}, name), list), states };
  });
  const nothing = h("div", {});
  const more = h("button", { type: "button", hidden: true, onclick: showMore }, "Show more");
  const lists = h("div", { class: "session-lists" }, groups.map((group) => group.section), more, nothing);
  const status = h("p", { class: "quiet", role: "status" });
  place.append(
    h("div", { class: "title-row" }, h("h1", {}, "Sessions"), can("act") ? h("button", { type: "button", onclick: toggleForm, "aria-expanded": "false" }, "New session") : null),
    newSessionForm(),
    h("div", { class: "search-row" }, h("label", { for: "search", class: "unseen" }, "Search the sessions"), search),
    status,
    lists,
    h("p", { class: "quiet" }, h("a", { href: "#/trash" }, "Trash")),
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
  return () => {
    isOpen = false;
    clearInterval(ticking);
    clearTimeout(newestTimer);
  };

  /** Loads the first page of the list, and the others behind it. The stream does not wait for those. */
  async function load() {
    const mine = (loads += 1);
    told = new Set();
    isLoaded = false;
    const listed = new Set();
    const first = await loadPage("", listed);
    draw();
    void loadRest(first.next);

    /** @param {string | null} next */
    async function loadRest(next) {
      while (next && isOpen && mine === loads) next = (await loadPage(next, listed).catch(() => ({ next: null }))).next;
      if (!isOpen || mine !== loads) return;
      isLoaded = true;
      for (const id of sessions.keys()) if (!listed.has(id) && !told.has(id)) sessions.delete(id);
      draw();
    }
  }

  /** @param {string} after @param {Set<string>} listed */
  async function loadPage(after, listed) {
    const page = await api(`/api/sessions?order=newest&limit=${LOAD_LEN}${after ? `&after=${encodeURIComponent(after)}` : ""}`);
    for (const item of page.items) {
      listed.add(item.id);
      // The stream knows the state better than a list that was asked for before, and it alone knows questions and costs.
      const { question, cost_today, ...known } = sessions.get(item.id) ?? {};
      sessions.set(item.id, { ...item, ...(told.has(item.id) ? known : {}), question, cost_today });
    }
    return page;
  }

  /** @param {any} message */
  function merge(message) {
    const before = sessions.get(message.id);
    told.add(message.id);
    if (!message.state) {
      sessions.delete(message.id);
      return;
    }
    sessions.set(message.id, { ...before, ...message });
    if (message.question) notifyQuestion({ ...message.question, session: message.key });
    // The end of a subagent is its parent's news.
    if (!message.parent && before?.state === "working" && ["idle", "failed"].includes(message.state)) {
      notify(`${message.key} ${message.state === "failed" ? "failed" : "is done"}`, message.failure ?? before.title ?? "", sessionHref(message.key));
    }
    // A session that the stream tells of before the list does will be in the list.
    const isChanged = before ? before.state !== message.state : isLoaded;
    if (!isChanged) return;
    clearTimeout(newestTimer);
    newestTimer = window.setTimeout(() => void loadNewest(), NEWEST_DELAY_MS);
  }

  /** Titles and times aren't part of the stream. */
  async function fetchNewest() {
    const page = await api(`/api/sessions?order=newest&limit=${NEWEST_LEN}`).catch(() => ({ items: [] }));
    for (const { id, title, work_dir, last_at, pinned } of page.items) {
      const known = sessions.get(id);
      if (known) sessions.set(id, { ...known, title, work_dir, last_at, pinned });
    }
    draw();
  }

  async function onSearch() {
    query = search.value.trim();
    shownLen = SHOWN_LEN;
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
      const list = await api(`/api/sessions?order=newest&limit=${LOAD_LEN}&query=${encodeURIComponent(mine)}`);
      if (mine !== query) return;
      found = list.items;
      status.textContent = (list.items.length === 1 ? "1 session found" : `${list.items.length}${list.next ? " and more" : ""} sessions found`) + formatUnindexed(list.unindexed);
      draw();
    } catch (error) {
      status.textContent = errorText(error);
    }
  }

  function showMore() {
    shownLen += SHOWN_LEN;
    draw();
  }

  function draw() {
    if (loads === 0) return;
    const all = found ? found.map((item) => ({ ...(sessions.get(item.id) ?? item), subagents: [] })) : withSubagents([...sessions.values()].filter((session) => session.state !== "trashed"));
    const rankOf = (/** @type {any} */ session) => groups.findIndex((group) => !group.states || group.states.includes(session.state));
    // A session whose subagents work is at work, too.
    const rank = (/** @type {any} */ session) => Math.min(rankOf(session), ...session.subagents.map(rankOf).filter((/** @type {number} */ one) => one < 2));
    // The oldest question is first, so that a new one moves no other.
    const asked = (/** @type {any} */ session) => (session.state === "question" && session.question?.id) || "";
    all.sort((one, other) => rank(one) - rank(other) || asked(one).localeCompare(asked(other)) || Number(other.pinned) - Number(one.pinned) || String(other.last_at ?? "").localeCompare(String(one.last_at ?? "")));
    const waiting = all.filter((session) => rank(session) === 0).length;
    document.title = `${waiting ? `(${waiting}) ` : ""}Sessions · Longhaul`;
    const shown = all.slice(0, shownLen);
    more.hidden = shown.length === all.length;
    const focused = document.activeElement;
    groups.forEach((group, index) => {
      const members = shown.filter((session) => rank(session) === index);
      group.section.hidden = members.length === 0;
      const isMoved = arrange(group.list, members.map((session) => rowOf(session).element));
      // A click that was meant for another question must not count.
      if (isMoved) settleButtons(lists);
    });
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
 * Sessions with their subagents, and without rows for these. One whose parent isn't known stands for itself.
 * @param {any[]} sessions
 */
function withSubagents(sessions) {
  const rows = new Map(sessions.map((session) => [session.id, { ...session, subagents: [] }]));
  for (const session of sessions) {
    let top = session;
    while (top.parent && rows.has(top.parent.id)) top = rows.get(top.parent.id);
    if (top.id === session.id) continue;
    rows.get(top.id).subagents.push(session);
  }
  return [...rows.values()].filter((session) => !rows.has(session.parent?.id));
}

/**
 * Puts elements into this order. What is in its place already is not touched, so that a click or the keyboard never loses its target.
 * @param {HTMLElement} parent
 * @param {HTMLElement[]} wanted
 * @returns {boolean} whether an element that stays has another place now
 */
function arrange(parent, wanted) {
  const before = [...parent.children];
  const kept = new Set(wanted);
  for (const child of before) if (!kept.has(/** @type {HTMLElement} */ (child))) child.remove();
  wanted.forEach((element, index) => {
    if (parent.children[index] !== element) parent.insertBefore(element, parent.children[index] ?? null);
  });
  return before.some((child, index) => child.isConnected && parent.children[index] !== child);
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
  const count = h("summary", {});
  const list = h("ul", { class: "plain-list" });
  const subagents = h("details", { class: "subagents" }, count, list);
  const element = h("li", {}, link, state, doing, question, facts, subagents);
  let listed = "";
  let asked = "";
  return { element, update };

  /** @param {any} session */
  function update(session) {
    const own = stateOf(session);
    const running = session.subagents.filter((/** @type {any} */ one) => one.state === "working").length;
    const now = running > 0 && own.name === "idle" ? { ...own, name: "working", text: "subagents at work" } : own;
    element.className = `session ${now.name}`;
    link.href = sessionHref(session.key);
    setText(title, session.title ?? "(nothing said yet)");
    setText(key, showControls(session.key));
    state.className = `state state-${now.name}`;
    setText(state, now.text);
    setText(doing, now.reason);
    doing.classList.toggle("wrong", now.name === "failed");
    const { tokens = 0, window = null } = session.context ?? {};
    const context = tokens ? `${formatTokens(tokens)}${window ? ` of ${formatTokens(window)}` : ""} tokens` : "";
    const cost = session.cost_today ? `${formatCost(session.cost_today)} today` : "";
    setText(facts, [session.pinned ? "pinned" : "", session.parent ? `subagent of ${showControls(session.parent.key)}` : "", CAUSES[session.cause], session.work_dir, context, cost, formatAgo(session.last_at)].filter(Boolean).join(" · "));
    showSubagents(session.subagents, running);
    const open = session.state === "question" ? session.question : null;
    const id = open ? `${open.id} ${session.key}` : "";
    if (id === asked) return;
    asked = id;
    replaceChildren(question, open ? [questionBody({ text: open.text }), briefAnswers(session, open)] : null);
  }

  /** @param {any[]} members @param {number} running */
  function showSubagents(members, running) {
    subagents.hidden = members.length === 0;
    const told = members.toSorted((one, other) => one.id.localeCompare(other.id)).map(({ key, title, ...session }) => ({ key, title, now: stateOf(session) }));
    // A link that has the keyboard stays while nothing changes.
    if (listed === JSON.stringify(told)) return;
    listed = JSON.stringify(told);
    setText(count, [told.length === 1 ? "1 subagent" : `${told.length} subagents`, running ? `${running} at work` : ""].filter(Boolean).join(", "));
    replaceChildren(list, told.map(({ key, title, now }) => h("li", {}, h("a", { href: sessionHref(key), dir: "auto" }, title ?? showControls(key)), " ", h("span", { class: `state state-${now.name}` }, now.text))));
  }
}

/** @param {HTMLElement} element @param {string} text */
function setText(element, text) {
  const shown = showDirections(text);
  if (element.textContent !== shown) element.textContent = shown;
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
      location.hash = sessionHref(session.key);
    } catch (error) {
      message.textContent = errorText(error);
    }
  }
}
