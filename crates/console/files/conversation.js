// One session, live. The only state that this view keeps is the last record that it has shown: a reload, a sleep, a restarted
// server all go the same way, by asking for what came after it.

import { Problem, act, api, can, sessionPath } from "./api.js";
import { composer } from "./composer.js";
import { announce, emptyState, fragmentOf, h, replaceChildren } from "./dom.js";
import { figuresPanel } from "./figures.js";
import { showControls } from "./format.js";
import { LiveText } from "./live-text.js";
import { notify, notifyQuestion } from "./notify.js";
import { questionCard } from "./questions.js";
import { sessionHead } from "./session-head.js";
import { follow } from "./stream.js";
import { taskCard, tasksPanel } from "./tasks.js";

const PAGE_LEN = 60;
/** Blocks that a catch-up may have. If more was missed, the newest page replaces what is shown. */
const CATCH_UP_LEN = 300;
/** How near to its end the conversation has to be for new text to keep it there. */
const END_DISTANCE = 120;
const STATUS_DELAY_MS = 250;

/** Events after which the status of the session is loaded again. */
const STATUS_EVENTS = new Set([
  "input_accepted", "input_taken", "turn_started", "turn_ended", "question", "answered", "task_started", "task_ended", "usage",
  "mode_changed", "model_changed", "compact_done",
]);

/** @type {import("./app.js").View} */
export async function conversationView(place, key, panel = "", at = "") {
  document.title = `${showControls(key)} · Longhaul`;
  if (panel === "figures" || panel === "tasks") {
    const head = sessionHead(key, panel);
    const body = h("div", { class: "panel" });
    place.append(head.element, body);
    head.update(await api(sessionPath(key)));
    return panel === "figures" ? figuresPanel(body, key) : tasksPanel(body, key);
  }
  const conversation = new Conversation(place, key, panel === "at" ? Number(at) : null);
  await conversation.open();
  return () => conversation.close();
}

class Conversation {
  /** @param {HTMLElement} place @param {string} key @param {number | null} target the record to show first */
  constructor(place, key, target) {
    this.key = key;
    this.target = target;
    /** The last record that is shown. */
    this.seq = 0;
    /** The place of the next older page; null if the beginning is shown. @type {number | null} */
    this.older = null;
    this.isLoaded = false;
    /** @type {Promise<void> | null} */
    this.catchingUp = null;
    this.isBehind = false;
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

    this.head = sessionHead(key, "");
    this.earlier = h("button", { type: "button", class: "earlier", hidden: true, onclick: () => this.loadOlder() }, "Show earlier");
    this.blocks = h("div", { class: "blocks" });
    this.running = h("div", { class: "running", "aria-live": "off" });
    this.live = new LiveText();
    this.log = h("div", { class: "log", role: "log", "aria-label": "Conversation", tabindex: "0" }, this.earlier, this.blocks, this.live.element, this.running);
    this.toEnd = h("button", { type: "button", class: "to-end", hidden: true, onclick: () => this.scrollToEnd() }, "↓ Newest");
    this.questions = h("div", { class: "questions", role: "region", "aria-label": "Questions" });
    this.tasks = h("div", { class: "running-tasks" });
    this.composer = composer(key, () => this.scrollToEnd());
    this.trash = h("div", {});
    place.append(this.head.element, this.trash, h("div", { class: "log-frame" }, this.log, this.toEnd), this.questions, this.tasks, this.composer.element);
    this.log.addEventListener("scroll", () => this.onScroll(), { passive: true });
    this.log.addEventListener("click", (/** @type {Event} */ event) => void this.onFork(event));
    // Blocks get their real height when they come into view, and a question makes the log shorter.
    this.sizes = new ResizeObserver(() => this.keepAtEnd());
    for (const element of [this.log, this.blocks, this.running, this.live.element]) this.sizes.observe(element);
    this.watcher = new IntersectionObserver((entries) => {
      if (entries.some((entry) => entry.isIntersecting)) void this.loadOlder();
    }, { root: this.log, rootMargin: "400px" });
  }

  async open() {
    await new Promise((resolve) => {
      follow({
        resume: async () => {
          try {
            await (this.isLoaded ? this.catchUp() : this.load());
            await this.loadStatus();
          } catch (error) {
            this.showProblem(error);
            throw error;
          } finally {
            resolve(undefined);
          }
          return sessionPath(this.key, `/events?after=${this.seq}`);
        },
        receive: (event) => this.receive(event),
        // What changed between the last look at the status and the stream.
        opened: () => this.loadStatusSoon(),
      });
    });
  }

  close() {
    this.watcher.disconnect();
    this.sizes.disconnect();
    clearTimeout(this.statusTimer);
    this.composer.close();
  }

