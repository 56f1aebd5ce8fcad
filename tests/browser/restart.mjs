// The server is killed in the middle of an answer and comes back: no gap, no double, in two tabs, and nothing of the attempt that was cut.

import assert from "node:assert/strict";
import { ask, assertClean, assertComplete, assertNoDoubles, assertOneStream, log, openConsole, openSession, openTab, say, url, withBrowser } from "./page.mjs";

const GONE = [/Failed to load resource/, /ERR_/];

await withBrowser(async (browser) => {
  const page = await openConsole(browser, { expected: GONE });
  await openSession(page, "restart");
  const other = await openTab(page, GONE);
  await say(page, "Count.");
  for (const tab of [page, other]) await log(tab).getByText(/word10 /).waitFor();

  await ask("kill");
  await page.getByText("The server does not answer.").waitFor();
  // What is written now is sent when the server is back, wherever the person is then.
  await say(page, "Written while the server was away.");
  await page.getByText("The message is sent again until the server has it.").waitFor();
  await page.getByRole("link", { name: "Memory" }).click();
  await page.goto(`${url}/#/session/restart`);
  await ask("start");

  // While the answer comes again, the page has it once.
  for (const tab of [page, other]) {
    await log(tab).getByText(/word5 /).waitFor();
    await assertOnce(tab, "word0 ");
  }
  for (const tab of [page, other]) {
    await log(tab).getByText("Got it.").waitFor();
    await tab.getByRole("button", { name: "Cancel" }).waitFor({ state: "hidden" });
    await assertNoDoubles(tab);
    await assertComplete(tab, "restart");
    for (const word of ["word0 ", "word30 ", "word59", "Written while the server was away."]) await assertOnce(tab, word);
    await tab.getByText("The server does not answer.").waitFor({ state: "hidden" });
    await tab.getByText("The message is sent again").waitFor({ state: "hidden" });
    assert.equal(await tab.getByRole("textbox", { name: "Message" }).inputValue(), "");
    await assertOneStream(tab);
    assertClean(tab);
  }
});

/** What was just added has no rendered text before the next frame, so this reads the text of the elements. */
async function assertOnce(tab, words) {
  const text = await log(tab).textContent();
  assert.equal(text.split(words).length, 2, `${words} in ${text}`);
}
