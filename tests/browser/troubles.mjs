// What goes wrong while the page is open shows as a clear state, and the page recovers by itself.

import assert from "node:assert/strict";
import { ask, log, openConsole, openSession, say, url, withBrowser } from "./page.mjs";

await withBrowser(async (browser) => {
  const page = await openConsole(browser, { expected: [/Failed to load resource/] });

  // A session that is deleted while it is open.
  await openSession(page, "deleted");
  await ask("delete");
  await page.getByText("This session does not exist, or it was deleted.").waitFor();

  // A session that is moved to the trash while it is open, and restored there.
  await page.goto(`${url}/#/`);
  await openSession(page, "trashed");
  await ask("trash");
  await page.getByText("This session is in the trash.").waitFor();
  await page.getByRole("button", { name: "Restore" }).click();
  await page.getByText("This session is in the trash.").waitFor({ state: "detached" });
  await page.getByRole("textbox", { name: "Message" }).waitFor();

  // A session that doesn't exist, and a page that doesn't.
  await page.goto(`${url}/#/session/nobody`);
  await page.getByText("This session does not exist, or it was deleted.").waitFor();
  await page.goto(`${url}/#/nowhere`);
  await page.getByText("There is no such page").waitFor();

  // A hidden tab has no stream. When it is shown again, it has what it missed.
  await page.goto(`${url}/#/`);
  await openSession(page, "hidden");
  await page.evaluate(() => {
    Object.defineProperty(document, "hidden", { configurable: true, get: () => true });
    document.dispatchEvent(new Event("visibilitychange"));
  });
  await ask("send");
  await page.waitForTimeout(1000);
  assert.equal(await log(page).getByText("Said while hidden.").count(), 0);
  await page.evaluate(() => {
    Object.defineProperty(document, "hidden", { configurable: true, get: () => false });
    document.dispatchEvent(new Event("visibilitychange"));
  });
  await log(page).getByText("Said while hidden.").waitFor();

  // Right-to-left text keeps its direction, and the page its own.
  await say(page, "שלום עולם");
  await log(page).getByText("שלום עולם").waitFor();
  assert.equal(await log(page).getByText("שלום עולם").first().evaluate((element) => getComputedStyle(element).direction), "rtl");
  assert.equal(await page.evaluate(() => getComputedStyle(document.body).direction), "ltr");

  // A token that is revoked while the page is open.
  await ask("revoke");
  await page.getByText("The server no longer accepts the token of this page").waitFor();
  await page.getByLabel("Token").waitFor();
});