  /** Shows the newest page, or the page of the record that was asked for. */
  async load() {
    const before = this.target ? `&before=${this.target + 40}` : "";
    const page = await api(sessionPath(this.key, `/transcript?limit=${PAGE_LEN}${before}`));
    this.live.clear();
    replaceChildren(this.blocks);
    this.appendBlocks(page);
    this.older = page.next;
    this.earlier.hidden = page.next === null;
    if (page.items.length === 0) this.blocks.append(emptyState("Nothing said yet", "Write the first message below."));
    this.isLoaded = true;
    if (this.target) this.showTarget(this.target);
    else {
      this.scrollToEnd();
      this.composer.focus();
    }
    this.watcher.observe(this.earlier);
  }

  /** @param {any} page */
  appendBlocks(page) {
    this.blocks.querySelector(".empty")?.remove();
    for (const item of page.items) {
      this.blocks.append(this.element(item));
      dropReplacedAnswers(this.blocks, item);
    }
    // The head says that a turn runs, the stream has the text of its answer, and a question has a card with its buttons.
    const open = (page.open ?? []).filter((/** @type {any} */ item) => !["message", "turn_start", "question"].includes(item.content?.type));
    replaceChildren(this.running, open.map((/** @type {any} */ item) => this.element(item)));
    this.seq = page.through;
    // A page may have an answer before the stream has told of it. Then the text that is shown is that answer's.
    const answers = page.items.filter((/** @type {any} */ item) => item.content?.type === "message");
    if (answers.some((/** @type {any} */ item) => item.seq > this.lastAnswer)) this.live.discard();
    this.answeredAt = Math.max(this.answeredAt, ...answers.map((/** @type {any} */ item) => item.ended_at ?? 0));
    const ends = page.items.filter((/** @type {any} */ item) => ["message", "turn_end"].includes(item.content?.type));
    this.answeredThrough = Math.max(this.answeredThrough, ...ends.map((/** @type {any} */ item) => item.ended_by ?? 0));
    this.live.forgetThrough(this.answeredThrough);
  }

  /** @param {any} item */
  element(item) {
    const fragment = fragmentOf(item.html);
    const block = fragment.firstElementChild;
    if (block && item.content?.type === "input") {
      if (item.state !== "running" && item.content.fork_at && can("act")) {
        block.append(h("button", { type: "button", class: "fork plain", "data-fork": item.content.fork_at, "data-text": item.content.text, title: "Fork the session before this message" }, "Fork from here"));
      }
    }
    return fragment;
  }

  /** Asks for what came after the last record that is shown, once at a time. */
  catchUp() {
    if (this.catchingUp) {
      this.isBehind = true;
      return this.catchingUp;
    }
    this.catchingUp = this.fetchNew().finally(() => {
      this.catchingUp = null;
      if (this.isBehind) {
        this.isBehind = false;
        void this.catchUp().catch(() => {});
      }
    });
    return this.catchingUp;
  }

  async fetchNew() {
    // A page of an earlier place stays where it is until the person goes to the end.
    if (this.target) return;
    const page = await api(sessionPath(this.key, `/transcript?after=${this.seq}&limit=${CATCH_UP_LEN}`));
    if (!page.complete) {
      replaceChildren(this.blocks);
      this.older = page.next;
      this.earlier.hidden = page.next === null;
    }
    this.appendBlocks(page);
    this.keepAtEnd();
    if (page.items.length > 0 && !this.isFollowing) this.toEnd.hidden = false;
  }

  async loadOlder() {
    if (this.older === null || this.isLoadingOlder) return;
    this.isLoadingOlder = true;
    try {
      const page = await api(sessionPath(this.key, `/transcript?limit=${PAGE_LEN}&before=${this.older}`));
      const height = this.log.scrollHeight;
      const top = this.log.scrollTop;
      const nodes = document.createDocumentFragment();
      const older = h("div");
      for (const item of page.items) {
        older.append(this.element(item));
        dropReplacedAnswers(older, item);
      }
      nodes.append(...older.childNodes);
      this.blocks.prepend(nodes);
      // What the person reads stays where it is.
      this.log.scrollTop = top + this.log.scrollHeight - height;
      this.older = page.next;
      this.earlier.hidden = page.next === null;
    } catch {
      // The button stays, and the next scroll tries again.
    } finally {
      this.isLoadingOlder = false;
    }
  }

