// The input of a session: text, attachments, and what a message does while a turn is running. While a question is open, the text
// answers it, as in the terminal.

import { Problem, act, api, can, newKey, sessionPath } from "./api.js";
import { announce, h, replaceChildren } from "./dom.js";

const MAX_IMAGE_BYTES = 5 * 1024 * 1024;
const MAX_TEXT_BYTES = 256 * 1024;
const RETRY_MS = 2000;
const KEYS = "Enter sends, Shift and Enter begins a new line.";

/**
 * @param {string} key
 * @param {() => void} sent called after a message was accepted
 */
export function composer(key, sent) {
  const mayAct = can("act");
  const draftName = `draft:${key}`;
  /** @type {{name: string, media_type?: string, data?: string, text?: string}[]} */
  let attachments = [];
  let isOpen = true;
  let isSending = false;
  /** The question that the text answers. @type {{id: string, kind: string} | null} */
  let question = null;

  const text = h("textarea", { id: "message", rows: 2, dir: "auto", enterkeyhint: "send", placeholder: "Message", onkeydown: onKey, oninput: onInput, onpaste: onPaste, "aria-describedby": "message-hint" });
  text.value = sessionStorage.getItem(draftName) ?? "";
  const mode = h(
    "select",
    { id: "input-mode", "aria-label": "While a turn is running" },
    h("option", { value: "join" }, "Join this turn"),
    h("option", { value: "after" }, "After this turn"),
    h("option", { value: "interrupt" }, "Interrupt this turn"),
  );
  mode.hidden = true;
  const send = h("button", { type: "submit", class: "primary" }, "Send");
  const cancel = h("button", { type: "button", hidden: true, onclick: cancelTurn }, "Cancel");
  const file = h("input", { type: "file", id: "files", multiple: true, class: "unseen", tabindex: "-1", "aria-hidden": "true", onchange: () => attach(file.files) });
  const attachButton = h("button", { type: "button", onclick: () => file.click() }, "Attach");
  const attached = h("ul", { class: "attached" });
  const message = h("p", { role: "alert", class: "wrong" });
  const hint = h("p", { class: "quiet" });
  const describedKeys = h("p", { id: "message-hint", class: "unseen" }, KEYS);
  const element = h(
    "form",
    { class: "composer", onsubmit: submit },
    message,
    hint,
    attached,
    h("label", { for: "message", class: "unseen" }, "Message"),
    text,
    describedKeys,
    h("div", { class: "composer-row" }, attachButton, file, mode, h("span", { class: "space" }), cancel, send),
  );
  if (!mayAct) disable("The token of this page may only read.");
  return {
    element,
    disable,
    focus() {
      // On a phone the keyboard would cover the conversation.
      if (!text.disabled && window.matchMedia("(hover: hover)").matches) text.focus({ preventScroll: true });
    },
    close() {
      isOpen = false;
    },
    /** @param {any} status */
    update(status) {
      const isRunning = status.turn !== null;
      cancel.hidden = !isRunning || !mayAct;
      question = status.questions[0] ?? null;
      mode.hidden = !isRunning || question !== null;
      attachButton.hidden = question !== null;
      const effect = question ? answerHint(question, status.questions.length) : "";
      if (hint.textContent === effect) return;
      hint.textContent = effect;
      describedKeys.textContent = `${effect} ${KEYS}`.trim();
      if (mayAct) text.placeholder = question ? "Answer in your own words" : "Message";
    },
  };

  /** @param {string} [reason] */
  function disable(reason = "") {
    for (const control of [text, send, attachButton]) control.disabled = true;
    cancel.hidden = true;
    text.placeholder = reason || "Message";
  }

  /** @param {KeyboardEvent} event */
  function onKey(event) {
    // While an input method composes a word, Enter belongs to it.
    if (event.key !== "Enter" || event.shiftKey || event.isComposing || event.keyCode === 229) return;
    event.preventDefault();
    element.requestSubmit();
  }

  function onInput() {
    sessionStorage.setItem(draftName, text.value);
  }

  /** @param {ClipboardEvent} event */
  function onPaste(event) {
    if (event.clipboardData?.files.length) {
      event.preventDefault();
      void attach(event.clipboardData.files);
    }
  }

  /** @param {FileList | null} files */
  async function attach(files) {
    message.textContent = "";
    for (const one of files ?? []) {
      try {
        attachments.push(await readAttachment(one));
      } catch (error) {
        message.textContent = String(/** @type {Error} */ (error).message);
      }
    }
    file.value = "";
    drawAttachments();
  }

  function drawAttachments() {
    replaceChildren(
      attached,
      attachments.map((one, index) =>
        h("li", {}, one.data ? "Image " : "Text ", h("bdi", {}, one.name), " ", h("button", { type: "button", class: "plain", "aria-label": `Remove ${one.name}`, onclick: () => { attachments.splice(index, 1); drawAttachments(); } }, "✕")),
      ),
    );
  }

  /** @param {Event} event */
  async function submit(event) {
    event.preventDefault();
    if (question) return answer(question);
    const files = attachments.filter((one) => one.text !== undefined).map((one) => `\n\n${one.name}:\n\`\`\`\n${one.text}\n\`\`\``);
    const whole = text.value.trim() + files.join("");
    const images = attachments.filter((one) => one.data).map(({ media_type, data }) => ({ media_type, data }));
    if (isSending || (!whole && images.length === 0)) return;
    const body = { text: whole, ...(images.length ? { images } : {}), ...(mode.hidden ? {} : { mode: mode.value }) };
    isSending = true;
    send.disabled = true;
    message.textContent = "";
    try {
      await sendUntilAccepted(body);
      message.textContent = "";
      text.value = "";
      attachments = [];
      drawAttachments();
      sessionStorage.removeItem(draftName);
      mode.value = "join";
      announce("Sent");
      sent();
    } catch (error) {
      message.textContent = String(/** @type {Error} */ (error).message);
    } finally {
      isSending = false;
      send.disabled = false;
    }
  }

  /** Answers a question with the text. Attachments wait for the next message. @param {{id: string}} asked */
  async function answer(asked) {
    const words = text.value.trim();
    if (isSending || !words) return;
    isSending = true;
    send.disabled = true;
    message.textContent = "";
    try {
      await act(sessionPath(key, "/answers"), { question: asked.id, answer: words });
      text.value = "";
      sessionStorage.removeItem(draftName);
      announce("Answered");
      sent();
    } catch (error) {
      const isSettled = error instanceof Problem && error.status === 409;
      message.textContent = isSettled ? "This question was already answered. Your text is still here." : String(/** @type {Error} */ (error).message);
    } finally {
      isSending = false;
      send.disabled = false;
    }
  }

  /** Sends a message until the server has it. The key makes it one message, however often it arrives. @param {any} body */
  async function sendUntilAccepted(body) {
    const once = newKey();
    while (isOpen) {
      try {
        await api(sessionPath(key, "/inputs"), { body, key: once });
        return;
      } catch (error) {
        if (!(error instanceof Problem) || !error.isTemporary) throw error;
        message.textContent = `${error.message} The message is sent again until the server has it.`;
        await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
      }
    }
  }

  async function cancelTurn() {
    cancel.disabled = true;
    try {
      await api(sessionPath(key, "/cancel"), { method: "POST" });
      announce("Cancelling");
    } catch (error) {
      message.textContent = String(/** @type {Error} */ (error).message);
    } finally {
      cancel.disabled = false;
    }
  }
}

