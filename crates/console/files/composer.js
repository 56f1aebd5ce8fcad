// The input of a session: text, attachments, and what a message does while a turn is running. While a question is open, the text
// answers it, as in the terminal.

import { Problem, act, api, can, newKey } from "./api.js";
import { announce, errorText, h, replaceChildren } from "./dom.js";

const MAX_IMAGE_BYTES = 5 * 1024 * 1024;
const MAX_TEXT_BYTES = 256 * 1024;
const RETRY_MS = 2000;

/** @typedef {{name: string, media_type?: string, data?: string, text?: string}} Attachment */

/** What is attached to messages that are not sent, by the key of their session. A tab's storage has no room for images. @type {Map<string, Attachment[]>} */
const attachmentsOf = new Map();
/** How many images of a message its fork could not get, by the key of the fork. @type {Map<string, number>} */
const lostImages = new Map();

/** A message that the server may not have yet. It outlives the page, with its key, so that it arrives once. @typedef {{once: string, body: any, text: string}} PendingMessage */

/**
 * @param {string} key
 * @param {(rest: string) => string} path the path of the session
 * @param {() => void} sent called after a message was accepted
 */
export function composer(key, path, sent) {
  const mayAct = can("act");
  let attachments = attachmentsOf.get(key) ?? [];
  let isOpen = true;
  let isSending = false;
  /** The question that the text answers. @type {{id: string, kind: string} | null} */
  let question = null;

  const text = h("textarea", { id: "message", rows: 2, dir: "auto", enterkeyhint: "send", placeholder: "Message", onkeydown: onKey, oninput: () => store(`draft:${key}`, text.value), onpaste: onPaste, "aria-describedby": "message-effect message-keys" });
  text.value = sessionStorage.getItem(`draft:${key}`) ?? "";
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
  const hint = h("p", { id: "message-effect", class: "quiet" });
  const element = h(
    "form",
    { class: "composer", onsubmit: submit },
    message,
    hint,
    attached,
    h("label", { for: "message", class: "unseen" }, "Message"),
    h("p", { id: "message-keys", class: "unseen" }, "Enter sends, Shift and Enter begins a new line."),
    h("div", { class: "composer-box" }, text, h("div", { class: "composer-row" }, attachButton, file, mode, h("span", { class: "space" }), cancel, send)),
  );
  drawAttachments();
  const lost = lostImages.get(key);
  if (lost) message.textContent = `${lost === 1 ? "1 image" : `${lost} images`} could not be taken along.`;
  if (!mayAct) disable("The token of this page may only read.");
  const pending = readPending(key);
  if (pending && mayAct) {
    text.value = pending.text;
    void deliver(pending);
  }
  return {
    element,
    disable,
    /** Puts the keyboard into the box. On a phone its keyboard would cover the conversation. @returns {boolean} whether it has it */
    focus() {
      if (text.disabled || !window.matchMedia("(hover: hover)").matches) return false;
      text.focus({ preventScroll: true });
      return true;
    },
    close() {
      isOpen = false;
    },
    /** @param {any} status */
    update(status) {
      const isRunning = status.turn !== null;
      question = status.questions[0] ?? null;
      cancel.hidden = !isRunning || !mayAct;
      mode.hidden = !isRunning || question !== null || !mayAct;
      attachButton.hidden = question !== null;
      if (!mayAct) return;
      for (const control of [text, attachButton]) control.disabled = false;
      send.disabled = isSending;
      text.placeholder = question ? "Answer in your own words" : "Message";
      hint.textContent = question ? answerHint(question, status.questions.length) : "";
    },
  };

  /** @param {string} reason */
  function disable(reason) {
    for (const control of [text, send, attachButton]) control.disabled = true;
    cancel.hidden = true;
    text.placeholder = reason;
  }

  /** @param {KeyboardEvent} event */
  function onKey(event) {
    // While an input method composes a word, Enter belongs to it.
    if (event.key !== "Enter" || event.shiftKey || event.isComposing || event.keyCode === 229) return;
    event.preventDefault();
    element.requestSubmit();
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
        message.textContent = errorText(error);
      }
    }
    file.value = "";
    drawAttachments();
  }

  function drawAttachments() {
    attachmentsOf.set(key, attachments);
    replaceChildren(
      attached,
      attachments.map((one, index) =>
        h("li", {}, one.data ? "Image " : "Text ", h("bdi", {}, one.name), " ", h("button", { type: "button", class: "plain", "aria-label": `Remove ${one.name}`, onclick: () => { attachments.splice(index, 1); drawAttachments(); } }, "✕")),
      ),
    );
  }

  /** @param {Event} event */
  function submit(event) {
    event.preventDefault();
    if (isSending) return;
    if (question) return void answer(question);
    const whole = text.value.trim() + attachments.filter((one) => one.text !== undefined).map(fenced).join("");
    const images = attachments.filter((one) => one.data).map(({ media_type, data }) => ({ media_type, data }));
    if (!whole && images.length === 0) return;
    const body = { text: whole, ...(images.length ? { images } : {}), ...(mode.hidden ? {} : { mode: mode.value }) };
    const pending = { once: newKey(), body, text: text.value };
    store(`pending:${key}`, JSON.stringify(pending));
    void deliver(pending);
  }

  /** Runs one request of the box. Until it is done, nothing can be typed that would be lost. @param {() => Promise<boolean>} work */
  async function occupy(work) {
    isSending = true;
    send.disabled = true;
    text.readOnly = true;
    message.textContent = "";
    try {
      if (!(await work())) return;
      message.textContent = "";
      text.value = "";
      sessionStorage.removeItem(`draft:${key}`);
      sent();
    } catch (error) {
      message.textContent = errorText(error);
    } finally {
      isSending = false;
      send.disabled = text.disabled;
      text.readOnly = false;
    }
  }

  /** Sends a message until the server has it. The key makes it one message, however often it arrives. @param {PendingMessage} pending */
  function deliver(pending) {
    return occupy(async () => {
      if (!(await sendUntilAccepted(pending))) return false;
      sessionStorage.removeItem(`pending:${key}`);
      attachments = [];
      lostImages.delete(key);
      drawAttachments();
      mode.value = "join";
      announce("Sent");
      return true;
    });
  }

  /** Returns false if the view was left before the server had the message. @param {PendingMessage} pending */
  async function sendUntilAccepted({ once, body }) {
    while (isOpen) {
      try {
        await api(path("/inputs"), { body, key: once });
        return true;
      } catch (error) {
        if (!(error instanceof Problem) || !error.isTemporary) {
          // It stays in the box, as a draft that can be changed.
          sessionStorage.removeItem(`pending:${key}`);
          throw error;
        }
        message.textContent = `${error.message} The message is sent again until the server has it.`;
        await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
      }
    }
    return false;
  }

  /** Answers a question with the text. Attachments wait for the next message. @param {{id: string}} asked */
  function answer(asked) {
    const words = text.value.trim();
    if (!words) return;
    return occupy(async () => {
      try {
        // A single letter would be a choice of the terminal, such as "a" for always.
        await act(path("/answers"), { question: asked.id, answer: /^[yap]$/i.test(words) ? `${words}.` : words });
      } catch (error) {
        const isSettled = error instanceof Problem && error.status === 409;
        throw isSettled ? new Error("This question was already answered. Your text is still here.") : error;
      }
      announce("Answered");
      return true;
    });
  }

  async function cancelTurn() {
    cancel.disabled = true;
    try {
      const { note } = await api(path("/cancel"), { method: "POST" });
      announce(note ?? "Cancelling");
    } catch (error) {
      message.textContent = errorText(error);
    } finally {
      cancel.disabled = false;
    }
  }
}

