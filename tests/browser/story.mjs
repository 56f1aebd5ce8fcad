// A turn with a command, a question, an edit and a task, from this size of screen; reloaded in the middle.

import assert from "node:assert/strict";
import { DESK, PHONE, assertClean, assertNoDoubles, log, openConsole, openSession, say, withBrowser } from "./page.mjs";

await withBrowser(async (browser) => {
  const page = await openConsole(browser, { viewport: process.argv[2] === "phone" ? PHONE : DESK });
  await openSession(page, "story");
  await say(page, "Write an adder.");
  await log(page).getByText("Write an adder.").waitFor();

  const question = page.getByRole("group", { name: "Question" });
  await question.getByText(/seq 1 3/).waitFor();
  await page.getByRole("button", { name: "Cancel" }).waitFor();
  await page.reload();
  await question.getByRole("button", { name: "Yes" }).click();

  await log(page).getByText("Now the file.").waitFor();
  const diff = page.getByRole("group", { name: "Question" });
  await diff.getByText(/add\.py/).first().waitFor();
  await diff.getByRole("button", { name: "Yes" }).click();

  await page.getByRole("group", { name: "Question" }).getByText(/sleep/).waitFor();
  await page.getByRole("button", { name: "Yes" }).click();
  const task = page.getByRole("group", { name: /Task .*count slowly/ });
  await task.getByText("count slowly").waitFor();
  await log(page).getByRole("heading", { name: "Done" }).waitFor();
  await page.getByRole("button", { name: "Cancel" }).waitFor({ state: "hidden" });
  await task.getByRole("button", { name: "Kill" }).click();
  await task.waitFor({ state: "detached" });

  // A call that is opened at the end of the conversation stays where it is.
  const call = page.locator("[role=log] details.call:not([open]) > summary").last();
  await call.scrollIntoViewIfNeeded();
  const { y } = await call.boundingBox();
  await call.click();
  await page.waitForTimeout(200);
  const opened = await page.locator("[role=log] details.call[open] > summary").last().boundingBox();
  assert.ok(Math.abs(opened.y - y) < 3, `the call was at ${y} and is at ${opened.y}`);

  await assertNoDoubles(page);
  const text = await log(page).textContent();
  assert.equal(text.split("Now the file.").length, 2, text);
  // Nothing hangs over the edge of a phone.
  const overflow = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
  assert.ok(overflow <= 0, `the page is ${overflow} pixels too wide`);
  assertClean(page);
});
