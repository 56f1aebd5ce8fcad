// What goes wrong while the page is open shows as a clear state, and the page recovers by itself.

import assert from "node:assert/strict";
import { ask, assertOneStream, fetchAsPage, log, openConsole, openSession, say, url, withBrowser } from "./page.mjs";

const HOUR_MS = 60 * 60 * 1000;
const EXPECTED = [/Failed to load resource/, /ERR_/];

await withBrowser(async (browser) => {
  const page = await openConsole(browser, { expected: EXPECTED });
  const box = page.getByRole("textbox", { name: "Message" });

  // A session that is deleted while it is open.
  await openSession(page, "deleted");
  await ask("delete");
  await page.getByText("This session does not exist, or it was deleted.").waitFor();
  assert.equal(await box.isDisabled(), true);

  // A session that is moved to the trash while it is open, and restored here; then the same, restored elsewhere.
  await page.goto(`${url}/#/`);
  await openSession(page, "trashed");
  await ask("trash");
  await page.getByText("This session is in the trash.").waitFor();
  await page.getByRole("button", { name: "Restore" }).click();
  await page.getByText("This session is in the trash.").waitFor({ state: "detached" });
  await page.waitForFunction(() => !document.querySelector("textarea").disabled);
  await ask("trash");
  await page.getByText("This session is in the trash.").waitFor();
  await ask("restore");
  await page.getByText("This session is in the trash.").waitFor({ state: "detached" });
  await page.waitForFunction(() => !document.querySelector("textarea").disabled);

  // A session that doesn't exist, and pages that don't.
  await page.goto(`${url}/#/session/nobody`);
  await page.getByText("This session does not exist, or it was deleted.").waitFor();
  for (const path of ["nowhere", "constructor", "session"]) {
    await page.goto(`${url}/#/${path}`);
    await page.getByText("There is no such page").waitFor();
  }

  // A hidden tab has no stream. When it is shown again, it has what it missed.
  await page.goto(`${url}/#/`);
  await openSession(page, "hidden");
  await page.waitForFunction(() => window.streams.open === 1);
  await setHidden(page, true);
  await page.waitForFunction(() => window.streams.open === 0);
  await ask("send");
  assert.equal(await log(page).getByText("Said while hidden.").count(), 0);
  await setHidden(page, false);
  await log(page).getByText("Said while hidden.").waitFor();

  // Right-to-left text keeps its direction, and the page its own.
  await say(page, "שלום עולם");
  await log(page).getByText("שלום עולם").waitFor();
  // The message is drawn again when the model gets it.
  await page.waitForFunction(() => {
    const said = [...document.querySelectorAll("[role=log] .said")].find((element) => element.textContent.includes("שלום עולם"));
    return said && getComputedStyle(said).direction === "rtl";
  });
  assert.equal(await page.evaluate(() => getComputedStyle(document.body).direction), "ltr");
  await page.getByRole("button", { name: "Cancel" }).waitFor({ state: "hidden" });

  // Ten megabytes of output, and a list of thousands of items.
  await say(page, "Print much.");
  await log(page).getByText("item 4999").waitFor();
  await page.locator("[role=log] details.call > summary").last().click();
  const size = await log(page).evaluate((element) => element.textContent.length);
  assert.ok(size > 10_000 && size < 500_000, `${size} characters are shown`);
  await say(page, "Go on.");
  await log(page).getByText("Still quick.").waitFor();
  await assertOneStream(page);

  await unknownKinds(browser);
  await wrongClock(browser);
  await longAbsence(browser);
  await hiddenAlerts(browser);

  // A token that is revoked while the page is open; a reload says the same.
  await ask("revoke");
  for (const _ of ["open", "reloaded"]) {
    await page.getByText("The server no longer accepts the token of this page").waitFor();
    await page.getByLabel("Token").waitFor();
    await page.reload();
  }
});

/** Tells the page that its tab is hidden, or that it is shown. */
async function setHidden(page, isHidden) {
  await page.evaluate((now) => {
    Object.defineProperty(document, "hidden", { configurable: true, get: () => now });
    document.dispatchEvent(new Event("visibilitychange"));
  }, isHidden);
}

/** Blocks, events and states of a newer server. */
async function unknownKinds(browser) {
  const page = await openConsole(browser, { expected: EXPECTED });
  await page.route("**/transcript*", async (route) => {
    const response = await fetchAsPage(route);
    const body = await response.json();
    const future = { id: 900, seq: body.through, turn: 1, started_at: 0, ended_at: 0, state: "from_the_future", ended_by: body.through };
    body.items.push({ ...future, content: { type: "from_the_future" }, html: '<article class="block from_the_future">A block of a newer server.</article>' });
    body.items.push({ ...future, content: null, html: "" });
    await route.fulfill({ response, json: body });
  });
  await page.route("**/api/sessions/hidden", async (route) => {
    const response = await fetchAsPage(route);
    await route.fulfill({ response, json: { ...(await response.json()), state: "from_the_future" } });
  });
  await page.route("**/events*", (route) => route.fulfill({ contentType: "text/event-stream", body: 'id: 1\ndata: {"type":"from_the_future","seq":1,"at":"2030-01-01T00:00:00Z"}\n\n' }));
  await page.goto(`${url}/#/session/hidden`);
  await log(page).getByText("A block of a newer server.").first().waitFor();
  await log(page).getByText("Said while hidden.").waitFor();
  await page.getByText("from_the_future", { exact: true }).waitFor();
  assert.deepEqual(page.errors, []);
  await page.context().close();
}

