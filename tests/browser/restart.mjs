// The server is killed in the middle of an answer and comes back: no gap, no double, in two tabs.

import assert from "node:assert/strict";
import { ask, assertNoDoubles, log, openConsole, openSession, say, withBrowser } from "./page.mjs";

await withBrowser(async (browser) => {
  const gone = [/Failed to load resource/, /ERR_/];
  const page = await openConsole(browser, { expected: gone });
  await openSession(page, "restart");
  const other = await page.context().newPage();
  await other.goto(page.url());
  await say(page, "Count.");
  for (const tab of [page, other]) await log(tab).getByText(/word10 /).waitFor();

  await ask("kill");
  await page.getByText("The server does not answer.").waitFor();
  await ask("start");

  for (const tab of [page, other]) {
    await log(tab).getByText(/word59/).waitFor();
    await tab.getByRole("button", { name: "Cancel" }).waitFor({ state: "hidden" });
    await assertNoDoubles(tab);
    // What was just added has no rendered text before the next frame.
    const text = await log(tab).textContent();
    for (const word of ["word0 ", "word30 ", "word59"]) assert.equal(text.split(word).length, 2, `${word} in ${text}`);
    await tab.getByText("The server does not answer.").waitFor({ state: "hidden" });
  }
  assert.deepEqual(page.errors, []);
});
