// What the stories share: a browser, a signed-in page that notes every error and every foreign request, and a line to the test that
// owns the server. A story prints what it needs ("kill", "restart", "revoke", …) and waits for "done" on its standard input.

import assert from "node:assert/strict";
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";

const { chromium } = await import(pathToFileURL(process.env.PLAYWRIGHT).href).then((module) => module.default ?? module);

export const url = process.env.CONSOLE_URL;
export const token = process.env.CONSOLE_TOKEN;
export const PATIENCE = 60_000;

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
  const { viewport = DESK, expected = [], ...context } = options;
  const opened = await browser.newContext({ viewport, ...context });
  const page = await opened.newPage();
  page.setDefaultTimeout(PATIENCE);
  page.errors = [];
  page.foreign = [];
  page.on("pageerror", (error) => page.errors.push(String(error)));
  page.on("console", (message) => {
    if (message.type() === "error" && !expected.some((pattern) => pattern.test(message.text()))) page.errors.push(message.text());
  });
  page.on("request", (request) => {
    if (new URL(request.url()).origin !== url) page.foreign.push(request.url());
  });
  await page.goto(`${url}/`);
  await page.getByLabel("Token").fill(token);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByRole("heading", { name: "Sessions" }).waitFor();
  return page;
}

/** Nothing went wrong that nobody saw. */
export function assertClean(page) {
  assert.deepEqual(page.errors, [], "errors of the page");
  assert.deepEqual(page.foreign, [], "requests to other origins");
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

export function log(page) {
  return page.getByRole("log");
}

/** The records of the blocks that are shown, in their order. */
export function shownSeqs(page) {
  return page.$$eval("[role=log] .blocks [data-seq]", (blocks) => blocks.map((block) => [Number(block.dataset.seq), block.className, block.textContent]));
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
