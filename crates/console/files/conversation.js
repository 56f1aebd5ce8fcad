// One session, live. Blocks are found by one number, the last record that is shown: a reload, a sleep, a restarted server all go
// the same way, by asking for what came after it. The text of an answer that is still arriving comes from the stream alone.

import { agentsPanel } from "./agents.js";
import { Problem, act, api, can, sessionPath } from "./api.js";
import { BlockList, blockElement } from "./block-list.js";
import { composer, keepDraft, moveDraft } from "./composer.js";
import { announce, errorText, h, replaceChildren } from "./dom.js";
import { figuresPanel } from "./figures.js";
import { formatDuration, sessionHref, showControls } from "./format.js";
import { LiveText } from "./live-text.js";
import { notify, notifyQuestion } from "./notify.js";
import { questionCard } from "./questions.js";
import { sessionHead } from "./session-head.js";
import { singleFlight } from "./single-flight.js";
import { follow, reconnect } from "./stream.js";
import { taskCard, tasksPanel } from "./tasks.js";

const PAGE_LEN = 60;
/** Blocks that a catch-up may have. If more was missed, the newest page replaces what is shown. */
const CATCH_UP_LEN = 300;
/** How near to its end the conversation has to be for new text to keep it there. */
const END_DISTANCE = 120;
const STATUS_DELAY_MS = 250;
/** How long a screen reader does not hear of blocks that were said before. */
const SILENCE_MS = 1000;

/** Events after which the status of the session is loaded again. */
const STATUS_EVENTS = new Set([
  "input_accepted", "input_taken", "turn_started", "step_started", "turn_ended", "question", "answered", "tool_started", "tool_finished",
  "task_started", "task_ended", "child_started", "child_ended", "usage", "mode_changed", "model_changed", "attempt_discarded", "compact_start", "compact_done", "compact_failed",
]);

/** @type {import("./app.js").View} */
export async function conversationView(place, key = "", panel = "", at = "") {
  document.title = `${showControls(key)} · Longhaul`;
  const fill = { figures: figuresPanel, tasks: tasksPanel, agents: agentsPanel }[panel];
  if (fill) {
    const head = sessionHead(key, panel);
    const body = h("div", { class: "panel" });
    place.append(head.element, body);
    head.update(await api(sessionPath(key)));
    return fill(body, key);
  }
  const conversation = new Conversation(place, key, panel === "at" ? Number(at) : null);
  conversation.open();
  return () => conversation.close();
}

class Conversation {
  /** @param {HTMLElement} place @param {string} key @param {number | null} target the record to show first */
  constructor(place, key, target) {
    this.key = key;
    /** Known after the first status. A key may come to mean another session, an id may not. @type {string | null} */
    this.id = null;
    /** The new key, from the moment at which the session turns out to be renamed. @type {string | null} */
    this.renamedTo = null;
    this.target = target;
    /** The last record that is shown. */
    this.seq = 0;
    /** The place of the next older page; null if the beginning is shown. @type {number | null} */
    this.older = null;
    this.isLoaded = false;
    /** The record of the last answer that the event stream has told of. */
    this.lastAnswer = 0;
    /** When the last answer that is shown was complete. */
    this.answeredAt = 0;
    /** The last record of the last answer, or of the last turn, that is shown. */
    this.answeredThrough = 0;
    /** Whether new text keeps the end in view. It does until the person scrolls up. */
    this.isFollowing = true;
    this.lastTop = 0;
    this.isLoadingOlder = false;
    this.statusTimer = 0;
    this.catchUp = singleFlight(() => this.fetchNew());
    this.loadStatus = singleFlight(() => this.fetchStatus());

    this.head = sessionHead(key, "");
    this.earlier = h("button", { type: "button", class: "earlier", hidden: true, onclick: () => this.loadOlder() }, "Show earlier");
    this.blocks = new BlockList();
    this.running = h("div", { class: "running", "aria-live": "off" });
    this.retry = h("p", { class: "quiet" });
    this.problem = h("div", {});
    this.live = new LiveText();
    this.log = h("div", { class: "log", role: "log", "aria-label": "Conversation", tabindex: "0" }, this.earlier, this.blocks.element, this.live.element, this.retry, this.running, this.problem);
    this.toEnd = h("button", { type: "button", class: "to-end", hidden: true, onclick: () => this.scrollToEnd() }, "↓ Newest");
    this.questions = h("div", { class: "questions", role: "region", "aria-label": "Questions" });
    this.tasks = h("div", { class: "running-tasks" });
    this.todo = h("div", { class: "current-todo" });
    this.composer = composer(key, (rest) => this.path(rest), () => this.scrollToEnd());
    place.append(this.head.element, h("div", { class: "log-frame" }, this.log, this.toEnd), this.questions, this.tasks, this.todo, this.composer.element);
    this.log.addEventListener("scroll", () => this.onScroll(), { passive: true });
    this.log.addEventListener("click", (/** @type {Event} */ event) => void this.onClick(event));
    this.log.addEventListener("toggle", () => this.onScroll(), true);
    // Blocks get their real height when they come into view, and a question makes the log shorter.
    this.resizeObserver = new ResizeObserver(() => this.keepAtEnd());
    for (const element of [this.log, this.blocks.element, this.running, this.live.element]) this.resizeObserver.observe(element);
    this.olderObserver = new IntersectionObserver((entries) => {
      if (entries.some((entry) => entry.isIntersecting)) void this.loadOlder();
    }, { root: this.log, rootMargin: "400px" });
  }

