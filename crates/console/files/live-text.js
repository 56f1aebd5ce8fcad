// The text of the answer that is being received. It is shown as it comes, without Markdown, until its record is there; then the
// server's rendering takes its place.

import { h } from "./dom.js";
import { showDirections } from "./format.js";

/** The most characters that are shown of an answer while it comes. */
const MAX_CHARS = 100000;

export class LiveText {
  constructor() {
    this.element = h("div", { class: "live", "aria-live": "off" });
    /** @type {{box: HTMLElement, text: Text, reasoning: Text, thought: HTMLElement, begunAt: number, closedAt: number | null}[]} */
    this.parts = [];
    /** Text that waits for the next frame, and when the first of it came. */
    this.waiting = { text: "", reasoning: "", begunAt: 0 };
    this.isScheduled = false;
  }

  /** @param {any} event */
  receive(event) {
    const text = showDirections(event.text);
    const at = Date.parse(event.at);
    if (!this.waiting.text && !this.waiting.reasoning) this.waiting.begunAt = at;
    if (event.type === "partial") {
      this.flush();
      this.open(at).text.data = text.slice(-MAX_CHARS);
    } else if (event.type === "text_delta") this.waiting.text += text;
    else this.waiting.reasoning += text;
    if (this.isScheduled) return;
    this.isScheduled = true;
    requestAnimationFrame(() => {
      this.isScheduled = false;
      this.flush();
    });
  }

  /** The part that takes new text, of this moment. @param {number} at */
  open(at) {
    const last = this.parts.at(-1);
    if (last && last.closedAt === null) return last;
    const text = document.createTextNode("");
    const reasoning = document.createTextNode("");
    const thought = h("details", { hidden: true }, h("summary", {}, "Thinking"), h("div", { class: "words", dir: "auto" }, reasoning));
    const box = h("div", { class: "live-part" }, thought, h("div", { class: "words", dir: "auto" }, text));
    this.element.append(box);
    const part = { box, text, reasoning, thought, begunAt: at, closedAt: null };
    this.parts.push(part);
    return part;
  }

  flush() {
    const { text, reasoning, begunAt } = this.waiting;
    if (!text && !reasoning) return;
    this.waiting = { text: "", reasoning: "", begunAt: 0 };
    const part = this.open(begunAt);
    if (reasoning) {
      part.thought.hidden = false;
      part.reasoning.appendData(reasoning);
    }
    part.text.appendData(text);
    for (const node of [part.text, part.reasoning]) if (node.length > MAX_CHARS) node.deleteData(0, node.length - MAX_CHARS);
  }

  /** The answer that is shown is on record with this number. What comes next belongs to another one. @param {number} seq */
  closeAt(seq) {
    this.flush();
    const last = this.parts.at(-1);
    if (last && last.closedAt === null) last.closedAt = seq;
  }

  /** The page has everything up to this record. @param {number} seq */
  forgetThrough(seq) {
    this.parts = this.parts.filter((part) => {
      const isThere = part.closedAt !== null && part.closedAt <= seq;
      if (isThere) part.box.remove();
      return !isThere;
    });
  }

  /**
   * The answer that is being received does not count: the model is asked again. An answer that began later stays.
   * @param {number} [through] when the answer ended that does not count
   */
  discard(through = Infinity) {
    const last = this.parts.at(-1);
    const isOpen = last !== undefined && last.closedAt === null;
    if ((isOpen ? last.begunAt : this.waiting.begunAt) > through) return;
    this.waiting = { text: "", reasoning: "", begunAt: 0 };
    if (isOpen) {
      last.box.remove();
      this.parts.pop();
    }
  }

  clear() {
    this.waiting = { text: "", reasoning: "", begunAt: 0 };
    this.parts = [];
    this.element.replaceChildren();
  }
}