/** Gives the draft of a session to another key, because the session was renamed. @param {string} from @param {string} to */
export function moveDraft(from, to) {
  for (const kind of ["draft", "pending"]) {
    const kept = sessionStorage.getItem(`${kind}:${from}`);
    if (kept !== null) store(`${kind}:${to}`, kept);
    sessionStorage.removeItem(`${kind}:${from}`);
  }
  attachmentsOf.set(to, attachmentsOf.get(from) ?? []);
  attachmentsOf.delete(from);
}

/**
 * Has the box of a fork begin with the message before which the session was forked.
 * @param {string} key
 * @param {{text: string, images: {media_type: string, data: string}[], lost_images: number}} content
 */
export function keepDraft(key, { text, images, lost_images }) {
  store(`draft:${key}`, text);
  attachmentsOf.set(key, images.map((image, index) => ({ name: `image ${index + 1}`, ...image })));
  lostImages.set(key, lost_images);
}

/** Forgets all that was not sent. It is for the person who wrote it. */
export function forgetDrafts() {
  sessionStorage.clear();
  attachmentsOf.clear();
  lostImages.clear();
}

/** Keeps a text in this tab. One that has no room lives as long as the page. @param {string} name @param {string} value */
function store(name, value) {
  try {
    sessionStorage.setItem(name, value);
  } catch {
    sessionStorage.removeItem(name);
  }
}

/** @param {string} key @returns {PendingMessage | null} */
function readPending(key) {
  try {
    return JSON.parse(sessionStorage.getItem(`pending:${key}`) ?? "null");
  } catch {
    return null;
  }
}

/** What a text does while questions are open. @param {{kind: string}} question the first of them @param {number} count */
function answerHint(question, count) {
  const which = count > 1 ? "the first question above" : "the question above";
  if (question.kind === "plan") return `Your text answers ${which}: it is a no, and says what should be different.`;
  return ["approval", "budget"].includes(question.kind) ? `Your text answers ${which}: it is a no, with your text as the reason.` : `Your text answers ${which}.`;
}

/** A file as Markdown, in a fence that the file does not have. @param {{name: string, text?: string}} file */
function fenced({ name, text = "" }) {
  const longest = Math.max(2, ...Array.from(text.matchAll(/`+/g), (run) => run[0].length));
  const fence = "`".repeat(longest + 1);
  return `\n\n${name}:\n${fence}\n${text}\n${fence}`;
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
