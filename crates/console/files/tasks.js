// Background commands: a card for one that is running, and lists of all.

import { api, can, request } from "./api.js";
import { announce, emptyState, errorText, h, replaceChildren } from "./dom.js";
import { formatAgo, formatCount, formatDuration, sessionHref, showControls } from "./format.js";
import { REFRESH_MS, keepFresh, syncItems } from "./live-list.js";

export const STATUS = { running: "running", completed: "completed", failed: "failed", killed: "killed", timed_out: "timed out", lost: "lost" };
const TAIL_BYTES = 16 * 1024;
/** Tasks that a list looks at: the newest. A task that has run for longer than that many is not in it. */
const LOAD_LEN = 1000;
/** Tasks that a list shows. */
const MAX_SHOWN = 200;

/**
 * A running task: its description, its newest output if it is opened, and `Kill`. That of a subagent leads to its conversation.
 * @param {{id: string, description: string, session?: string}} task
 * @param {string} session
 */
export function taskCard(task, session) {
  const name = task.description || `Task ${task.id}`;
  const output = outputFold(task.id, session, true);
  return h("div", { class: "card task", "data-task": task.id, role: "group", "aria-label": `Task ${task.description || task.id}` }, h("div", { class: "task-row" }, h("span", { class: "spinner", "aria-hidden": "true" }), h("span", { dir: "auto" }, task.session ? h("a", { href: sessionHref(task.session) }, name) : name), killButton(task.id, session, () => {}, task.session && "Stop")), output);
}

/** The path of a task. The session finds one that has expired. @param {string} id @param {string} session @param {string} [rest] @param {string} [query] */
function taskPath(id, session, rest = "", query = "") {
  return `/api/tasks/${encodeURIComponent(id)}${rest}?session=${encodeURIComponent(session)}${query}`;
}

/** @param {string} id @param {string} session @param {() => void} killed @param {string} [text] */
export function killButton(id, session, killed, text = "Kill") {
  if (!can("act")) return null;
  const message = h("span", { role: "alert", class: "wrong" });
  const button = h("button", { type: "button", onclick: kill }, text);
  return h("span", { class: "kill" }, button, message);

  async function kill() {
    button.disabled = true;
    try {
      await api(taskPath(id, session, "/kill"), { method: "POST" });
      announce(text === "Kill" ? "Killed" : "Stopped");
      killed();
    } catch (error) {
      message.textContent = errorText(error);
      button.disabled = false;
    }
  }
}

/**
 * What a task has printed last, loaded when the fold is opened.
 * @param {string} id
 * @param {string} session
 * @param {boolean} isRunning
 */
function outputFold(id, session, isRunning) {
  const place = h("pre", { class: "output", tabindex: "0" });
  let timer = 0;
  /** Counts openings, so that one that was closed and opened again loads once. */
  let openings = 0;
  const fold = h("details", { ontoggle: onToggle }, h("summary", {}, "Output"), place);
  return fold;

  function onToggle() {
    clearTimeout(timer);
    openings += 1;
    if (fold.open) void load(openings);
  }

  /** @param {number} mine */
  async function load(mine) {
    const isAtEnd = place.scrollHeight - place.scrollTop - place.clientHeight < 20;
    let text;
    try {
      const task = await api(taskPath(id, session));
      const printed = task.printed ?? 0;
      const offset = Math.max(0, printed - TAIL_BYTES);
      const answer = await request(taskPath(id, session, "/output", `&offset=${offset}&limit=${TAIL_BYTES}`));
      const missing = offset > 0 ? `[${formatCount(offset)} bytes before]\n` : "";
      text = missing + (await answer.text()) || "(nothing printed yet)";
      isRunning = task.status === "running";
    } catch (error) {
      text = errorText(error);
    }
    if (mine !== openings) return;
    replaceChildren(place, text);
    if (isAtEnd) place.scrollTop = place.scrollHeight;
    if (isRunning && fold.open && fold.isConnected) timer = window.setTimeout(() => void load(mine), REFRESH_MS);
  }
}

/** @type {import("./app.js").View} */
export async function tasksView(place) {
  document.title = "Tasks · Longhaul";
  place.append(h("h1", {}, "Tasks"));
  return taskList(place, "");
}

/** The tasks of one session. @param {HTMLElement} place @param {string} session */
export async function tasksPanel(place, session) {
  place.append(h("h2", {}, "Tasks"));
  return taskList(place, session);
}

/** A list that is kept up to date. Returns what ends that. @param {HTMLElement} place @param {string} session */
async function taskList(place, session) {
  const list = h("ul", { class: "tasks" });
  const nothing = h("div", {});
  /** @type {Map<string, ReturnType<typeof taskItem>>} */
  const items = new Map();
  place.append(list, nothing);
  return keepFresh(refresh);

  async function refresh() {
    const tasks = await loadTasks(session);
    replaceChildren(nothing, tasks.length === 0 ? emptyState("No tasks", "Commands that run in the background appear here.") : null);
    syncItems(list, items, tasks, (task) => task.task_id, (task) => taskItem(task, () => void refresh().catch(() => {})));
  }
}

/** The newest tasks, running ones first. @param {string} session @returns {Promise<any[]>} */
async function loadTasks(session) {
  const { items } = await api(`/api/tasks?order=newest&limit=${LOAD_LEN}${session ? `&session=${encodeURIComponent(session)}` : ""}`);
  const isRunning = (/** @type {any} */ task) => task.status === "running";
  return [...items.filter(isRunning), ...items.filter((/** @type {any} */ task) => !isRunning(task))].slice(0, MAX_SHOWN);
}

/** @param {any} task @param {() => void} killed */
function taskItem(task, killed) {
  const state = h("span", {});
  const facts = h("span", {});
  const message = h("p", { class: "quiet" });
  const kill = killButton(task.task_id, task.session, killed);
  const element = h(
    "li",
    { class: "card task" },
    h("div", { class: "task-row" }, state, h("strong", { dir: "auto" }, task.description || task.command), kill),
    h("pre", { class: "command", tabindex: "0" }, task.command),
    h("p", { class: "facts" }, h("a", { href: sessionHref(task.session) }, showControls(task.session)), " · ", facts),
    message,
    outputFold(task.task_id, task.session, task.status === "running"),
  );
  return { element, update };

  /** @param {any} now */
  function update(now) {
    state.className = `state state-${now.status}`;
    state.textContent = STATUS[/** @type {keyof typeof STATUS} */ (now.status)] ?? now.status;
    if (kill) kill.hidden = now.status !== "running";
    const known = [
      now.exit_code === null || now.exit_code === undefined ? "" : `exit code ${now.exit_code}`,
      now.duration_ms ? formatDuration(now.duration_ms) : "",
      formatAgo(now.started_at),
    ];
    facts.textContent = known.filter(Boolean).join(" · ");
    replaceChildren(message, now.message ?? "");
  }
}