  open() {
    follow({
      resume: async () => {
        try {
          await (this.isLoaded ? this.catchUp() : this.load());
          await this.loadStatus();
        } catch (error) {
          this.showProblem(error);
          throw error;
        }
        this.problem.replaceChildren();
        // A page of an earlier place stays as it is, so only what happens from now on matters to it.
        return this.path(this.target ? "/events" : `/events?after=${this.seq}`);
      },
      receive: (event) => this.receive(event),
      opened: () => {
        // The stream begins with the text so far of the answer that is arriving. What is shown may be of one that no longer counts.
        this.live.discard();
        this.loadStatusSoon();
      },
      // Not every change has an event: a session can be restored and be in the trash again between two looks of the server.
      pinged: () => this.loadStatusSoon(),
    });
  }

  close() {
    this.olderObserver.disconnect();
    this.resizeObserver.disconnect();
    clearTimeout(this.statusTimer);
    this.composer.close();
    // What was typed up to now goes with the session.
    if (this.renamedTo !== null) moveDraft(this.key, this.renamedTo);
  }

  /** @param {string} [rest] */
  path(rest = "") {
    return sessionPath(this.id ?? this.key, rest);
  }

  /** Shows the newest page, or the page of the record that was asked for. */
  async load() {
    const before = this.target ? `&before=${this.target + 40}` : "";
    const page = await api(this.path(`/transcript?limit=${PAGE_LEN}${before}`));
    this.live.clear();
    this.blocks.clear();
    this.silenceReaders();
    this.appendPage(page);
    this.older = page.next;
    this.earlier.hidden = page.next === null;
    this.blocks.showEmpty();
    this.isLoaded = true;
    if (this.target) {
      this.toEnd.hidden = false;
      this.blocks.showTarget(this.target);
    } else {
      this.scrollToEnd();
      this.composer.focus();
    }
    this.olderObserver.observe(this.earlier);
  }

  /** @param {any} page */
  appendPage(page) {
    const opened = new Set([...this.running.querySelectorAll("[data-seq]:has(details[open])")].map((block) => block.getAttribute("data-seq")));
    this.blocks.append(page.items);
    // The head says that a turn runs, the stream has the text of its answer, and a question has a card with its buttons.
    const open = (page.open ?? []).filter((/** @type {any} */ item) => !["message", "turn_start", "question"].includes(item.content?.type));
    replaceChildren(this.running, open.map(blockElement));
    // A call that a person has opened stays open when it goes on and when it ends.
    for (const seq of opened) {
      const fold = this.log.querySelector(`.running [data-seq="${seq}"] details, .blocks > [data-seq="${seq}"] details`);
      if (fold) fold.open = true;
    }
    this.seq = page.through;
    // A page may have an answer before the stream has told of it. Then the text that is shown is that answer's.
    const answers = page.items.filter((/** @type {any} */ item) => item.content?.type === "message");
    const unannounced = answers.filter((/** @type {any} */ item) => item.seq > this.lastAnswer);
    if (unannounced.length > 0) this.live.discard(Math.max(...unannounced.map((/** @type {any} */ item) => item.ended_at ?? Infinity)));
    this.answeredAt = Math.max(this.answeredAt, ...answers.map((/** @type {any} */ item) => item.ended_at ?? 0));
    const ends = page.items.filter((/** @type {any} */ item) => ["message", "turn_end"].includes(item.content?.type));
    this.answeredThrough = Math.max(this.answeredThrough, ...ends.map((/** @type {any} */ item) => item.ended_by ?? 0));
    this.live.forgetThrough(this.answeredThrough);
    this.showTodo();
  }

