// Questions of a session to a person, with the buttons that answer them.

import { Problem, act, can, sessionPath } from "./api.js";
import { announce, h } from "./dom.js";

/** What the button of a choice says. */
const CHOICES = { yes: "Yes", no: "No", always: "Always in this session", project: "Always in this project" };

/**
 * The buttons of a question. They turn off once an answer is sent.
 * @param {string} session
 * @param {{id: string, choices?: string[], kind?: string}} question
 */
export function answerButtons(session, question) {
  const all = question.choices?.length ? question.choices : ["yes", "no"];
  // A rule for the whole project is for admins.
  const choices = all.filter((choice) => can(choice === "project" ? "admin" : "act"));
  const message = h("span", { role: "alert", class: "wrong" });
  const buttons = choices.map((choice) =>
    h("button", { type: "button", class: choice === "yes" ? "primary" : "", onclick: () => answer(choice) }, CHOICES[/** @type {keyof typeof CHOICES} */ (choice)] ?? choice),
  );
  const group = h("div", { class: "answers", role: "group", "aria-label": "Answer" }, buttons, message);
  return group;

  /** @param {string} text */
  async function answer(text) {
    const controls = group.querySelectorAll("button");
    for (const button of controls) button.disabled = true;
    message.textContent = "";
    try {
      await act(sessionPath(session, "/answers"), { question: question.id, answer: text });
      announce(`Answered: ${text}`);
      message.textContent = "";
    } catch (error) {
      const isSettled = error instanceof Problem && error.status === 409;
      message.textContent = isSettled ? "This question was already answered." : String(/** @type {Error} */ (error).message);
      if (!isSettled) for (const button of controls) button.disabled = false;
    }
  }
}

/**
 * A question with its text, what it would change, and its buttons.
 * @param {string} session
 * @param {any} question
 */
export function questionCard(session, question) {
  const diff = question.diff ? h("details", { open: true }, h("summary", {}, "What would change"), h("pre", { class: "diff", tabindex: "0" }, diffLines(question.diff))) : null;
  return h(
    "div",
    { class: "card question", role: "group", "aria-label": "Question", "data-question": question.id },
    h("p", { class: "question-text", dir: "auto" }, question.text),
    diff,
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
