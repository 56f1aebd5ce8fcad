// One event stream for the whole tab. A browser opens at most six connections to a server, so a hidden tab closes its stream
// and a shown one first asks for what it missed.

const FIRST_DELAY_MS = 500;
const MAX_DELAY_MS = 15000;
/** A stream that has lived this long was well. */
const STABLE_MS = 5000;
/** How long to wait before asking again for something that is not there, such as a deleted session. */
const GONE_DELAY_MS = 30000;
/** The server says something every 15 seconds. A stream that has been silent this long is dead, and the browser does not know it. */
const SILENCE_MS = 40000;

/**
 * @typedef {object} Follower
 * @property {() => Promise<string>} resume loads what was missed, and returns the address of the stream
 * @property {(data: any) => void} receive takes an event
 * @property {() => void} [opened] called when the stream is open
 * @property {() => void} [pinged] called when the server says that the stream lives, every 15 seconds
 */

/** @type {EventSource | null} */
let source = null;
/** @type {Follower | null} */
let follower = null;
let delay = FIRST_DELAY_MS;
let timer = 0;
/** Counts changes of the follower, so that a late answer to an old one is dropped. */
let generation = 0;
/** When the stream last said something. */
let lastHeard = 0;
/** When the stream was opened; 0 if it is not open. */
let openedAt = 0;

/** @type {(state: "live" | "offline") => void} */
let showState = () => {};

/** @param {(state: "live" | "offline") => void} listener */
export function onConnection(listener) {
  showState = listener;
}

/** Called when a stream was opened. */
let tellOpened = () => {};

/** @param {() => void} listener */
export function onOpened(listener) {
  tellOpened = listener;
}

/**
 * Follows these events, and no others any more.
 * @param {Follower | null} next
 */
export function follow(next) {
  stop();
  follower = next;
  delay = FIRST_DELAY_MS;
  if (follower && !document.hidden) void connect();
}

function stop() {
  generation += 1;
  clearTimeout(timer);
  source?.close();
  source = null;
  openedAt = 0;
}

async function connect() {
  const current = follower;
  if (!current) return;
  stop();
  const mine = generation;
  let address;
  try {
    address = await current.resume();
  } catch (error) {
    if (mine === generation) retryLater(error);
    return;
  }
  if (mine !== generation) return;
  source = new EventSource(`${address}${address.includes("?") ? "&" : "?"}ping=true`);
  lastHeard = performance.now();
  source.addEventListener("ping", () => {
    lastHeard = performance.now();
    // The first one comes with the stream itself.
    if (lastHeard - openedAt > STABLE_MS) current.pinged?.();
  });
  source.onopen = () => {
    lastHeard = openedAt = performance.now();
    showState("live");
    tellOpened();
    current.opened?.();
  };
  source.onmessage = (message) => {
    lastHeard = performance.now();
    if (mine === generation) current.receive(JSON.parse(message.data));
  };
  // The stream ended or broke. Reconnecting goes through `resume`, so that there is one way to catch up.
  source.onerror = () => {
    if (mine === generation) retryLater(null);
  };
}

/** @param {any} error */
function retryLater(error) {
  // A stream that ends as soon as it is open is as bad as none.
  if (openedAt && performance.now() - openedAt > STABLE_MS) delay = FIRST_DELAY_MS;
  stop();
  if (error?.status === 401) return;
  if (error?.status && !error.isTemporary) {
    // The view shows such an error. It may go away: a deleted session can be restored.
    timer = window.setTimeout(() => void connect(), GONE_DELAY_MS);
    return;
  }
  showState(delay > 2 * FIRST_DELAY_MS ? "offline" : "live");
  timer = window.setTimeout(() => void connect(), delay);
  delay = Math.min(delay * 2, MAX_DELAY_MS);
}

/** Shows whether the server answers a view that has no stream and asks again and again. @param {unknown} error of the last request; null if there was none */
export function showReachable(error) {
  showState(/** @type {any} */ (error)?.isTemporary ? "offline" : "live");
}

/** Connects again at once, instead of after the delay. */
export function connectNow() {
  if (follower && !document.hidden) void connect();
}

/** Goes through a new connection, because a request beside the stream failed. @param {any} error */
export function reconnect(error) {
  if (follower && source) retryLater(error);
}

setInterval(() => {
  if (source && performance.now() - lastHeard >= SILENCE_MS) retryLater(null);
}, SILENCE_MS / 8);

document.addEventListener("visibilitychange", () => {
  if (document.hidden) {
    stop();
  } else if (follower) {
    delay = FIRST_DELAY_MS;
    void connect();
  }
});
window.addEventListener("online", connectNow);
