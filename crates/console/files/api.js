// Requests to the server that this page came from.

/** An answer that is an error, or no answer (status 0). */
export class Problem extends Error {
  /** @param {number} status @param {string} code @param {string} detail */
  constructor(status, code, detail) {
    super(detail);
    this.status = status;
    this.code = code;
  }

  /** Whether the same request may succeed later. */
  get isTemporary() {
    return this.status === 0 || this.status === 429 || this.status >= 500;
  }
}

/** How long an answer may take. Deleting a session waits for its turn to end. */
const TIMEOUT_MS = 60000;

/** What the token of this page allows. @type {string} */
let scope = "read";

/** @param {string} allowed */
export function setScope(allowed) {
  scope = allowed;
}

/** Whether the token of this page has at least this scope. @param {"read" | "act" | "admin"} wanted */
export function can(wanted) {
  const scopes = ["read", "act", "admin"];
  return scopes.indexOf(scope) >= scopes.indexOf(wanted);
}

/** How far the server's clock is ahead of this browser's, in milliseconds. */
let clockOffset = 0;

/** The time by the server's clock, which all times of records come from. */
export function serverNow() {
  return Date.now() + clockOffset;
}

/** @param {Response} response */
function readClock(response) {
  const offset = Date.parse(response.headers.get("date") ?? "") - Date.now();
  // The header has whole seconds, and the answer was under way.
  if (Number.isFinite(offset)) clockOffset = Math.abs(offset) < 5000 ? 0 : offset;
}

/** Called when the server no longer accepts our cookie. */
let signedOut = () => {};

/** @param {() => void} listener */
export function onSignedOut(listener) {
  signedOut = listener;
}

/**
 * Sends a request and returns its JSON.
 * @param {string} path
 * @param {{method?: string, body?: any, key?: string, signal?: AbortSignal}} [options] `key` is the idempotency key
 * @returns {Promise<any>}
 */
export async function api(path, options = {}) {
  const response = await request(path, options);
  return response.status === 204 ? null : await response.json();
}

/**
 * Sends a request and returns the answer.
 * @param {string} path
 * @param {{method?: string, body?: any, key?: string, signal?: AbortSignal}} [options]
 */
export async function request(path, options = {}) {
  /** @type {Record<string, string>} */
  const headers = {};
  if (options.body !== undefined) headers["Content-Type"] = "application/json";
  if (options.key) headers["Idempotency-Key"] = options.key;
  let response;
  try {
    response = await fetch(path, {
      method: options.method ?? (options.body === undefined ? "GET" : "POST"),
      headers,
      body: options.body === undefined ? undefined : JSON.stringify(options.body),
      signal: options.signal ?? AbortSignal.timeout(TIMEOUT_MS),
      credentials: "same-origin",
    });
  } catch (error) {
    if (error instanceof DOMException && error.name === "AbortError") throw error;
    throw new Problem(0, "unreachable", "The server does not answer.");
  }
  readClock(response);
  if (response.ok) return response;
  const problem = await response.json().catch(() => ({}));
  if (response.status === 401 && path !== "/api/login") signedOut();
  throw new Problem(response.status, problem.code ?? "", problem.detail ?? `The server answered ${response.status}.`);
}

/**
 * The path of a session.
 * @param {string} key
 * @param {string} [rest]
 */
export function sessionPath(key, rest = "") {
  return `/api/sessions/${encodeURIComponent(key)}${rest}`;
}

/** A key for one action: the same action, sent again, is done once. */
export function newKey() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return "console-" + Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/**
 * Does an action that must happen once: while there is no answer, it is sent again with the same key.
 * @param {string} path
 * @param {any} body
 */
export async function act(path, body = {}) {
  const key = newKey();
  for (let attempt = 0; ; attempt += 1) {
    try {
      return await api(path, { body, key });
    } catch (error) {
      if (!(error instanceof Problem) || error.status !== 0 || attempt === 3) throw error;
      await new Promise((resolve) => setTimeout(resolve, 500 * 2 ** attempt));
    }
  }
}
