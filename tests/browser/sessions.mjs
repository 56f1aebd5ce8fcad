// The life of sessions on the page: waiting messages, forks, renaming, failures, the trash, scopes, alerts.

import assert from "node:assert/strict";
import { ask, assertClean, fetchAsPage, log, openConsole, openSession, say, url, withBrowser } from "./page.mjs";

/** An image of one pixel. */
const DOT = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

await withBrowser(async (browser) => {
  const page = await openConsole(browser, { expected: [/Failed to load resource/], permissions: ["notifications"] });
  await page.evaluate(() => {
    window.told = [];
    window.Notification = class {
      static permission = "granted";
      static requestPermission = async () => "granted";
      constructor(title) {
        window.told.push(title);
      }
    };
    Document.prototype.hasFocus = () => false;
  });
  await page.getByRole("button", { name: "Alerts" }).click();
  await openSession(page, "life");

  // A message that waits stands below the answer that is running, and then where the model gets it.
  await say(page, "Count.");
  await log(page).getByText(/word5 /).waitFor();
  await page.getByRole("combobox", { name: "While a turn is running" }).selectOption("after");
  await page.locator("#files").setInputFiles({ name: "dot.png", mimeType: "image/png", buffer: Buffer.from(DOT, "base64") });
  await page.getByText("dot.png").waitFor();
  await say(page, "And then?");
  await log(page).getByText("waiting: the model has not got it yet").waitFor();
  await assertOrder(page, ["Count.", "word0", "And then?"]);
  await log(page).getByText("Second answer.").waitFor();
  await assertOrder(page, ["Count.", "word29", "And then?", "Second answer."]);
  await page.waitForFunction(() => window.told.includes("life is done"));

  // A fork has the message in its box, with its image, and not the answer to it. Another image is said to be lost.
  await page.route("**/fork", async (route) => {
    const response = await fetchAsPage(route);
    const fork = await response.json();
    await route.fulfill({ response, json: { ...fork, content: { ...fork.content, lost_images: 1 } } });
  });
  await log(page).getByText("And then?").hover();
  await page.getByRole("button", { name: "Fork from here" }).click();
  await page.getByRole("heading", { level: 1, name: "life-fork" }).waitFor();
  await log(page).getByText(/word29/).waitFor();
  assert.equal(await page.getByRole("textbox", { name: "Message" }).inputValue(), "And then?");
  assert.equal(await log(page).getByText("Second answer.").count(), 0);
  await page.getByRole("button", { name: "Remove image 1" }).waitFor();
  await page.getByText("1 image could not be taken along.").waitFor();

  // A session that is renamed while it is open keeps its page, and what was typed.
  await ask("rename life-fork renamed");
  await say(page, "And now?");
  await page.getByRole("heading", { level: 1, name: "renamed" }).waitFor();
  // The Enter may have come while the page changed its address. Then the text is still in the box.
  const box = page.getByRole("textbox", { name: "Message" });
  if ((await box.inputValue()) !== "") await box.press("Enter");
  await log(page).getByText("Second answer.").waitFor();

  // Settings close with Escape, with the keyboard where it was; a refused change is not shown as if it held.
  await page.getByText("Settings").click();
  await page.getByLabel("Pinned").check();
  await page.getByText("Changed.").waitFor();
  await page.getByLabel("Model").fill("nobody/nothing");
  await page.getByLabel("Model").press("Tab");
  await page.getByText(/no provider|no model|nobody/).first().waitFor();
  assert.notEqual(await page.getByLabel("Model").inputValue(), "nobody/nothing");
  await page.keyboard.press("Escape");
  await page.getByLabel("Model").waitFor({ state: "hidden" });

  // An order that has nothing to do says so.
  await page.getByText("Settings").click();
  await page.getByRole("button", { name: "Retry" }).click();
  await page.getByText("nothing to retry: the last turn completed").waitFor();
  await page.keyboard.press("Escape");

  // A turn that failed says so, with its reason, here and in the overview, and can be retried.
  await say(page, "Fail.");
  await log(page).getByText(/^✗ the model failed: the server failed: boom/).waitFor();
  await page.getByText("failed", { exact: true }).waitFor();
  await page.getByRole("button", { name: "Retry" }).last().waitFor();
  await page.goto(`${url}/#/`);
  await page.getByRole("listitem").filter({ hasText: "renamed" }).getByText("failed", { exact: true }).waitFor();

  // The trash.
  await openSession(page, "renamed");
  page.once("dialog", (dialog) => void dialog.accept());
  await page.getByText("Settings").click();
  await page.getByRole("button", { name: "Delete" }).click();
  await page.getByRole("heading", { name: "Sessions" }).waitFor();
  await page.getByRole("link", { name: "renamed" }).waitFor({ state: "detached" });
  await page.getByRole("link", { name: "Trash" }).click();
  await page.getByRole("button", { name: "Restore renamed" }).click();
  await page.getByText("The trash is empty").waitFor();
  await page.goto(`${url}/#/`);
  await page.getByRole("link", { name: "renamed" }).waitFor();
  assertClean(page);

  // A token that may only read sees everything and is offered nothing.
  const reader = await openConsole(browser, { token: process.argv[2] });
  assert.equal(await reader.getByRole("button", { name: "New session" }).count(), 0);
  await openSession(reader, "life");
  await log(reader).getByText("Second answer.").waitFor();
  for (const name of ["Send", "Attach"]) assert.equal(await reader.getByRole("button", { name }).isDisabled(), true);
  assert.equal(await reader.getByRole("textbox", { name: "Message" }).isDisabled(), true);
  assert.equal(await reader.getByRole("button", { name: "Fork from here" }).count(), 0);
  assertClean(reader);

  // Where the browser does not allow alerts, the page says why.
  await reader.evaluate(() => Object.defineProperty(Notification, "permission", { get: () => "denied" }));
  await reader.getByRole("button", { name: "Alerts" }).click();
  await reader.getByText("Notifications are blocked in the settings of this browser.").waitFor();
});

/** These texts are in the conversation in this order. */
async function assertOrder(page, texts) {
  const all = await log(page).textContent();
  const places = texts.map((text) => all.lastIndexOf(text));
  assert.ok(places.every((place, index) => place >= 0 && (index === 0 || place > places[index - 1])), `${texts} at ${places} in ${all}`);
}
