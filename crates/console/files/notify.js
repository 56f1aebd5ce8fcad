// Notifications: when a question opens or a turn ends while nobody looks at the page.

import { api, sessionPath } from "./api.js";
import { h } from "./dom.js";
import { sessionHref, showControls } from "./format.js";

/**
 * A hidden tab has no event stream: a browser opens at most six connections to a server, and an event stream would keep one of them. Alerts are for people who look
 * elsewhere, so a hidden tab of somebody who wants them looks this often, which is as often as browsers let a hidden tab run. No other hidden tab asks for anything.
 */
const HIDDEN_CHECK_MS = 60000;

const STORED = "alerts";

/** Whether the person wants notifications. */
let isOn = localStorage.getItem(STORED) === "on";
/** @type {Set<string>} */
let known = new Set();

let isSignedIn = false;

/** A page that is not signed in looks for nothing. @param {boolean} now */
export function setNotifying(now) {
  isSignedIn = now;
}

/** Why this browser can't notify; empty if it can. */
function obstacle() {
  if (!window.isSecureContext) return "Notifications need https or localhost.";
  if (!("Notification" in window)) return "This browser has no notifications.";
  if (Notification.permission === "denied") return "Notifications are blocked in the settings of this browser.";
  return "";
}

/** The button that turns notifications on and off, and the reason where they can't be. */
export function notifyButton() {
  const reason = h("span", { id: "no-alerts", class: "quiet", role: "status" });
  const button = h("button", { type: "button", class: "plain", "aria-pressed": String(isOn && !obstacle()), "aria-describedby": "no-alerts", title: "Tells you of questions and ended turns while this page is open", onclick: toggle }, "Alerts");
  if (obstacle()) button.setAttribute("aria-disabled", "true");
  return [button, reason];

  async function toggle() {
    reason.textContent = obstacle();
    if (reason.textContent) return;
    isOn = !isOn && (await Notification.requestPermission()) === "granted";
    localStorage.setItem(STORED, isOn ? "on" : "off");
    button.setAttribute("aria-pressed", String(isOn));
    // The person may have said no just now.
    reason.textContent = obstacle();
  }
}

/**
 * Shows a notification if the person wants them and does not see the page.
 * @param {string} title
 * @param {string} text
 * @param {string} hash the place to open
 */
export function notify(title, text, hash) {
  if (!isOn || obstacle() || (!document.hidden && document.hasFocus())) return;
  try {
    const body = showControls(text.length > 200 ? `${text.slice(0, 199)}…` : text);
    const notification = new Notification(showControls(title), { body, tag: hash, icon: "/console/icon.svg" });
    notification.onclick = () => {
      window.focus();
      location.hash = hash;
    };
  } catch {
    // Some phones allow notifications only to installed pages.
  }
}

/**
 * Tells of a question once.
 * @param {{id: string, session: string, text: string}} question
 */
export function notifyQuestion(question) {
  if (known.has(question.id)) return;
  known.add(question.id);
  notify(`${question.session} asks`, question.text, sessionHref(question.session));
}

/** Sessions that were at work at the last look, with their keys. @type {Map<string, string>} */
let working = new Map();
let timer = 0;

// What is open and at work when the tab is hidden is no news.
document.addEventListener("visibilitychange", () => {
  clearInterval(timer);
  if (!document.hidden || !isOn || obstacle()) return;
  working = new Map();
  void look((question) => known.add(question.id), () => {});
  timer = window.setInterval(() => void look(notifyQuestion, (id, key) => void notifyEnd(id, key)), HIDDEN_CHECK_MS);
});

/**
 * Looks what has changed since the last look. One that fails is made up for by the next one.
 * @param {(question: any) => void} asked called for each open question
 * @param {(id: string, key: string) => void} ended called for each session that is no longer at work
 */
async function look(asked, ended) {
  if (!isSignedIn) return;
  const [questions, list] = await Promise.all([api("/api/questions?limit=1000"), api("/api/sessions?limit=1000&state=working")]).catch(() => []);
  if (!questions || !list || !document.hidden) return;
  for (const question of questions.items) asked(question);
  const asking = new Set(questions.items.map((/** @type {any} */ question) => question.session_id));
  const now = new Map(list.items.filter((/** @type {any} */ session) => !session.parent).map((/** @type {any} */ session) => [session.id, session.key]));
  for (const [id, key] of working) if (!now.has(id) && !asking.has(id)) ended(id, key);
  working = now;
}

/** Tells how the last turn of a session ended. @param {string} id @param {string} key */
async function notifyEnd(id, key) {
  const session = await api(sessionPath(id)).catch(() => ({}));
  notify(`${key} ${session.last_outcome === "failed" ? "failed" : "is done"}`, session.failure ?? "Its turn has ended.", sessionHref(key));
}