  /** Keeps the newest todo list that is loaded in view, as long as something in it is left to do. */
  showTodo() {
    const lists = this.target ? [] : [...this.log.querySelectorAll(".call:not(.failed) ul.todo")];
    const list = lists.at(-1);
    if (list && this.todo.querySelector("ul")?.isEqualNode(list)) return;
    const isOpen = this.todo.querySelector("details")?.open ?? false;
    const items = [...(list?.children ?? [])];
    const done = items.filter((item) => item.classList.contains("done")).length;
    const now = items.find((item) => item.classList.contains("in_progress"))?.lastChild?.textContent?.trim();
    const title = `Todo: ${done} of ${items.length} done${now ? `, now: ${now}` : ""}`;
    replaceChildren(this.todo, list && done < items.length ? h("details", { open: isOpen }, h("summary", { dir: "auto" }, title), list.cloneNode(true)) : null);
  }

  /** Asks for what came after the last record that is shown. */
  async fetchNew() {
    // A page of an earlier place stays where it is until the person goes to the end.
    if (this.target) return;
    let page;
    try {
      page = await api(this.path(`/transcript?after=${this.seq}&limit=${CATCH_UP_LEN}`));
    } catch (error) {
      if (!(error instanceof Problem) || error.code !== "seq_ahead") throw error;
      // The session has fewer records than this page knows: it was restored from a backup.
      return this.load();
    }
    if (!page.complete) {
      this.blocks.clear();
      this.older = page.next;
    }
    this.appendPage(page);
    if (this.isFollowing) this.older = this.blocks.trim() ?? this.older;
    this.earlier.hidden = this.older === null;
    this.keepAtEnd();
    if (page.items.length > 0 && !this.isFollowing) this.toEnd.hidden = false;
  }

  async loadOlder() {
    const before = this.older;
    if (before === null || this.isLoadingOlder) return;
    this.isLoadingOlder = true;
    try {
      const page = await api(this.path(`/transcript?limit=${PAGE_LEN}&before=${before}`));
      // Meanwhile the newest page may have replaced everything.
      if (before !== this.older) return;
      const height = this.log.scrollHeight;
      const top = this.log.scrollTop;
      this.silenceReaders();
      this.blocks.prepend(page.items);
      // What the person reads stays where it is.
      this.log.scrollTop = top + this.log.scrollHeight - height;
      this.older = page.next;
      this.earlier.hidden = page.next === null;
      this.showTodo();
    } catch {
      // The button stays, and the next scroll tries again.
    } finally {
      this.isLoadingOlder = false;
    }
  }

  /** A log speaks of what is added to it. Blocks of the past are no news. */
  silenceReaders() {
    this.log.setAttribute("aria-live", "off");
    setTimeout(() => this.log.removeAttribute("aria-live"), SILENCE_MS);
  }

  /** @param {any} event */
  receive(event) {
    switch (event.type) {
      case "text_delta":
      case "reasoning_delta":
      case "partial":
        this.retry.textContent = "";
        // Text may come later than the page that has it.
        if (this.target || Date.parse(event.at) <= this.answeredAt) return;
        if (this.live.parts.length === 0) this.blocks.dropInterrupted();
        this.live.receive(event);
        return;
      case "retry_wait":
        this.retry.textContent = `${event.reason}; next try in ${formatDuration(event.delay_ms)} (${event.attempt} of ${event.of})`;
        return;
      case "attempt_discarded":
        this.live.discard();
        break;
      case "message":
        if (event.role === "assistant") this.endAnswer(event.seq);
        break;
      case "turn_ended":
        this.endAnswer(event.seq);
        announce(`Turn ${event.turn} ${event.outcome}`);
        notify(`${this.key} ${event.outcome === "completed" ? "is done" : event.outcome}`, event.text || event.error || event.outcome, sessionHref(this.key));
        break;
      case "question":
        announce("A question waits for your answer.");
        notifyQuestion({ id: event.id, session: this.key, text: event.text });
        break;
    }
    if (event.seq) {
      this.retry.textContent = "";
      // What fails now is fetched when the stream is opened again.
      if (event.seq > this.seq) void this.catchUp().catch(reconnect);
    }
    if (STATUS_EVENTS.has(event.type)) this.loadStatusSoon();
  }

  /** The answer that is being received is on record. @param {number} seq */
  endAnswer(seq) {
    this.lastAnswer = seq;
    if (seq <= this.answeredThrough) this.live.discard();
    else this.live.closeAt(seq);
  }

  loadStatusSoon() {
    clearTimeout(this.statusTimer);
    this.statusTimer = window.setTimeout(() => void this.loadStatus().catch(reconnect), STATUS_DELAY_MS);
  }

