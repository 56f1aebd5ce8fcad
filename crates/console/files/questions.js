// Questions of a session to a person, with the buttons that answer them.

import { Problem, act, can, sessionPath } from "./api.js";
import { announce, errorText, h } from "./dom.js";
import { sessionHref } from "./format.js";

/** What the button of a choice says. */
const CHOICES = { yes: "Yes", no: "No", always: "Always in this session", project: "Always in this project" };
/** How long a question must have stood in its place before it can be answered, so that nobody answers one that they have not seen. */
const SETTLE_MS = 500;

/**
 * Whether a question is one of the agent or of an MCP server: its choices are its own words, and any other text answers it, too.
 * @param {string | undefined} kind
 */
const takesText = (kind) => kind === "ask" || kind === "elicitation";

/**
 * The buttons of a question. They work once the question has stood still for a moment, and not any more once an answer is sent.
 * @param {string} session its key or id
 * @param {{id: string, choices?: string[], kind?: string}} question
 */
export function answerButtons(session, question) {
  const isAsk = takesText(question.kind);
  const all = question.choices?.length || isAsk ? (question.choices ?? []) : ["yes", "no"];
  // A rule for the whole project is for admins.
  const choices = all.filter((choice) => can(choice === "project" && !isAsk ? "admin" : "act"));
  const message = h("span", { role: "alert", class: "wrong" });
  const buttons = choices.map((choice) =>
    h("button", { type: "button", class: choice === "yes" ? "primary" : "", onclick: () => answer(choice) }, (isAsk ? undefined : CHOICES[/** @type {keyof typeof CHOICES} */ (choice)]) ?? choice),
  );
  const group = h("div", { class: "answers", role: "group", "aria-label": "Answer" }, buttons, message);
  let isSent = false;
  settleButtons(group);
  return group;

  /** @param {string} text */
  async function answer(text) {
    if (isSent) return;
    isSent = true;
    // A disabled button would lose the keyboard.
    for (const button of buttons) button.setAttribute("aria-disabled", "true");
    message.textContent = "";
    try {
      await act(sessionPath(session, "/answers"), { question: question.id, answer: text });
      announce(`Answered: ${text}`);
    } catch (error) {
      const isSettled = error instanceof Problem && error.status === 409;
      message.textContent = isSettled ? "This question was already answered." : errorText(error);
      isSent = isSettled;
      if (!isSettled) for (const button of buttons) button.removeAttribute("aria-disabled");
    }
  }
}

/**
 * The buttons of a question that is shown without its diff or plan. Where nobody could see what a yes allows, a link to the session.
 * @param {{id: string, key: string}} session
 * @param {{id: string, choices: string[], kind: string, has_diff: boolean}} question
 */
export function briefAnswers(session, question) {
  if (takesText(question.kind) && !question.choices.length) return h("p", {}, h("a", { href: sessionHref(session.key) }, "Write an answer"));
  const unseen = question.kind === "plan" ? "plan" : question.has_diff ? "change" : "";
  return unseen ? h("p", {}, h("a", { href: sessionHref(session.key) }, `See the ${unseen} and answer`)) : answerButtons(session.id, question);
}

/** Has the buttons in an element wait until it has stood still for a moment. @param {HTMLElement} element */
export function settleButtons(element) {
  for (const button of element.querySelectorAll("button")) {
    if (!button.closest(".answers")) continue;
    button.disabled = true;
    clearTimeout(Number(button.dataset.settling));
    button.dataset.settling = String(setTimeout(() => (button.disabled = false), SETTLE_MS));
  }
}

/**
 * The text of a question: what is asked, what would run, and why the agent asks. A bar marks each line of a command, so that nothing
 * in it looks like a part of the question; what stands in brackets explains.
 * @param {string} text
 */
export function questionWords(text) {
  /** @type {{kind: string, lines: string[]}[]} */
  const parts = [];
  for (const line of text.trimEnd().split("\n")) {
    const kind = line.startsWith("│") ? "command" : /^\(.*\)$/.test(line) ? "why" : "question-text";
    const last = parts.at(-1);
    if (last && last.kind === kind && kind !== "why") last.lines.push(line);
    else parts.push({ kind, lines: [line] });
  }
  return parts.map(({ kind, lines }) => {
    if (kind === "command") return h("pre", { class: "command", dir: "auto" }, lines.map((line) => line.replace(/^│ ?/, "")).join("\n"));
    return h("p", { class: kind, dir: "auto" }, kind === "why" ? codeWords(lines[0]?.slice(1, -1) ?? "") : lines.join("\n"));
  });
}

/** A text whose words between backticks are code. @param {string} text */
function codeWords(text) {
  const words = text.split("`");
  // With an odd one, nobody knows which of them belong together.
  return words.length % 2 === 0 ? text : words.map((word, index) => (index % 2 ? h("code", {}, word) : word));
}

/**
 * What a question asks. It scrolls if it is long, also with a keyboard.
 * @param {{text: string, diff?: string}} question
 */
export function questionBody(question) {
  return h("div", { class: "question-body", tabindex: "0", role: "group", "aria-label": "What is asked" }, questionWords(question.text), questionDiff(question));
}

/** What the call of a question would change; null if it changes no file. @param {{diff?: string}} question */
function questionDiff(question) {
  return question.diff ? h("details", { open: true }, h("summary", {}, "What would change"), h("pre", { class: "diff", tabindex: "0" }, diffLines(question.diff))) : null;
}

/**
 * A question with its text, what it would change, and its buttons.
 * @param {string} session its key or id
 * @param {any} question
 */
export function questionCard(session, question) {
  return h(
    "div",
    { class: "card question", role: "group", "aria-label": "Question", "data-question": question.id, tabindex: "-1" },
    questionBody(question),
    answerButtons(session, question),
  );
}

/** The lines of a unified diff, without the names of the files before its first hunk. @param {string} text */
export function diffLines(text) {
  const lines = text.trimEnd().split("\n");
  const isNamed = lines[0]?.startsWith("--- ") && lines[1]?.startsWith("+++ ");
  return lines.slice(isNamed ? 2 : 0).map((line) => {
    const kind = line.startsWith("@@") ? "hunk" : line.startsWith("+") ? "add" : line.startsWith("-") ? "del" : "same";
    return h("span", { class: `diff-line ${kind}` }, `${line}\n`);
  });
}
