// Text of models, tools, files, tasks, keys and memory never becomes markup or script.

import assert from "node:assert/strict";
import { assertClean, log, openConsole, openFolds, openSession, say, url, withBrowser } from "./page.mjs";

const memory = process.argv[2];
/** Elements that only a payload could make. */
const FOREIGN = "main :is(script, iframe, object, embed, base, meta, style, link, img, template, math, [srcdoc], [onerror], [onload], [onfocus], [ontoggle], [onmouseover]), [role=log] :is(form, input, svg)";

await withBrowser(async (browser) => {
  const page = await openConsole(browser);
  // A page that opens this one must not be able to steer it.
  assert.equal((await page.reload()).headers()["cross-origin-opener-policy"], "same-origin");
  await page.evaluate(() => {
    window.attacks = 0;
  });
  const check = async (where) => {
    await openFolds(page);
    const [attacks, elements] = await page.evaluate((selector) => [window.attacks, [...document.querySelectorAll(selector)].map((element) => element.outerHTML)], FOREIGN);
    assert.deepEqual([attacks, elements], [0, []], where);
    const links = await page.$$eval("main a", (all) => all.map((link) => link.protocol));
    assert.ok(links.every((protocol) => ["http:", "https:", "mailto:"].includes(protocol)), `${where}: ${links}`);
    assert.equal(await page.evaluate(() => getComputedStyle(document.querySelector("main")).display), "flex", where);
    assert.equal(await page.evaluate(() => document.body.textContent.includes("\u202e")), false, where);
  };
  await openSession(page, "payloads");
  await log(page).getByText("the last payload").first().waitFor();
  await check("conversation");
  assert.equal(await page.title(), "payloads · Longhaul");

  // While it arrives, too.
  await say(page, "Again.");
  await page.locator(".live").getByText("the last payload").first().waitFor();
  await check("live text");
  await page.getByRole("button", { name: "Cancel" }).waitFor({ state: "hidden" });

  const places = { "": "onerror", tasks: "attacks", [`memory/${memory}`]: "page", [`memory/${memory}/payloads`]: "attacks", statement: "model call", "session/payloads/tasks": "attacks", "session/payloads/figures": "Where the time" };
  for (const [path, sign] of Object.entries(places)) {
    await page.goto(`${url}/#/${path}`);
    await page.locator("main").getByText(sign).first().waitFor({ state: "attached" });
    await check(path);
  }
  const keys = page.locator(".session-key", { hasText: "attacks++" });
  await page.goto(`${url}/#/`);
  await keys.first().waitFor();
  assert.equal(await keys.count(), Number(process.argv[3]));
  await keys.first().click();
  await page.getByRole("textbox", { name: "Message" }).waitFor();
  await check("a session whose key is a payload");
  assertClean(page);
});
