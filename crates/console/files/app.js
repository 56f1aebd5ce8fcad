// The frame of the page: signing in, the address, and which view is shown.

import { Problem, api, can, onSignedOut, setScope } from "./api.js";
import { forgetDrafts } from "./composer.js";
import { conversationView } from "./conversation.js";
import { emptyState, errorText, h, replaceChildren } from "./dom.js";
import { doctorView, tokensView } from "./installation.js";
import { memoryView } from "./memory.js";
import { notifyButton, setNotifying } from "./notify.js";
import { overviewView } from "./overview.js";
import { schedulesView } from "./schedules.js";
import { statementView } from "./statement.js";
import { connectNow, follow, onConnection, onOpened } from "./stream.js";
import { tasksView } from "./tasks.js";
import { trashView } from "./trash.js";

const PAGES = [
  { path: "", name: "Sessions" },
  { path: "tasks", name: "Tasks" },
  { path: "schedules", name: "Schedules" },
  { path: "memory", name: "Memory" },
  { path: "statement", name: "Statement" },
  { path: "tokens", name: "Tokens", scope: "admin" },
  { path: "doctor", name: "Doctor" },
];

/**
 * A view puts its content into the page and may return what has to happen when it is left.
 * @typedef {(main: HTMLElement, ...parts: string[]) => (void | (() => void) | Promise<void | (() => void)>)} View
 * @type {Record<string, View>}
 */
const VIEWS = {
  "": overviewView,
  session: conversationView,
  tasks: tasksView,
  schedules: schedulesView,
  memory: memoryView,
  statement: statementView,
  tokens: tokensView,
  doctor: doctorView,
  trash: trashView,
};
/** Views that belong to a page with another name. @type {Record<string, string>} */
const PAGE_OF = { session: "", trash: "" };

const main = /** @type {HTMLElement} */ (document.getElementById("main"));
const header = /** @type {HTMLElement} */ (document.getElementById("header"));
const nav = /** @type {HTMLElement} */ (document.getElementById("nav"));
const menu = /** @type {HTMLElement} */ (document.getElementById("menu"));
const connection = /** @type {HTMLElement} */ (document.getElementById("connection"));
const update = /** @type {HTMLElement} */ (document.getElementById("update"));

const SIGNED_OUT = "The server no longer accepts the token of this page: it was revoked, or it is too old. Sign in again.";
/** Set while this tab is signed in, so that a reload can say why it no longer is. */
const WAS_SIGNED_IN = "signed-in";

let leave = () => {};
/** Counts views, so that a slow one does not appear over its successor. */
let shown = 0;
let isSignedIn = false;
/** The version of the files that this page was loaded with. */
let version = "";

