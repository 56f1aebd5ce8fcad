// What the agents do by themselves: when each schedule runs, how its last run went, and the buttons and the form that change it.

import { api, can } from "./api.js";
import { announce, emptyState, errorText, h, redraw, replaceChildren } from "./dom.js";
import { formatCost, formatDuration, formatMoment, sessionHref, showControls } from "./format.js";
import { keepFresh, syncItems } from "./live-list.js";
import { scheduleForm } from "./schedule-form.js";
import { singleFlight } from "./single-flight.js";

const DONE = { run: "will run", pause: "is paused", resume: "is resumed" };

/** @param {string} name @param {string} [rest] */
const schedulePath = (name, rest = "") => `/api/schedules/${encodeURIComponent(name)}${rest}`;

/** @type {import("./app.js").View} */
export async function schedulesView(place) {
  document.title = "Schedules · Longhaul";
  const list = h("ul", { class: "tasks" });
  const nothing = h("div", {});
  const added = h("div", {});
  const add = h("button", { type: "button", "aria-expanded": "false", onclick: toggleForm }, "New schedule");
  /** @type {Map<string, ReturnType<typeof scheduleItem>>} */
  const items = new Map();
  place.append(h("div", { class: "title-row" }, h("h1", {}, "Schedules"), can("admin") ? add : null), h("p", { class: "quiet" }, can("admin") ? "" : "Changing these needs a token of scope admin."), added, list, nothing);
  const refresh = singleFlight(load);
  return keepFresh(refresh);

  async function load() {
    const { items: schedules } = await api("/api/schedules?limit=1000");
    replaceChildren(nothing, schedules.length === 0 ? emptyState("No schedules", "A schedule lets the agent work at set times, such as every weekday at seven.") : null);
    syncItems(list, items, schedules, (/** @type {any} */ schedule) => schedule.id, () => scheduleItem(refresh));
  }

  function toggleForm() {
    const isOpen = added.childElementCount === 0;
    add.setAttribute("aria-expanded", String(isOpen));
    const close = () => {
      replaceChildren(added);
      add.setAttribute("aria-expanded", "false");
      add.focus();
    };
    replaceChildren(added, isOpen ? scheduleForm(null, (body) => api("/api/schedules", { body }), (name) => saved(name, close), close) : null);
    added.querySelector("input")?.focus();
  }

  /** @param {string} name @param {() => void} close */
  function saved(name, close) {
    announce(`Added ${name}`);
    close();
    void refresh().catch(() => {});
  }
}

