// A session of many turns opens as fast as one of ten and stays smooth while text arrives and while its past is read.

import assert from "node:assert/strict";
import { assertClean, log, openConsole, say, url, withBrowser } from "./page.mjs";

const OPENINGS = 7;
const SCROLL_STEPS = 60;
/** A long session may cost this many times what a short one costs. */
const MAX_RATIO = 2;
/** The sessions, the shortest first. */
const keys = process.argv.slice(2);
/** How long a task may take. A busy machine says nothing about it, so only LONG_TASK_MS=100 holds it; the figure is always printed. */
const maxTask = Number(process.env.LONG_TASK_MS ?? Infinity);

await withBrowser(async (browser) => {
  const page = await openConsole(browser);
  const times = keys.map(() => []);
  const paints = keys.map(() => []);
  // The first opening of all also loads the files. The others take turns, so that whatever else the machine does meets all of them.
  await openingTime(page, keys[0]);
  for (let opening = 0; opening < OPENINGS; opening += 1) {
    for (const [index, key] of keys.entries()) {
      times[index].push(await openingTime(page, key));
      paints[index].push(await firstPaint(page));
    }
  }
  const medians = times.map(median);
  keys.forEach((key, index) => console.log(`figures: ${key} opened in ${medians[index]} ms, median of ${OPENINGS}; first paint after ${median(paints[index])} ms`));
  assertRatio(medians, "to open, in ms");

  // The same answer in each.
  const browserSession = await page.context().newCDPSession(page);
  await browserSession.send("Performance.enable");
  const loads = [];
  for (const key of keys) {
    await openingTime(page, key);
    await page.evaluate(watchTasks);
    const before = await taskSeconds(browserSession);
    await say(page, "Stream.");
    await log(page).getByText(/word599/).waitFor();
    loads.push(Math.round((await taskSeconds(browserSession) - before) * 1000));
    const longest = await takeLongest(page);
    console.log(`figures: ${key} was busy for ${loads.at(-1)} ms while 600 words arrived; longest task ${longest} ms`);
    assert.ok(longest <= maxTask, `a task of ${longest} ms while text arrived in ${key}`);
  }
  assertRatio(loads, "of work while text arrived, in ms");

  // Scrolling back loads older pages.
  const count = () => page.$$eval("[role=log] .blocks > *", (blocks) => blocks.length);
  const before = await count();
  const frames = await page.evaluate(scrollBack, SCROLL_STEPS);
  await page.waitForFunction((known) => document.querySelectorAll("[role=log] .blocks > *").length > known, before);
  const scrolling = await takeLongest(page);
  console.log(`figures: scrolled back over ${(await count()) - before} more blocks; longest task ${scrolling} ms, frames of ${median(frames)} ms, at worst ${Math.max(...frames)} ms`);

  assert.ok(scrolling <= maxTask, `a task of ${scrolling} ms while scrolling`);
  assertClean(page);
});

/** Milliseconds from the address to the newest block on the screen, with the page loaded anew. */
async function openingTime(page, key) {
  await page.goto("about:blank");
  const began = Date.now();
  await page.goto(`${url}/#/session/${key}`, { waitUntil: "commit" });
  await page.waitForFunction(() => {
    const shown = document.querySelector("[role=log] .blocks > :last-child")?.getBoundingClientRect();
    return shown && shown.height > 0 && shown.top < window.innerHeight;
  });
  return Date.now() - began;
}

/** Milliseconds from the address to the first text or picture. The browser tells of it a moment later. */
async function firstPaint(page) {
  const entry = () => performance.getEntriesByName("first-contentful-paint")[0]?.startTime;
  return Math.round(await (await page.waitForFunction(entry)).jsonValue());
}

/** What the page has kept its thread busy for, in seconds. */
async function taskSeconds(browserSession) {
  const { metrics } = await browserSession.send("Performance.getMetrics");
  return metrics.find((metric) => metric.name === "TaskDuration").value;
}

/** No session costs much more than the shortest one. */
function assertRatio(costs, what) {
  for (const cost of costs) assert.ok(cost <= costs[0] * MAX_RATIO, `${costs.join(", ")} ${what}`);
}

function watchTasks() {
  window.longTasks = [];
  new PerformanceObserver((list) => window.longTasks.push(...list.getEntries().map((entry) => entry.duration))).observe({ type: "longtask" });
}

/** The longest task since the last call; 0 if none took 50 ms. */
async function takeLongest(page) {
  return Math.max(0, ...(await page.evaluate(() => window.longTasks.splice(0))));
}

/** Scrolls back a third of a screen each frame. Returns what each frame took. */
async function scrollBack(steps) {
  const element = document.querySelector("[role=log]");
  const frames = [];
  for (let step = 0; step < steps; step += 1) {
    const began = performance.now();
    element.scrollBy(0, -element.clientHeight / 3);
    await new Promise((resolve) => requestAnimationFrame(resolve));
    frames.push(Math.round(performance.now() - began));
  }
  return frames;
}

function median(numbers) {
  return numbers.toSorted((one, other) => one - other)[Math.floor(numbers.length / 2)];
}
