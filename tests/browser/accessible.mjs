// axe-core finds nothing on any page, in both themes; and the whole story works with a keyboard alone.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { DESK, PHONE, assertClean, log, openConsole, url, withBrowser } from "./page.mjs";

const axe = readFileSync(process.env.AXE, "utf8");
const PAGES = ["", "session/story", "session/story/figures", "session/story/tasks", "tasks", "memory", "statement", "tokens", "doctor"];

await withBrowser(async (browser) => {
  for (const [viewport, colorScheme] of [[DESK, "light"], [PHONE, "dark"]]) {
    // The content policy would not let the judge in.
    const page = await openConsole(browser, { viewport, colorScheme, bypassCSP: true, reducedMotion: "reduce" });
    for (const path of PAGES) {
      await page.goto(`${url}/#/${path}`);
      await page.getByRole("heading", { level: 1 }).first().waitFor();
      await page.waitForLoadState("networkidle").catch(() => {});
      await page.evaluate(axe);
      const { violations } = await page.evaluate(() => window.axe.run());
      const told = violations.map((one) => `${one.id}: ${one.help}: ${one.nodes.map((node) => node.target).join("; ")}`);
      assert.deepEqual(told, [], `#/${path} ${colorScheme}`);
    }
    await page.context().close();
  }
  await keyboardOnly(browser);
});

/** Presses Tab until the focused element has this name. */
async function tabTo(page, name) {
  const seen = [];
  for (let presses = 0; presses < 80; presses += 1) {
    await page.keyboard.press("Tab");
    const focused = await page.evaluate(() => {
      const element = document.activeElement;
      return element?.getAttribute("aria-label") ?? element?.labels?.[0]?.textContent ?? element?.textContent?.trim().replace(/\s+/g, " ") ?? "";
    });
    if (name.test(focused)) return;
    seen.push(focused.slice(0, 40));
  }
  assert.fail(`Tab never reached ${name}: ${seen}`);
}

async function keyboardOnly(browser) {
  const page = await openConsole(browser);
  await tabTo(page, /keyboard/);
  await page.keyboard.press("Enter");
  await page.getByRole("textbox", { name: "Message" }).waitFor();
  await tabTo(page, /^Message$/);
  await page.keyboard.type("Write an adder.");
  await page.keyboard.press("Enter");
  await page.getByRole("group", { name: "Question" }).waitFor();
  await page.keyboard.press("Shift+Tab");
  await page.evaluate(() => /** @type {HTMLElement} */ (document.activeElement)?.blur());
  await tabTo(page, /^Yes$/);
  await page.keyboard.press("Enter");
  await log(page).getByText("Now the file.").waitFor();
  await page.getByRole("group", { name: "Question" }).getByText(/add\.py/).first().waitFor();
  await tabTo(page, /^No$/);
  await page.keyboard.press("Space");
  await page.getByRole("group", { name: "Question" }).getByText(/add\.py/).first().waitFor({ state: "detached" });
  assertClean(page);
}