  async fetchStatus() {
    const status = await api(this.path());
    this.id = status.id;
    if (status.key !== this.key) {
      this.renamedTo = status.key;
      location.replace(sessionHref(status.key) + (this.target ? `/at/${this.target}` : ""));
      return;
    }
    // A tab in the background shows by its name that it waits.
    document.title = `${status.state === "question" ? "? " : ""}${showControls(this.key)} · Longhaul`;
    this.head.update(status, this.live.parts.length > 0);
    this.composer.update(status);
    this.showTrash(status.state === "trashed");
    const isAnswering = this.questions.contains(document.activeElement);
    syncChildren(this.questions, status.questions, "question", (question) => questionCard(status.id, question));
    // The card with the keyboard is gone: the next question has it, else the message box.
    if (isAnswering && !this.questions.contains(document.activeElement)) {
      const next = this.questions.querySelector("[tabindex]");
      if (next instanceof HTMLElement) next.focus();
      else if (!this.composer.focus()) this.log.focus();
    }
    syncChildren(this.tasks, status.tasks, "task", (task) => taskCard(task, status.key));
  }

  /** @param {boolean} isTrashed */
  showTrash(isTrashed) {
    if (!isTrashed) {
      this.problem.querySelector(".in-trash")?.remove();
      return;
    }
    this.composer.disable("The session is in the trash.");
    if (this.problem.querySelector(".in-trash")) return;
    const message = h("p", { class: "wrong" });
    const restore = async () => {
      try {
        await api(this.path("/restore"), { method: "POST" });
        await this.loadStatus();
      } catch (error) {
        message.textContent = errorText(error);
      }
    };
    replaceChildren(this.problem, h("div", { class: "problem in-trash", role: "alert" }, h("p", {}, "This session is in the trash."), can("admin") ? h("button", { type: "button", onclick: restore }, "Restore") : null, message));
    this.keepAtEnd();
  }

  /** @param {unknown} error */
  showProblem(error) {
    if (!(error instanceof Problem) || error.isTemporary || error.status === 401) return;
    const isGone = error.status === 404;
    const text = isGone ? "This session does not exist, or it was deleted." : error.message;
    replaceChildren(this.problem, h("div", { class: "problem", role: "alert" }, h("p", {}, text), h("a", { href: "#/" }, "Back to the sessions")));
    this.composer.disable(text);
    replaceChildren(this.questions);
    replaceChildren(this.tasks);
    if (!isGone) return;
    // Another session may get the key.
    this.id = null;
    this.isLoaded = false;
  }

  /** @param {Event} event */
  async onClick(event) {
    const target = /** @type {HTMLElement} */ (event.target);
    // What a person opens stays where it is. Once it is open, the end is followed again if it is still in view.
    if (target.closest?.("summary")) this.isFollowing = false;
    const button = target.closest?.("button[data-fork], button[data-retry]");
    if (!(button instanceof HTMLButtonElement)) return;
    button.disabled = true;
    button.parentElement?.querySelector(":scope > [role=alert]")?.remove();
    try {
      const { note } = await (button.dataset.fork ? this.fork(button) : act(this.path("/retry")));
      if (note) button.after(h("span", { role: "alert", class: "quiet" }, note));
    } catch (error) {
      button.after(h("span", { role: "alert", class: "wrong" }, errorText(error)));
    } finally {
      button.disabled = false;
    }
  }

  /** Forks before a message, and opens the fork with the message in its box. @param {HTMLButtonElement} button */
  async fork(button) {
    const fork = await act(this.path("/fork"), { at: Number(button.dataset.fork), input: Number(button.dataset.input) });
    if (fork.content) keepDraft(fork.key, fork.content);
    location.hash = sessionHref(fork.key);
    return fork;
  }

  keepAtEnd() {
    if (this.isFollowing && !this.target) this.log.scrollTop = this.log.scrollHeight;
  }

  scrollToEnd() {
    if (this.target) {
      location.hash = sessionHref(this.key);
      return;
    }
    this.isFollowing = true;
    this.toEnd.hidden = true;
    this.keepAtEnd();
  }

  onScroll() {
    const { scrollHeight, scrollTop, clientHeight } = this.log;
    const isAtEnd = scrollHeight - scrollTop - clientHeight < END_DISTANCE;
    // Only a person scrolls up. Growing text moves nothing.
    if (isAtEnd) this.isFollowing = true;
    else if (scrollTop < this.lastTop) this.isFollowing = false;
    this.lastTop = scrollTop;
    if (!this.target) this.toEnd.hidden = isAtEnd || this.isFollowing;
  }
}

/**
 * Makes the children of an element stand for these items. Those that stay are not touched, so that an open fold survives.
 * @param {HTMLElement} parent
 * @param {{id: string}[]} items
 * @param {string} name the data attribute with the id
 * @param {(item: any) => HTMLElement} make
 */
function syncChildren(parent, items, name, make) {
  const wanted = new Set(items.map((item) => item.id));
  const there = new Set();
  for (const child of [...parent.children]) {
    const id = /** @type {HTMLElement} */ (child).dataset[name] ?? "";
    if (wanted.has(id)) there.add(id);
    else child.remove();
  }
  for (const item of items) if (!there.has(item.id)) parent.append(make(item));
}
