// Background commands: a card for one that is running, and lists of all.

import { api, can, request } from "./api.js";
import { announce, emptyState, h, replaceChildren } from "./dom.js";
import { formatAgo, formatCount, formatDuration } from "./format.js";

const STATUS = { running: "running", completed: "completed", failed: "failed", killed: "killed", timed_out: "timed out", lost: "lost" };
const TAIL_BYTES = 16 * 1024;
const REFRESH_MS = 3000;
const PAGE_LEN = 100;

/**
 * A running task: its description, its newest output if it is opened, and `Kill`.
 * @param {{id: string, description: string}} task
 */
export function taskCard(task) {
  const output = outputFold(task.id, true);
  return h("div", { class: "card task", "data-task": task.id, role: "group", "aria-label": `Task ${task.description}` }, h("p", {}, h("span", { class: "spinner", "aria-hidden": "true" }), " ", h("span", { dir: "auto" }, task.description), " ", killButton(task.id)), output);
}

/** @param {string} id */
function killButton(id) {
  if (!can("act")) return null;
  const message = h("span", { role: "alert", class: "wrong" });
  const button = h("button", { type: "button", onclick: kill }, "Kill");
  return h("span", { class: "kill" }, button, message);

  async function kill() {
    button.disabled = true;
    try {
      await api(`/api/tasks/${encodeURIComponent(id)}/kill`, { method: "POST" });
      announce("Killed");
    } catch (error) {
      message.textContent = String(/** @type {Error} */ (error).message);
      button.disabled = false;
    }
  }
}

/**
 * What a task has printed last, loaded when the fold is opened.
 * @param {string} id
 * @param {boolean} isRunning
 */
function outputFold(id, isRunning) {
  const place = h("pre", { class: "output", tabindex: "0" });
  let timer = 0;
  const fold = h("details", { ontoggle: onToggle }, h("summary", {}, "Output"), place);
  return fold;

  function onToggle() {
    clearTimeout(timer);
    if (fold.open) void load();
  }

  async function load() {
    try {
      const task = await api(`/api/tasks/${encodeURIComponent(id)}`);
      const printed = task.printed ?? 0;
      const offset = Math.max(0, printed - TAIL_BYTES);
      const answer = await request(`/api/tasks/${encodeURIComponent(id)}/output?offset=${offset}&limit=${TAIL_BYTES}`);
      const text = await answer.text();
      const missing = offset > 0 ? `[${formatCount(offset)} bytes before]\n` : "";
      place.textContent = missing + text || "(nothing printed yet)";
      place.scrollTop = place.scrollHeight;
      isRunning = task.status === "running";
    } catch (error) {
      place.textContent = String(/** @type {Error} */ (error).message);
    }
    if (isRunning && fold.open && fold.isConnected) timer = window.setTimeout(load, REFRESH_MS);
  }
}

/** @type {import("./app.js").View} */
export async function tasksView(place) {
  document.title = "Tasks · Longhaul";
  place.append(h("h1", {}, "Tasks"));
  const body = h("div", {});
  place.append(body);
  await drawTasks(body, "");
}

/** The tasks of one session. @param {HTMLElement} place @param {string} session */
export async function tasksPanel(place, session) {
  place.append(h("h2", {}, "Tasks"));
  const body = h("div", {});
  place.append(body);
  await drawTasks(body, session);
}

/** @param {HTMLElement} body @param {string} session */
async function drawTasks(body, session) {
  const list = await api(`/api/tasks?limit=${PAGE_LEN}${session ? `&session=${encodeURIComponent(session)}` : ""}`);
  if (list.items.length === 0) {
    replaceChildren(body, emptyState("No tasks", "Commands that run in the background appear here."));
    return;
  }
  const order = (/** @type {any} */ task) => (task.status === "running" ? 0 : 1);
  list.items.sort((/** @type {any} */ one, /** @type {any} */ other) => order(one) - order(other) || String(other.started_at).localeCompare(String(one.started_at)));
  replaceChildren(body, h("ul", { class: "tasks" }, list.items.map(taskItem)));
}

/** @param {any} task */
function taskItem(task) {
  const isRunning = task.status === "running";
  const facts = [
    task.exit_code === null || task.exit_code === undefined ? "" : `exit code ${task.exit_code}`,
    task.duration_ms ? formatDuration(task.duration_ms) : "",
    formatAgo(task.started_at),
  ];
  return h(
    "li",
    { class: "card task" },
    h("p", {}, h("span", { class: `state state-${task.status}` }, STATUS[/** @type {keyof typeof STATUS} */ (task.status)] ?? task.status), " ", h("strong", { dir: "auto" }, task.description), " ", isRunning ? killButton(task.task_id) : null),
    h("pre", { class: "command", tabindex: "0" }, task.command),
    h("p", { class: "facts" }, h("a", { href: `#/session/${encodeURIComponent(task.session)}` }, task.session), " · ", facts.filter(Boolean).join(" · ")),
    task.message ? h("p", { class: "quiet" }, task.message) : null,
    outputFold(task.task_id, isRunning),
  );
}
