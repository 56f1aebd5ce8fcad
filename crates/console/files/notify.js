// Notifications: when a question opens or a turn ends while nobody looks at the page.

import { api } from "./api.js";
import { h } from "./dom.js";

/** A hidden tab has no event stream. It looks for questions this often. */
const HIDDEN_CHECK_MS = 60000;

let isOn = false;
/** @type {Set<string>} */
let known = new Set();

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
  const button = h("button", { type: "button", class: "plain", "aria-pressed": "false", "aria-describedby": "no-alerts", title: "Tells you of questions and ended turns while this page is open", onclick: toggle }, "Alerts");
  if (obstacle()) button.setAttribute("aria-disabled", "true");
  return [button, reason];

  async function toggle() {
    reason.textContent = obstacle();
    if (reason.textContent) return;
    isOn = !isOn && (await Notification.requestPermission()) === "granted";
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
  if (!isOn || (document.visibilityState === "visible" && document.hasFocus())) return;
  try {
    const notification = new Notification(title, { body: text.slice(0, 200), tag: hash, icon: "/console/icon.svg" });
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
  notify(`${question.session} asks`, question.text, `#/session/${encodeURIComponent(question.session)}`);
}

setInterval(async () => {
  if (!isOn || !document.hidden) return;
  const questions = await api("/api/questions?limit=20").catch(() => null);
  for (const question of questions?.items ?? []) notifyQuestion(question);
}, HIDDEN_CHECK_MS);
