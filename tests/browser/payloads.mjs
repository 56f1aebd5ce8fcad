// Text of models, tools, files, keys and memory never becomes markup or script.

import assert from "node:assert/strict";
import { assertClean, log, openConsole, openSession, url, withBrowser } from "./page.mjs";

await withBrowser(async (browser) => {
  const page = await openConsole(browser);
  await page.evaluate(() => {
    window.attacks = 0;
  });
  const wasAttacked = () => page.evaluate(() => [window.attacks ?? 0, document.querySelectorAll("[role=log] script, [role=log] iframe, [role=log] object, [role=log] form, [role=log] style, [role=log] link, [role=log] img").length, document.title]);
  await openSession(page, "payloads");
  await log(page).getByText("the last payload").first().waitFor();
  for (const summary of await page.locator("[role=log] summary").all()) await summary.click();
  const links = await page.$$eval("[role=log] a", (all) => all.map((link) => link.protocol));
  assert.ok(links.every((protocol) => ["http:", "https:", "mailto:"].includes(protocol)), links.join());
  const [attacks, elements, title] = await wasAttacked();
  assert.deepEqual([attacks, elements], [0, 0]);
  assert.equal(title, "payloads · Longhaul");
  for (const path of ["", "tasks", "memory", "statement"]) {
    await page.goto(`${url}/#/${path}`);
    await page.waitForTimeout(300);
    assert.equal((await wasAttacked())[0], 0, path);
  }
  assertClean(page);
});
