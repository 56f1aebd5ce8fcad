// A session of many turns opens as fast as a short one and stays smooth while text arrives.

import assert from "node:assert/strict";
import { assertClean, log, openConsole, openSession, say, url, withBrowser } from "./page.mjs";

/** How long a task may take on any machine. The figure itself is printed; LONG_TASK_MS=100 holds it on a quiet one. */
const LONG_TASK_MS = 1000;

await withBrowser(async (browser) => {
  const page = await openConsole(browser);
  const opening = async (key) => {
    await page.goto(`${url}/#/`);
    await page.getByRole("link", { name: key }).waitFor();
    const began = Date.now();
    await openSession(page, key);
    await page.waitForFunction(() => document.querySelectorAll("[role=log] .blocks > *").length > 0);
    return Date.now() - began;
  };
  const short = await opening("brief");
  const long = await opening("aged");
  console.log(`figures: opened ${short} ms with 1 turn, ${long} ms with many`);

  await page.evaluate(() => {
    window.longTasks = [];
    new PerformanceObserver((list) => window.longTasks.push(...list.getEntries().map((entry) => entry.duration))).observe({ type: "longtask" });
  });
  await say(page, "Stream.");
  await log(page).getByText(/word500/).waitFor();
  const streaming = await page.evaluate(() => window.longTasks.splice(0));
  console.log(`figures: longest task while text arrived ${Math.max(0, ...streaming)} ms`);
  // Scrolling back loads older pages.
  const count = () => page.$$eval("[role=log] .blocks > *", (blocks) => blocks.length);
  const before = await count();
  for (let step = 0; step < 20; step += 1) {
    await page.evaluate(() => document.querySelector("[role=log]").scrollBy(0, -3000));
    await page.waitForTimeout(50);
  }
  await page.waitForFunction((known) => document.querySelectorAll("[role=log] .blocks > *").length > known, before);
  const scrolling = await page.evaluate(() => window.longTasks.splice(0));
  console.log(`figures: longest task while scrolling ${Math.max(0, ...scrolling)} ms`);
  const limit = Number(process.env.LONG_TASK_MS ?? LONG_TASK_MS);
  assert.ok(Math.max(0, ...streaming) <= limit, `a task of ${Math.max(...streaming)} ms`);
  assert.ok(long < short * 4 + 500, `${long} ms against ${short} ms`);
  assertClean(page);
});
