// A question is shown once, in the session and in the overview; the message box answers it; no click answers a question that nobody has seen.

import assert from "node:assert/strict";
import { ask, assertClean, assertOneStream, log, openConsole, openSession, say, url, withBrowser } from "./page.mjs";

await withBrowser(async (browser) => {
  const page = await openConsole(browser);
  const question = page.getByRole("group", { name: "Question" });
  await openSession(page, "asked");
  await say(page, "Write an adder.");
  await question.getByText(/seq 1 3/).waitFor();
  assert.equal(await page.locator("main").getByText(/May exec run/).count(), 1);

  // The box says what a text does, keeps its name, and answers.
  await page.getByText("it is a no, with your text as the reason").waitFor();
  await say(page, "not like this, please");
  await log(page).getByText("answer: not like this, please").waitFor();
  await log(page).getByText("the user did not say yes, but: not like this, please").first().waitFor({ state: "attached" });

  // The diff of an edit is there once, and its characters can't lie about their order.
  await question.getByText("return a + b").waitFor();
  assert.equal(await page.locator("main").getByText("return a + b").count(), 1);
  assert.equal((await question.textContent()).includes("\u202e"), false);

  // In the overview nobody sees the diff, so there is no yes: a link leads to it.
  await page.goto(`${url}/#/`);
  const row = page.getByRole("listitem").filter({ hasText: "asked" });
  const link = row.getByRole("link", { name: "See the change and answer" });
  await link.waitFor();
  assert.equal(await row.getByRole("button").count(), 0);

  // A question that opens elsewhere moves no other, and can't be answered at once.
  const place = await link.boundingBox();
  const statuses = [];
  page.on("request", (request) => /\/api\/sessions\/[^/?]+$/.test(request.url()) && statuses.push(request.url()));
  await ask("ask elsewhere");
  const other = page.getByRole("listitem").filter({ hasText: "elsewhere" });
  await other.getByText(/seq 1 3/).waitFor();
  assert.equal(await other.getByRole("button", { name: "Yes" }).isDisabled(), true);
  assert.deepEqual(await link.boundingBox(), place);
  await other.getByRole("button", { name: "Always in this session" }).waitFor();
  await other.getByRole("button", { name: "No", exact: true }).click();
  await other.getByRole("link", { name: "See the change and answer" }).waitFor();
  assert.deepEqual(statuses, []);

  // The link leads to the diff and its buttons.
  await link.click();
  await question.getByText("return a + b").waitFor();
  await question.getByRole("button", { name: "Yes" }).click();
  await question.getByText("sleep 300").waitFor();
  await question.getByRole("button", { name: "No", exact: true }).click();

  // Only a whole word is a yes.
  await page.goto(`${url}/#/session/elsewhere`);
  await question.getByText("return a + b").waitFor();
  await say(page, "a");
  await log(page).getByText("answer: a.").waitFor();
  await assertOneStream(page);
  assertClean(page);
});
