// The tree of subagents: in the list of sessions, on the parent's page, and in each conversation.

import assert from "node:assert/strict";
import { DESK, PHONE, assertAccessible, assertClean, log, openConsole, openSession, url, withBrowser } from "./page.mjs";

await withBrowser(async (browser) => {
  const page = await openConsole(browser, { bypassCSP: true });
  const list = page.locator(".session-lists");

  // A session has one row, with its subagents inside.
  const summary = list.getByText("2 subagents, 1 at work");
  await summary.waitFor();
  assert.equal(await list.locator(".session").count(), 1);
  await list.getByRole("heading", { name: "At work" }).waitFor();
  await summary.click();
  await list.getByRole("link", { name: "Count the files." }).waitFor();
  await assertAccessible(page, "the sessions");

  // A search finds each, and says whose it is.
  await page.getByRole("searchbox").fill("Count the files");
  await list.getByText(/subagent of parent/).first().waitFor();
  await page.getByRole("searchbox").fill("");

  // A running one has a card in its parent's conversation, which leads to its own and back.
  await openSession(page, "parent");
  const card = page.getByRole("group", { name: /Task Read <b>all<\/b> of them/ });
  await card.getByRole("link").click();
  await log(page).getByRole("heading", { name: /^Turn 1 by the parent agent/ }).waitFor();
  await log(page).getByText("from parent agent").waitFor();
  await page.getByText("Subagent of").getByRole("link", { name: "parent" }).click();
  await page.getByRole("link", { name: "Subagents (2)" }).click();

  const running = page.getByRole("group", { name: /Subagent Read/ });
  const ended = page.getByRole("group", { name: "Subagent Count the files." });
  await ended.getByText("completed").waitFor();
  assert.equal(await ended.getByRole("button", { name: "Stop" }).count(), 0);
  await running.getByText("running").waitFor();
  await assertAccessible(page, "the tree");
  await running.getByRole("button", { name: "Stop" }).click();
  await running.getByText("killed", { exact: true }).waitFor();
  await ended.getByRole("link").click();
  await log(page).getByText("Seven files.").waitFor();

  // The ends of the two began turns of the parent, which say so.
  await page.getByText("Subagent of").getByRole("link", { name: "parent" }).click();
  await log(page).getByRole("heading", { name: /by the end of a subagent/ }).first().waitFor();
  assertClean(page);

  for (const [viewport, colorScheme] of [[DESK, "dark"], [PHONE, "light"]]) {
    const other = await openConsole(browser, { viewport, colorScheme, bypassCSP: true });
    await other.goto(`${url}/#/session/parent/agents`);
    await other.getByText("killed", { exact: true }).waitFor();
    assert.ok(await other.evaluate(() => document.documentElement.scrollWidth <= window.innerWidth), "nothing is wider than the window");
    await assertAccessible(other, colorScheme);
    assertClean(other);
    await other.context().close();
  }
});