/** A browser whose clock is an hour fast shows times by the server's clock. */
async function wrongClock(browser) {
  const page = await openConsole(browser, { expected: EXPECTED });
  await page.clock.install({ time: Date.now() + HOUR_MS });
  await page.reload();
  const row = page.getByRole("listitem").filter({ hasText: "hidden" });
  await row.getByText(/now|[0-9] min ago/).waitFor();
  await page.goto(`${url}/#/session/hidden`);
  await log(page).getByText("Still quick.").waitFor();
  assert.deepEqual(page.errors, []);
  await page.context().close();
}

/** The server is away for an hour. */
async function longAbsence(browser) {
  const page = await openConsole(browser, { expected: EXPECTED });
  await page.clock.install();
  await page.reload();
  await openSession(page, "hidden");
  await log(page).getByText("Still quick.").waitFor();
  await ask("kill");
  await page.getByText("The server does not answer.").waitFor();
  for (let minute = 0; minute < 60; minute += 1) await page.clock.fastForward("01:00");
  await page.getByText("The server does not answer.").waitFor();
  assert.equal(await page.getByText("Longhaul was updated").count(), 0);
  await page.route("**/api/login", (route) => route.fulfill({ json: { token: "page", scope: "admin", version: "another" } }));
  await ask("start");
  await page.clock.fastForward("00:30");
  await page.getByText("The server does not answer.").waitFor({ state: "hidden" });

  // It comes back with another version of the page.
  await page.getByText("Longhaul was updated").waitFor();
  await page.unroute("**/api/login");
  await page.getByRole("button", { name: "Reload" }).click();
  await page.getByText("Longhaul was updated").waitFor({ state: "detached" });
  await log(page).getByText("Still quick.").waitFor();
  await say(page, "Back?");
  await log(page).getByText("Back.", { exact: true }).waitFor();

  // A stream that is open and says nothing any more, not even that it lives.
  await page.waitForFunction(() => window.streams.pings > 0);
  await page.evaluate(() => (window.streams.last.isSilent = true));
  await ask("say more");
  await page.clock.fastForward("00:30");
  assert.equal(await log(page).getByText("Good.", { exact: true }).count(), 0);
  await page.clock.fastForward("00:15");
  await log(page).getByText("Good.", { exact: true }).waitFor();
  await page.getByText("Todo: 1 of 2 done, now: mop").waitFor();
  assert.deepEqual(page.errors, []);
  await page.context().close();
}

/** A hidden tab tells of what happens to people who want alerts, and asks for nothing otherwise. */
async function hiddenAlerts(browser) {
  const page = await openConsole(browser, { expected: EXPECTED, permissions: ["notifications"] });
  await page.clock.install();
  await page.addInitScript(() => {
    window.told = [];
    window.Notification = class {
      static permission = "granted";
      static requestPermission = async () => "granted";
      constructor(title, { body }) {
        window.told.push(`${title}: ${body}`);
      }
    };
  });
  await page.reload();
  await page.getByRole("heading", { name: "Sessions" }).waitFor();
  const looks = [];
  const known = { id: "01", session_id: "a", session: "asker", text: "Known?" };
  await page.route("**/api/questions*", (route) => {
    looks.push(route.request().url());
    return route.fulfill({ json: { items: looks.length === 1 ? [known] : [known, { ...known, id: "02", text: "New?" }], next: null } });
  });
  await page.route("**/api/sessions?*state=working*", (route) => route.fulfill({ json: { items: looks.length <= 1 ? [{ id: "b", key: "worker" }] : [], next: null } }));
  await page.route("**/api/sessions/b", (route) => route.fulfill({ json: { last_outcome: "failed", failure: "no key" } }));

  await setHidden(page, true);
  for (let minute = 0; minute < 3; minute += 1) await page.clock.fastForward("01:00");
  await setHidden(page, false);
  assert.deepEqual(looks, []);

  await page.getByRole("button", { name: "Alerts" }).click();
  const isAnswered = page.waitForResponse(/state=working/);
  await setHidden(page, true);
  await isAnswered;
  assert.deepEqual(await page.evaluate(() => window.told), []);
  await page.clock.fastForward("01:00");
  await page.waitForFunction(() => window.told.length === 2);
  assert.deepEqual(await page.evaluate(() => window.told.toSorted()), ["asker asks: New?", "worker failed: no key"]);
  assert.deepEqual(page.errors, []);
  await page.context().close();
}
