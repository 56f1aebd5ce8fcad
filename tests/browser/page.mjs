// What the stories share: a browser, a signed-in page that notes every error and every foreign request, and a line to the test that
// owns the server. A story prints what it needs ("kill", "restart", "revoke", …) and waits for "done" on its standard input.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";

const { chromium } = await import(pathToFileURL(process.env.PLAYWRIGHT).href).then((module) => module.default ?? module);

export const url = process.env.CONSOLE_URL;
export const token = process.env.CONSOLE_TOKEN;
const STEP_TIMEOUT_MS = 60_000;

export const DESK = { width: 1280, height: 860 };
export const PHONE = { width: 390, height: 780 };

const FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--disable-background-networking", "--disable-component-update", "--disable-sync", "--no-first-run"];

export async function withBrowser(story) {
  const browser = await chromium.launch({ executablePath: process.env.CHROMIUM, args: FLAGS });
  try {
    await story(browser);
  } finally {
    await browser.close();
  }
  process.exit(0);
}

/** A page that is signed in. `expected` are errors of the browser's console that the story causes itself. */
export async function openConsole(browser, options = {}) {
  const { viewport = DESK, expected = [], token: _, keyboard = false, ...context } = options;
  const opened = await browser.newContext({ viewport, ...context });
  const page = await watchPage(await opened.newPage(), expected);
  await signIn(page, options.token, keyboard);
  return page;
}

/** Another tab of the same person. */
export async function openTab(page, expected = []) {
  const tab = await watchPage(await page.context().newPage(), expected);
  await tab.goto(page.url());
  return tab;
}

/** Signs in, with a keyboard alone if asked to: the field has it already. */
async function signIn(page, withToken = token, keyboard = false) {
  await page.goto(`${url}/`);
  await page.getByLabel("Token").waitFor();
  if (keyboard) {
    await page.keyboard.type(withToken);
    await page.keyboard.press("Enter");
  } else {
    await page.getByLabel("Token").fill(withToken);
    await page.getByRole("button", { name: "Sign in" }).click();
  }
  await page.getByRole("heading", { name: "Sessions" }).waitFor();
}

/** Notes the errors of a page, its requests to other origins, and how many event streams it has open. A stream can be made silent. */
async function watchPage(page, expected) {
  await page.addInitScript(() => {
    window.streams = { open: 0, most: 0, pings: 0, last: null };
    window.EventSource = class extends EventSource {
      isCounted = true;

      constructor(address) {
        super(address);
        window.streams.open += 1;
        window.streams.most = Math.max(window.streams.most, window.streams.open);
        window.streams.last = this;
        for (const type of ["message", "ping"]) this.addEventListener(type, (event) => this.hear(event));
      }

      hear(event) {
        if (this.isSilent) event.stopImmediatePropagation();
        else if (event.type === "ping") window.streams.pings += 1;
      }

      close() {
        if (this.isCounted) window.streams.open -= 1;
        this.isCounted = false;
        super.close();
      }
    };
  });
  page.setDefaultTimeout(STEP_TIMEOUT_MS);
  page.errors = [];
  page.foreign = [];
  page.on("pageerror", (error) => page.errors.push(String(error)));
  page.on("console", (message) => {
    if (message.type() === "error" && !expected.some((pattern) => pattern.test(message.text()))) page.errors.push(message.text());
  });
  page.on("request", (request) => {
    if (new URL(request.url()).origin !== url) page.foreign.push(request.url());
  });
  return page;
}

/** The page logged no error, and sent no request to another origin. */
export function assertClean(page) {
  assert.deepEqual(page.errors, [], "errors of the page");
  assert.deepEqual(page.foreign, [], "requests to other origins");
}

/** What axe-core finds on the page as it is. It needs a context with `bypassCSP`: the content policy would not let it in. */
export async function assertAccessible(page, place) {
  await page.evaluate(readFileSync(process.env.AXE, "utf8"));
  const { violations } = await page.evaluate(() => window.axe.run());
  const told = violations.map((one) => `${one.id}: ${one.help}: ${one.nodes.map((node) => node.target).join("; ")}`);
  assert.deepEqual(told, [], place);
}

/** The answer that the page would get. Without the browser's own headers a cookie does not count. */
export function fetchAsPage(route) {
  return route.fetch({ headers: { ...route.request().headers(), authorization: `Bearer ${token}` } });
}

/** A tab has at most one event stream at a time. */
export async function assertOneStream(page) {
  assert.equal(await page.evaluate(() => window.streams.most), 1);
}

export async function openSession(page, key) {
  await page.getByRole("link", { name: key }).first().click();
  await page.getByRole("textbox", { name: "Message" }).waitFor();
}

export async function say(page, text) {
  const box = page.getByRole("textbox", { name: "Message" });
  await box.fill(text);
  await box.press("Enter");
}

export async function openFolds(page) {
  await page.$$eval("main details", (folds) => folds.forEach((fold) => (fold.open = true)));
  // What a fold loads is there a moment later.
  await page.waitForTimeout(300);
}

export function log(page) {
  return page.getByRole("log");
}

/** The records of the blocks that are shown, in their order. */
export function shownSeqs(page) {
  return page.$$eval("[role=log] .blocks [data-seq]", (blocks) => blocks.map((block) => [Number(block.dataset.seq), block.className, block.textContent]));
}

/** The page shows exactly the blocks that the server has, in their order. */
export async function assertComplete(page, key) {
  const { items, next } = await page.evaluate(async (path) => (await fetch(path)).json(), `/api/sessions/${encodeURIComponent(key)}/transcript?limit=500`);
  assert.equal(next, null);
  // An answer that broke off and does not count is not shown.
  const wanted = items.filter((item) => item.html && !(item.content.type === "message" && item.state === "interrupted")).map((item) => item.seq);
  assert.deepEqual((await shownSeqs(page)).map(([seq]) => seq), wanted);
}

/** No block is shown twice. */
export async function assertNoDoubles(page) {
  const shown = (await shownSeqs(page)).map((block) => JSON.stringify(block));
  assert.equal(new Set(shown).size, shown.length, `blocks that are shown twice: ${shown.filter((block, index) => shown.indexOf(block) !== index)}`);
}

const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();

/** Has the test do something with the server. */
export async function ask(what) {
  console.log(what);
  const { value } = await lines.next();
  return value;
}