  /** @param {any} event */
  receive(event) {
    switch (event.type) {
      case "text_delta":
      case "reasoning_delta":
      case "partial":
        // Text may come later than the page that has it.
        if (Date.parse(event.at) > this.answeredAt) this.live.receive(event);
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
        notify(`${this.key} is done`, event.text || event.error || event.outcome, `#/session/${encodeURIComponent(this.key)}`);
        break;
      case "question":
        announce(`Question: ${event.text}`);
        notifyQuestion({ id: event.id, session: this.key, text: event.text });
        break;
    }
    if (event.seq) void this.catchUp().catch(() => {});
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
    this.statusTimer = window.setTimeout(() => void this.loadStatus().catch(() => {}), STATUS_DELAY_MS);
  }

  async loadStatus() {
    const status = await api(sessionPath(this.key));
    this.head.update(status, this.live.parts.length > 0);
    this.composer.update(status);
    this.showTrash(status.state === "trashed");
    keepChildren(this.questions, status.questions, "question", (question) => questionCard(this.key, question));
    keepChildren(this.tasks, status.tasks, "task", (task) => taskCard(task));
  }

  /** @param {boolean} isTrashed */
  showTrash(isTrashed) {
    if (!isTrashed) {
      this.trash.replaceChildren();
      return;
    }
    const restore = async () => {
      await api(sessionPath(this.key, "/restore"), { method: "POST" }).catch((error) => announce(error.message));
      location.reload();
    };
    replaceChildren(this.trash, h("div", { class: "problem", role: "alert" }, h("p", {}, "This session is in the trash."), h("button", { type: "button", onclick: restore }, "Restore")));
    this.composer.disable();
  }

  /** @param {unknown} error */
  showProblem(error) {
    if (!(error instanceof Problem) || error.isTemporary || error.status === 401) return;
    const isGone = error.status === 404;
    const text = isGone ? "This session does not exist, or it was deleted." : error.message;
    replaceChildren(this.running, h("div", { class: "problem", role: "alert" }, h("p", {}, text), h("a", { href: "#/" }, "Back to the sessions")));
    this.composer.disable();
    replaceChildren(this.questions);
    replaceChildren(this.tasks);
  }

  /** Forks before a message, and opens the fork with its text in the input. @param {Event} event */
  async onFork(event) {
    const button = /** @type {HTMLElement} */ (event.target).closest?.("button[data-fork]");
    if (!button) return;
    try {
      const fork = await act(sessionPath(this.key, "/fork"), { at: Number(button.getAttribute("data-fork")) });
      sessionStorage.setItem(`draft:${fork.key}`, button.getAttribute("data-text") ?? "");
      location.hash = `#/session/${encodeURIComponent(fork.key)}`;
    } catch (error) {
      button.after(h("span", { role: "alert", class: "wrong" }, String(/** @type {Error} */ (error).message)));
    }
  }

  keepAtEnd() {
    if (this.isFollowing && !this.target) this.log.scrollTop = this.log.scrollHeight;
  }

  scrollToEnd() {
    if (this.target) {
      location.hash = `#/session/${encodeURIComponent(this.key)}`;
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
    if (isAtEnd && !this.target) this.toEnd.hidden = true;
  }

  /** @param {number} seq */
  showTarget(seq) {
    this.toEnd.hidden = false;
    const blocks = [.../** @type {NodeListOf<HTMLElement>} */ (this.blocks.querySelectorAll("[data-seq]"))];
    const block = blocks.findLast((one) => Number(one.dataset.seq) <= seq) ?? blocks[0];
    if (!block) return;
    block.classList.add("target");
    block.tabIndex = -1;
    block.scrollIntoView({ block: "center" });
    block.focus({ preventScroll: true });
  }
}

/**
 * An answer replaces those of the same turn that broke off and do not count.
 * @param {HTMLElement} blocks
 * @param {any} item the block that was added last
 */
function dropReplacedAnswers(blocks, item) {
  if (item.content?.type !== "message" || !["finished", "truncated"].includes(item.state)) return;
  let block = blocks.lastElementChild?.previousElementSibling;
  while (block && !block.classList.contains("turn_start")) {
    const before = block.previousElementSibling;
    if (block.matches(".message.interrupted, .message.discarded")) block.remove();
    block = before;
  }
}

/**
 * Makes the children of an element stand for these items. Those that stay are not touched, so that a half-written reply or
 * an open fold survives.
 * @param {HTMLElement} parent
 * @param {{id: string}[]} items
 * @param {string} name the data attribute with the id
 * @param {(item: any) => HTMLElement} make
 */
function keepChildren(parent, items, name, make) {
  const wanted = new Set(items.map((item) => item.id));
  /** @type {Map<string, Element>} */
  const there = new Map();
  for (const child of [...parent.children]) {
    const id = /** @type {HTMLElement} */ (child).dataset[name] ?? "";
    if (wanted.has(id)) there.set(id, child);
    else child.remove();
  }
  for (const item of items) if (!there.has(item.id)) parent.append(make(item));
}
