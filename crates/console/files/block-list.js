// The blocks of a conversation, as the server rendered them, in the order of their records.

import { can } from "./api.js";
import { emptyState, fragmentOf, h, replaceChildren } from "./dom.js";
import { foldQuietTurn, joinQuietTurns } from "./quiet-turns.js";
import { questionWords } from "./questions.js";

/** While the end is followed, more blocks than this are cut at the beginning of a turn. They load again when somebody scrolls up. */
const MAX_BLOCKS = 600;
const KEPT_BLOCKS = 400;

export class BlockList {
  constructor() {
    this.element = h("div", { class: "blocks" });
  }

  /** @param {any[]} items */
  append(items) {
    if (items.length > 0) this.element.querySelector(".empty")?.remove();
    for (const item of items) {
      this.element.append(blockElement(item));
      dropReplacedAnswers(this.element, item);
      foldQuietTurn(this.element, item);
    }
  }

  /** @param {any[]} items */
  prepend(items) {
    const older = h("div");
    for (const item of items) {
      older.append(blockElement(item));
      dropReplacedAnswers(older, item);
      foldQuietTurn(older, item);
    }
    joinQuietTurns(older, this.element);
    this.element.prepend(...older.childNodes);
  }

  /** Drops the answers of the last turn that broke off, because the model is asked again. */
  dropInterrupted() {
    dropInterrupted(this.element.lastElementChild);
  }

  clear() {
    this.element.replaceChildren();
  }

  showEmpty() {
    if (this.element.childElementCount === 0) this.element.append(emptyState("Nothing said yet", "Write the first message below."));
  }

  /** Drops the oldest turns if there are many blocks. Returns the record at which the kept ones begin; null if nothing was dropped. */
  trim() {
    const count = this.element.childElementCount;
    if (count <= MAX_BLOCKS) return null;
    const blocks = /** @type {HTMLElement[]} */ ([...this.element.children]);
    const first = blocks.findIndex((block, index) => index >= count - KEPT_BLOCKS && block.matches(".turn_start, .quiet-turns"));
    if (first <= 0) return null;
    for (const block of blocks.slice(0, first)) block.remove();
    return Number((blocks[first]?.dataset.seq ? blocks[first] : blocks[first]?.querySelector("[data-seq]"))?.getAttribute("data-seq"));
  }

  /** Marks the block of a record, and moves the keyboard to it. @param {number} seq */
  showTarget(seq) {
    const blocks = [.../** @type {NodeListOf<HTMLElement>} */ (this.element.querySelectorAll("[data-seq]"))];
    const block = blocks.findLast((one) => Number(one.dataset.seq) <= seq) ?? blocks[0];
    if (!block) return;
    const fold = block.closest("details.quiet-turns");
    if (fold) fold.setAttribute("open", "");
    block.classList.add("target");
    block.tabIndex = -1;
    block.scrollIntoView({ block: "center" });
    block.focus({ preventScroll: true });
  }
}

/**
 * A block with its buttons. Empty if there is nothing to show.
 * @param {any} item
 */
export function blockElement(item) {
  const fragment = fragmentOf(item.html);
  const block = fragment.firstElementChild;
  if (!block) return fragment;
  const { type, text, fork_at, outcome } = item.content ?? {};
  // A question that was answered reads like one that is open.
  const asked = type === "question" && text ? block.querySelector(".asked") : null;
  if (asked) replaceChildren(asked, questionWords(text));
  if (!can("act")) return fragment;
  if (type === "input" && item.state !== "running" && fork_at) {
    block.append(h("button", { type: "button", class: "fork plain", "data-fork": fork_at, "data-input": item.seq, title: "Fork the session before this message" }, "Fork from here"));
  }
  // Only the last turn of a session can be retried; the style sheet hides the others.
  if (type === "turn_end" && outcome === "failed") block.append(h("button", { type: "button", class: "retry-turn", "data-retry": "" }, "Retry"));
  return fragment;
}

/**
 * An answer replaces those of the same turn that broke off and do not count.
 * @param {HTMLElement} blocks
 * @param {any} item the block that was added last
 */
function dropReplacedAnswers(blocks, item) {
  const isAnswer = item.content?.type === "message" && ["finished", "truncated"].includes(item.state);
  const isFailure = item.content?.type === "turn_end" && item.content.outcome === "failed";
  if (!isAnswer && !isFailure) return;
  dropInterrupted(blocks.lastElementChild?.previousElementSibling);
}

/** Drops answers that broke off, from this block back to the beginning of its turn. @param {Element | null | undefined} last */
function dropInterrupted(last) {
  let block = last;
  while (block && !block.matches(".turn_start, .quiet-turns")) {
    const before = block.previousElementSibling;
    if (block.matches(".message.interrupted")) block.remove();
    block = before;
  }
}