/** The address: `#/session/KEY/figures` is the view `session` with two parts. */
function address() {
  return location.hash.replace(/^#\/?/, "").split("/").map(decodePart);
}

/** @param {string} part */
function decodePart(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

async function show() {
  if (location.hash && !location.hash.startsWith("#/")) return;
  const [name = "", ...parts] = address();
  showMenu(false);
  const mine = (shown += 1);
  leave();
  leave = () => {};
  follow(null);
  showConnection("live");
  const view = Object.hasOwn(VIEWS, name) && !(name === "session" && !parts[0]) ? VIEWS[name] : null;
  document.body.classList.toggle("fixed", name === "session" && ["", "at"].includes(parts[1] ?? ""));
  const place = h("div", { class: `view view-${name || "overview"}` });
  replaceChildren(main, place);
  for (const link of nav.querySelectorAll("a")) {
    const isCurrent = link.getAttribute("href") === `#/${PAGE_OF[name] ?? name}`;
    if (isCurrent) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  document.title = "Longhaul";
  if (!view) {
    place.append(emptyState("There is no such page", h("a", { href: "#/" }, "Back to the sessions")));
    return;
  }
  // Nothing is pulled away from under the keyboard.
  const retry = () => mine === shown && !place.contains(document.activeElement) && show();
  try {
    const left = (await view(place, ...parts)) ?? (() => {});
    if (mine === shown) leave = left;
    else left();
  } catch (error) {
    if (mine !== shown) return;
    place.append(problemNotice(error, () => void show()));
    if (error instanceof Problem && error.isTemporary) setTimeout(retry, RETRY_MS);
  }
}

/** How long a view that could not be loaded waits before it is loaded again. */
const RETRY_MS = 5000;

/** On a narrow screen the navigation is folded behind a button. @param {boolean} isOpen */
function showMenu(isOpen) {
  menu.setAttribute("aria-expanded", String(isOpen));
  header.classList.toggle("open", isOpen);
}

/**
 * What went wrong, with a way to try again.
 * @param {unknown} error
 * @param {() => void} again
 */
function problemNotice(error, again) {
  const text = error instanceof Problem ? error.message : `This page failed: ${error}`;
  return h("div", { class: "problem", role: "alert" }, h("p", {}, text), h("button", { type: "button", onclick: again }, "Try again"));
}

/** @param {"live" | "offline"} state */
function showConnection(state) {
  // The banner stays as it is while its button may have the keyboard.
  if (connection.className === state) return;
  connection.className = state;
  if (state !== "offline") {
    connection.textContent = "";
    return;
  }
  replaceChildren(
    connection,
    "The server does not answer. Nothing is lost; this page goes on when it is back. ",
    h("button", { type: "button", onclick: connectNow }, "Try again"),
  );
}

/** A server that was updated has other files than this page. It was away meanwhile, so each new stream is a reason to ask. */
async function checkVersion() {
  if (update.hasChildNodes()) return;
  const state = await api("/api/login").catch(() => null);
  if (!state || state.version === version) return;
  replaceChildren(update, "Longhaul was updated. ", h("button", { type: "button", onclick: () => location.reload() }, "Reload"));
}

/** @param {string} [reason] */
function showSignIn(reason = "") {
  isSignedIn = false;
  setNotifying(false);
  document.title = "Longhaul";
  shown += 1;
  leave();
  leave = () => {};
  follow(null);
  showConnection("live");
  header.hidden = true;
  document.body.classList.remove("fixed");
  const message = h("p", { role: "alert", class: "wrong" }, reason);
  const field = h("input", { id: "token", type: "password", autocomplete: "current-password", required: true, spellcheck: "false" });
  const button = h("button", { type: "submit", class: "primary" }, "Sign in");
  const form = h(
    "form",
    { class: "sign-in card", onsubmit: signIn },
    h("h1", {}, h("img", { src: "/console/icon.svg", alt: "", width: 32, height: 32 }), "Longhaul"),
    h("label", { for: "token" }, "Token"),
    field,
    message,
    button,
    h("p", { class: "quiet" }, "The first start of ", h("code", {}, "longhaul serve"), " wrote a token into the file ", h("code", {}, "run/http-token"), " of its home. ", h("code", {}, "longhaul token new"), " makes others."),
  );
  replaceChildren(main, form);
  field.focus();

  /** @param {Event} event */
  async function signIn(event) {
    event.preventDefault();
    button.disabled = true;
    try {
      await api("/api/login", { body: { token: field.value } });
      // Without https or localhost, a browser does not say which page sends a request, and the cookie does not count.
      const { scope } = await api("/api/login");
      if (scope) start(scope);
      else message.textContent = "Signed in, but this browser sends no sign of where its requests come from. Open the page over https, or through localhost.";
    } catch (error) {
      message.textContent = error instanceof Problem && error.status === 401 ? "The server does not know this token." : errorText(error);
      field.select();
    } finally {
      button.disabled = false;
    }
  }
}

async function signOut() {
  try {
    await api("/api/logout", { method: "POST" });
  } catch (error) {
    // The browser still has the cookie, so it would be wrong to look signed out.
    if (!(error instanceof Problem) || error.status !== 401) return void window.alert(`You are still signed in: ${errorText(error)}`);
  }
  forgetDrafts();
  showSignIn();
}

/** @param {string} scope what the token allows */
function start(scope) {
  isSignedIn = true;
  setNotifying(true);
  sessionStorage.setItem(WAS_SIGNED_IN, "yes");
  setScope(scope);
  header.hidden = false;
  replaceChildren(
    nav,
    PAGES.filter((page) => !page.scope || can(/** @type {"admin"} */ (page.scope))).map((page) => h("a", { href: `#/${page.path}` }, page.name)),
    h("span", { class: "space" }),
    notifyButton(),
    h("button", { type: "button", class: "plain", onclick: signOut }, "Sign out"),
  );
  void show();
}

document.querySelector(".skip")?.addEventListener("click", (event) => {
  // The address says which view is shown, so the link must not change it.
  event.preventDefault();
  main.focus();
});
menu.addEventListener("click", () => showMenu(menu.getAttribute("aria-expanded") !== "true"));
header.addEventListener("keydown", (event) => {
  if (event.key !== "Escape" || menu.getAttribute("aria-expanded") !== "true") return;
  showMenu(false);
  menu.focus();
});
onConnection(showConnection);
onOpened(() => void checkVersion());
onSignedOut(() => {
  if (isSignedIn) showSignIn(SIGNED_OUT);
});
window.addEventListener("hashchange", () => {
  if (!isSignedIn) return;
  void show();
  // A conversation moves the keyboard from here into its message box.
  main.focus({ preventScroll: true });
});

// Whether the cookie still counts is the server's knowledge alone.
api("/api/login").then(
  (state) => {
    version = state.version;
    if (state.scope) start(state.scope);
    else showSignIn(sessionStorage.getItem(WAS_SIGNED_IN) ? SIGNED_OUT : "");
  },
  (error) => replaceChildren(main, problemNotice(error, () => location.reload())),
);
