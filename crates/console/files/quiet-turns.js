// Heartbeats that found nothing to do: they are folded, one line for all that follow each other.

import { h } from "./dom.js";
import { formatMoment } from "./format.js";

/** Turns that one fold takes, so that a page that is open for months can still drop its oldest ones. */
const MAX_TURNS = 50;

/**
 * Folds the turn that this block ends, if it was a heartbeat that found nothing to do.
 * @param {HTMLElement} blocks
 * @param {any} item the block that was added last
 */
export function foldQuietTurn(blocks, item) {
  if (item.content?.type !== "turn_end" || item.content.code !== "nothing_to_do") return;
  const turn = lastTurn(blocks);
  const before = turn[0]?.previousElementSibling;
  if (before?.matches(".quiet-turns") && countTurns(before) < MAX_TURNS && turn[0]?.matches(".turn_start")) {
    before.append(...turn);
    describe(before);
    return;
  }
  const fold = h("details", { class: "quiet-turns" }, h("summary", {}));
  turn[0]?.before(fold);
  fold.append(...turn);
  describe(fold);
}

/**
 * Gives a fold at the beginning of the newer blocks what older ones have of its first turn, and the fold before it.
 * @param {HTMLElement} older
 * @param {HTMLElement} newer
 */
export function joinQuietTurns(older, newer) {
  const fold = newer.firstElementChild;
  if (!fold?.matches(".quiet-turns")) return;
  if (!fold.children[1]?.matches(".turn_start") && !older.lastElementChild?.matches(".turn_end")) fold.firstElementChild?.after(...lastTurn(older));
  const before = older.lastElementChild;
  if (before?.matches(".quiet-turns") && countTurns(before) + countTurns(fold) <= MAX_TURNS) {
    fold.firstElementChild?.after(...[...before.children].slice(1));
    before.remove();
  }
  describe(fold);
}

/** The blocks from the beginning of the last turn on. Where its beginning isn't loaded, all that are there of it. @param {HTMLElement} blocks */
function lastTurn(blocks) {
  /** @type {Element[]} */
  const turn = [];
  for (let block = blocks.lastElementChild; block; block = block.previousElementSibling) {
    const isOther = block.matches(".quiet-turns") || (turn.length > 0 && block.matches(".turn_end"));
    if (isOther) break;
    turn.unshift(block);
    if (block.matches(".turn_start")) break;
  }
  return turn;
}

/** @param {Element} fold */
function countTurns(fold) {
  return fold.querySelectorAll(":scope > .turn_end").length;
}

/** Says how many heartbeats are folded, and when the last one was. @param {Element} fold */
function describe(fold) {
  const count = countTurns(fold);
  const at = [...fold.querySelectorAll(".turn_end time")].at(-1)?.getAttribute("datetime");
  const summary = fold.querySelector("summary");
  if (summary) summary.textContent = `${count === 1 ? "A heartbeat" : `${count} heartbeats`} found nothing to do${at ? ` · ${formatMoment(at)}` : ""}`;
}
