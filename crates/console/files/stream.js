// One event stream for the whole tab. A browser opens at most six connections to a server, so a hidden tab closes its stream
// and a shown one first asks for what it missed.

const FIRST_DELAY_MS = 500;
const MAX_DELAY_MS = 15000;

/**
 * @typedef {object} Follower
 * @property {() => Promise<string>} resume loads what was missed, and returns the address of the stream
 * @property {(data: any) => void} receive takes an event
 * @property {() => void} [opened] called when the stream is open
 */

/** @type {EventSource | null} */
let source = null;
/** @type {Follower | null} */
let follower = null;
let delay = FIRST_DELAY_MS;
let timer = 0;
/** Counts changes of the follower, so that a late answer to an old one is dropped. */
let generation = 0;

/** @type {(state: "live" | "waiting" | "offline") => void} */
let showState = () => {};

/** @param {(state: "live" | "waiting" | "offline") => void} listener */
export function onConnection(listener) {
  showState = listener;
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
  source = new EventSource(address);
  source.onopen = () => {
    delay = FIRST_DELAY_MS;
    showState("live");
    current.opened?.();
  };
  source.onmessage = (message) => {
    if (mine === generation) current.receive(JSON.parse(message.data));
  };
  // The stream ended or broke. Reconnecting goes through `resume`, so that there is one way to catch up.
  source.onerror = () => {
    if (mine === generation) retryLater(null);
  };
}

/** @param {any} error */
function retryLater(error) {
  stop();
  // An answer such as 401 or 404 is shown by whoever asked. Trying again would not change it.
  if (error && error.status && !error.isTemporary) return;
  showState(delay > 2 * FIRST_DELAY_MS ? "offline" : "waiting");
  timer = window.setTimeout(() => void connect(), delay);
  delay = Math.min(delay * 2, MAX_DELAY_MS);
}

/** Connects again at once, instead of after the delay. */
export function connectNow() {
  if (follower && !source) void connect();
}

document.addEventListener("visibilitychange", () => {
  if (document.hidden) {
    stop();
  } else if (follower) {
    delay = FIRST_DELAY_MS;
    void connect();
  }
});
window.addEventListener("online", connectNow);
// A frozen or cached page comes back without its connection.
window.addEventListener("pageshow", (event) => {
  if (event.persisted) connectNow();
});