/** A schedule in the list. Its elements stay, and their text changes. @param {() => Promise<void>} refresh */
function scheduleItem(refresh) {
  const state = h("span", {});
  const name = h("strong", {});
  const time = h("p", {});
  const prompt = h("p", { class: "quiet prompt", dir: "auto" });
  const last = h("p", { class: "facts" });
  const reason = h("p", { class: "wrong", dir: "auto" });
  const message = h("p", { role: "alert", class: "wrong" });
  const source = h("p", { class: "quiet" });
  const form = h("div", {});
  const [runs, pauses, resumes, changes, deletes] = [button("Run now", () => order("run")), button("Pause", () => order("pause")), button("Resume", () => order("resume")), button("Change", toggleForm), button("Delete", remove)];
  const element = h("li", { class: "card task" }, h("div", { class: "task-row" }, state, h("span", { dir: "auto" }, name)), time, prompt, last, reason, source, can("admin") ? h("div", { class: "orders" }, runs, pauses, resumes, changes, deletes) : null, message, form);
  /** @type {any} */
  let known = {};
  let isBusy = false;
  return { element, update };

  /** @param {any} now */
  function update(now) {
    known = now;
    const [kind, word] = now.late_s ? ["late", `late by ${formatDuration(now.late_s * 1000)}`] : now.paused && now.status !== "invalid" ? ["paused", now.running ? "running, then paused" : "paused"] : [now.status, now.status];
    state.className = `state state-${kind}`;
    state.textContent = word;
    redraw(name, showControls(now.name));
    const next = now.next ? [" · next ", h("time", { datetime: now.next }, formatMoment(now.next))] : null;
    redraw(time, timeText(now), next, now.heartbeat ? " · heartbeat" : "", now.session ? [" · in ", sessionLink(now.session)] : "");
    redraw(last, now.running ? ["Running in ", sessionLink(now.running), now.last ? " · " : ""] : "", now.last ? lastRun(now.last) : now.running ? "" : "It has not run yet.", now.failures ? ` · ${now.failures} failed in a row` : "");
    redraw(reason, now.reason ?? "");
    reason.classList.toggle("wrong", now.status !== "done");
    redraw(prompt, now.prompt);
    const isConfig = now.source === "config";
    source.textContent = isConfig ? "Set in the config, and changed there." : now.source === "agent" ? "Made by an agent." : "";
    for (const [each, word] of [[runs, "Run now"], [pauses, "Pause"], [resumes, "Resume"], [changes, "Change"], [deletes, "Delete"]]) each.setAttribute("aria-label", `${word}: ${showControls(now.name)}`);
    runs.hidden = now.status === "invalid";
    pauses.hidden = now.paused || !["waiting", "running"].includes(now.status);
    resumes.hidden = !now.paused;
    changes.hidden = deletes.hidden = isConfig;
  }

  /** @param {string} text @param {() => void} onclick */
  function button(text, onclick) {
    return h("button", { type: "button", onclick }, text);
  }

  /** @param {keyof typeof DONE} what */
  async function order(what) {
    await act(() => api(schedulePath(known.name, `/${what}`), { method: "POST" }), DONE[what]);
  }

  async function remove() {
    if (window.confirm(`Delete the schedule ${showControls(known.name)}? A run that has begun goes on.`)) await act(() => api(schedulePath(known.name), { method: "DELETE" }), "is deleted");
  }

  /** @param {() => Promise<any>} send @param {string} done */
  async function act(send, done) {
    if (isBusy) return;
    isBusy = true;
    message.textContent = "";
    try {
      await send();
      announce(`${known.name} ${done}`);
      await refresh();
    } catch (error) {
      message.textContent = errorText(error);
    } finally {
      isBusy = false;
    }
    // A button that is gone has the keyboard no more.
    if (document.activeElement?.closest("[hidden]") || document.activeElement === document.body) {
      const next = known.paused ? resumes : pauses;
      (next.isConnected ? next : document.getElementById("main"))?.focus();
    }
  }

  function toggleForm() {
    const { name } = known;
    const close = () => {
      replaceChildren(form);
      changes.focus();
    };
    const save = (/** @type {any} */ body) => api(schedulePath(name), { method: "PUT", body });
    const saved = () => {
      announce(`Changed ${name}`);
      close();
      void refresh().catch(() => {});
    };
    replaceChildren(form, form.childElementCount === 0 ? scheduleForm(known, save, saved, close) : null);
    form.querySelector("select")?.focus();
  }
}

/** When a schedule runs: `cron 0 7 * * 1-5, Europe/Berlin`. @param {any} schedule */
function timeText({ cron, every, at, zone }) {
  return [cron ? h("code", {}, cron) : every ? `every ${every}` : `once, at ${at}`, zone ? `, ${zone}` : ""];
}

/** The last run that has ended: when, how, for how much, and its session. @param {any} run */
function lastRun({ slot, outcome, cost, error, session }) {
  const word = outcome === "limit" ? "limit reached" : outcome;
  return ["Last ", h("time", { datetime: slot }, formatMoment(slot)), ": ", h("span", { class: outcome === "completed" ? "good" : "wrong" }, word), cost === undefined ? "" : ` for ${formatCost(cost)}`, " in ", sessionLink(session), error ? `: ${error}` : ""];
}

/** @param {string} key */
function sessionLink(key) {
  return h("a", { href: sessionHref(key) }, showControls(key));
}
