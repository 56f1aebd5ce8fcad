// axe-core finds nothing on any page, in both themes; and the whole story works with a keyboard alone.

import assert from "node:assert/strict";
import { DESK, PHONE, assertAccessible, assertClean, log, openConsole, openFolds, url, withBrowser } from "./page.mjs";

/** Each page, and a text that only its finished state has. */
const PAGES = {
  "": "waits for your answer",
  "session/story": "May exec run",
  "session/story/figures": "Context over time",
  "session/story/tasks": "No tasks",
  "session/story/agents": "No subagents",
  tasks: "No tasks",
  schedules: "No schedules",
  [`memory/${process.argv[2]}`]: "Changes",
  [`memory/${process.argv[2]}/habits`]: "Versions",
  statement: "model call",
  tokens: "longhaul token new",
  doctor: "Longhaul ",
  trash: "The trash is empty",
  "session/nobody": "This session does not exist",
};

await withBrowser(async (browser) => {
  for (const [viewport, colorScheme] of [[DESK, "light"], [PHONE, "dark"]]) {
    const page = await openConsole(browser, { viewport, colorScheme, bypassCSP: true, reducedMotion: "reduce" });
    for (const [path, sign] of Object.entries(PAGES)) {
      await page.goto(`${url}/#/${path}`);
      await page.locator("main").getByText(sign).first().waitFor();
      // Folds that are open have more to judge.
      await openFolds(page);
      const shown = await page.locator("main").innerText();
      assert.doesNotMatch(shown, /^(null|undefined|NaN|Invalid Date)$/m, `#/${path}`);
      if (viewport === PHONE) await page.getByRole("button", { name: "Menu" }).click();
      await assertAccessible(page, `#/${path} ${colorScheme}`);
    }
    await page.context().close();
  }
  await keyboardOnly(browser);
});

/** Presses Tab until the focused element has this name. */
async function tabTo(page, name, key = "Tab") {
  const seen = [];
  for (let presses = 0; presses < 120; presses += 1) {
    await page.keyboard.press(key);
    const focused = await page.evaluate(() => {
      const element = document.activeElement;
      return element?.getAttribute("aria-label") ?? element?.labels?.[0]?.textContent ?? element?.textContent?.trim().replace(/\s+/g, " ") ?? "";
    });
    if (name.test(focused)) return;
    seen.push(focused.slice(0, 40));
  }
  assert.fail(`Tab never reached ${name}: ${seen}`);
}

/** From signing in to the end of a turn, without a pointer. */
async function keyboardOnly(browser) {
  const page = await openConsole(browser, { keyboard: true });
  const question = page.getByRole("group", { name: "Question" });
  await tabTo(page, /keyboard$/);
  await page.keyboard.press("Enter");
  // A session that is opened has the keyboard in its message box.
  await page.waitForFunction(() => document.activeElement?.id === "message");
  await page.keyboard.type("Write an adder.");
  await page.keyboard.press("Enter");
  await question.getByText(/seq 1 3/).waitFor();
  // A question can be answered once it has stood still for a moment.
  const buttons = question.locator("button:enabled").first();
  await buttons.waitFor();
  await tabTo(page, /^Yes$/, "Shift+Tab");
  await page.keyboard.press("Enter");

  // The next question takes the keyboard over, or the message box has it.
  await question.getByText(/add\.py/).first().waitFor();
  await page.waitForFunction(() => document.activeElement !== document.body);
  await buttons.waitFor();
  await tabTo(page, /^No$/);
  await page.keyboard.press("Space");
  await question.getByText(/sleep/).waitFor();
  await buttons.waitFor();
  await tabTo(page, /^Yes$/);
  await page.keyboard.press("Enter");
  await log(page).getByRole("heading", { name: "Done" }).waitFor();
  await page.getByRole("button", { name: "Kill" }).waitFor();
  await tabTo(page, /^Kill$/);
  await page.keyboard.press("Enter");
  await page.getByRole("group", { name: /Task/ }).waitFor({ state: "detached" });

  await tabTo(page, /^Settings$/, "Shift+Tab");
  await page.keyboard.press("Enter");
  await page.getByLabel("Permission").waitFor();
  await page.keyboard.press("Escape");
  await page.getByLabel("Permission").waitFor({ state: "hidden" });
  await tabTo(page, /^Statement$/, "Shift+Tab");
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { name: "Statement" }).waitFor();
  assertClean(page);
}