/** What a text does while questions are open. @param {{kind: string}} question the first of them @param {number} count */
function answerHint(question, count) {
  const which = count > 1 ? "the first question above" : "the question above";
  if (question.kind === "plan") return `Your text answers ${which}: it is a no, and says what should be different.`;
  return ["approval", "budget"].includes(question.kind) ? `Your text answers ${which}: it is a no, with your text as the reason.` : `Your text answers ${which}.`;
}

/** @param {File} file */
async function readAttachment(file) {
  if (/^image\/(png|jpeg|gif|webp)$/.test(file.type)) {
    if (file.size > MAX_IMAGE_BYTES) throw new Error(`${file.name} has more than 5 MB; make it smaller.`);
    const bytes = new Uint8Array(await file.arrayBuffer());
    let binary = "";
    for (let start = 0; start < bytes.length; start += 0x8000) binary += String.fromCharCode(...bytes.subarray(start, start + 0x8000));
    return { name: file.name, media_type: file.type, data: btoa(binary) };
  }
  if (file.size > MAX_TEXT_BYTES) throw new Error(`${file.name} has more than 256 KiB; put it into the work folder and name it.`);
  const text = await file.text();
  if (text.includes("\u0000")) throw new Error(`${file.name} is neither an image nor text.`);
  return { name: file.name, text };
}
