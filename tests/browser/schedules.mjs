// Schedules on the page: what they do, the buttons and the form, a token that may only read, and heartbeats in a conversation.

import assert from "node:assert/strict";
import { DESK, PHONE, ask, assertAccessible, assertClean, assertComplete, log, openConsole, openSession, url, withBrowser } from "./page.mjs";

const PAYLOAD = "<img src=x onerror=window.attacked=true>";

await withBrowser(async (browser) => {
  const page = await openConsole(browser, { expected: [/Failed to load resource/], bypassCSP: true });
  const row = (name) => page.getByRole("listitem").filter({ has: page.getByText(name, { exact: true }) });
  const press = (text, name) => page.getByRole("button", { name: `${text}: ${name}` }).click();
  await page.getByRole("link", { name: "Schedules" }).click();
  await page.getByRole("heading", { name: "Schedules" }).waitFor();

  // A schedule of the config runs and pauses here, and is changed there.
  await row("nightly").getByText("0 3 * * *").waitFor();
  await row("nightly").getByText("Set in the config, and changed there.").waitFor();
  assert.equal(await page.getByRole("button", { name: /^(Change|Delete): nightly/ }).count(), 0);
  await press("Pause", "nightly");
  await row("nightly").getByText("paused", { exact: true }).waitFor();
  // The keyboard goes to the button that took the place of the other.
  await page.waitForFunction(() => document.activeElement?.textContent === "Resume");
  await page.keyboard.press("Enter");
  await row("nightly").getByText("waiting", { exact: true }).waitFor();

  // What the server refuses stands at the form, in its words, and what was written stays.
  await page.getByRole("button", { name: "New schedule" }).click();
  const form = page.getByRole("form", { name: "New schedule" });
  await form.getByLabel("Name").fill("builds");
  await form.getByLabel("When").selectOption("every");
  await form.getByLabel("Time", { exact: true }).fill("soon");
  await form.getByLabel("What the agent is asked to do").fill(`Look at the builds. ${PAYLOAD}`);
  await form.getByRole("button", { name: "Add" }).click();
  await form.getByRole("alert").getByText(/schedule builds: .*soon/).waitFor();
  await form.getByText("More").click();
  await form.getByLabel("US dollars per run").fill("0.5");
  await form.getByLabel("While the run before goes on").selectOption("skip");
  await form.getByLabel("Time", { exact: true }).fill("2h");
  await assertAccessible(page, "the form");
  await form.getByRole("button", { name: "Add" }).click();
  await row("builds").getByText("every 2h").waitFor();
  await row("builds").getByText(PAYLOAD).waitFor();
  await row("builds").getByText("It has not run yet.").waitFor();
  assert.equal(await form.count(), 0);
  const made = await page.evaluate(async () => (await fetch("/api/schedules/builds")).json());
  assert.deepEqual([made.cost_per_run, made.overlap, made.missed, made.grace, made.enabled], [0.5, "skip", "latest", "1h", true]);

  // A run leads to its session, whose turn says that a schedule began it.
  await press("Run now", "builds");
  await row("builds").getByText(/Last .*: completed/).waitFor();
  await row("builds").getByRole("link").last().click();
  await log(page).getByRole("heading", { name: /^Turn 1 by a schedule/ }).waitFor();
  await log(page).getByText("The builds are fine.").waitFor();
  await page.goBack();

  // Changing keeps what isn't changed; what is emptied is unset.
  await press("Change", "builds");
  const change = page.getByRole("form", { name: "Change the schedule" });
  await change.getByLabel("When").selectOption("cron");
  await change.getByLabel("Time", { exact: true }).fill("0 7 * * 1-5");
  await change.getByLabel("Time zone").fill("Europe/Nowhere");
  await change.getByRole("button", { name: "Save" }).click();
  await change.getByRole("alert").getByText(/Europe\/Nowhere/).waitFor();
  await change.getByLabel("Time zone").fill("Europe/Paris");
  await change.getByRole("button", { name: "Save" }).click();
  await row("builds").getByText("0 7 * * 1-5, Europe/Paris").waitFor();
  const changed = await page.evaluate(async () => (await fetch("/api/schedules/builds")).json());
  assert.deepEqual([changed.every, changed.cost_per_run, changed.overlap], [undefined, 0.5, "skip"]);

  page.once("dialog", (dialog) => dialog.dismiss());
  await press("Delete", "builds");
  await row("builds").waitFor();
  page.once("dialog", (dialog) => dialog.accept());
  await press("Delete", "builds");
  await row("builds").waitFor({ state: "detached" });
  assert.equal(await page.evaluate(() => window.attacked), undefined);
  await assertAccessible(page, "the list");

  await heartbeats(page);
  assertClean(page);
  await page.context().close();
  await reader(browser);
});

/** Quiet heartbeats are one line, wherever the page begins; one that found something is a turn like any other. */
async function heartbeats(page) {
  await page.goto(`${url}/#/`);
  await openSession(page, "pulse");
  await ask("pulse 2");
  await log(page).getByText("A heartbeat found nothing to do").waitFor();
  await ask("pulse 3");
  const fold = log(page).getByText("2 heartbeats found nothing to do");
  await fold.waitFor();
  assert.equal(await log(page).getByText("Is there news?").first().isVisible(), false);
  await assertComplete(page, "pulse");
  await fold.click();
  await log(page).getByRole("heading", { name: /^Turn 3 by a schedule/ }).waitFor();
  await ask("pulse 4");
  await log(page).getByText("Look there.").waitFor();
  assert.equal(await log(page).getByText(/found nothing to do/).count(), 1);
  await page.reload();
  await fold.waitFor();
  await assertComplete(page, "pulse");

  // Wherever a page begins, the blocks that come before it find their fold.
  let limit = 0;
  await page.route("**/transcript?limit=60", (route) => route.continue({ url: route.request().url().replace("limit=60", `limit=${limit}`) }));
  for (limit = 1; limit < 14; limit += 2) {
    await page.reload();
    await log(page).getByText("Hello.").waitFor();
    await log(page).getByText("Look there.").waitFor();
    await fold.waitFor();
    await assertComplete(page, "pulse");
    for (const turn of [2, 3]) assert.equal(await page.locator(".quiet-turns").getByText(new RegExp(`^Turn ${turn} by`)).count(), 1);
  }
  await assertAccessible(page, "heartbeats");
}

/** A token that may only read sees everything, and has no buttons. */
async function reader(browser) {
  for (const [viewport, colorScheme] of [[DESK, "light"], [PHONE, "dark"]]) {
    const page = await openConsole(browser, { viewport, colorScheme, token: process.argv[2], bypassCSP: true });
    await page.goto(`${url}/#/schedules`);
    await page.getByText("0 3 * * *").waitFor();
    await page.getByText("Changing these needs a token of scope admin.").waitFor();
    assert.equal(await page.locator("main").getByRole("button").count(), 0);
    assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= window.innerWidth), "nothing is wider than the window");
    await assertAccessible(page, colorScheme);
    assertClean(page);
    await page.context().close();
  }
}
