// What a visitor does who knows only the names of things: hops between sessions, opens strange keys, answers in two tabs, cancels, interrupts.

import assert from "node:assert/strict";
import { ask, assertClean, assertNoDoubles, assertOneStream, log, openConsole, openSession, openTab, say, url, withBrowser } from "./page.mjs";

const GONE = [/Failed to load resource/, /ERR_/];
const KEYS = process.argv.slice(2);
const WORDS = 120;

await withBrowser(async (browser) => {
  const page = await openConsole(browser, { expected: GONE });
  await twoAnswers(page);
  await threeKills(page);
  await hop(page);
  await assertOneStream(page);
  await strangeKeys(page);
  assertClean(page);
});

/** The server is killed three times in one answer, and each word of it is there once. */
async function threeKills(page) {
  await page.goto(`${url}/#/`);
  await openSession(page, "killed");
  await say(page, "Count.");
  for (const word of [5, 15, 30]) {
    await log(page).getByText(new RegExp(`word${word} `)).waitFor();
    await ask("kill");
    await ask("start");
  }
  await assertWholeAnswer(page);
  await assertNoDoubles(page);
}

/** Going to and fro while an answer arrives mixes nothing up. */
async function hop(page) {
  await page.goto(`${url}/#/session/left`);
  await say(page, "Count.");
  await log(page).getByText(/word3 /).waitFor();
  for (let times = 0; times < 6; times += 1) {
    for (const key of ["right", "left"]) {
      await page.goto(`${url}/#/session/${key}`);
      await page.waitForTimeout(30 * times);
    }
  }
  await page.goto(`${url}/#/session/right`);
  await page.getByRole("heading", { level: 1, name: "right" }).waitFor();
  await page.getByText("Nothing said yet").waitFor();
  assert.equal(/word/.test(await log(page).textContent()), false);
  await page.goBack();
  await page.getByRole("heading", { level: 1, name: "left" }).waitFor();
  await assertWholeAnswer(page);

  // Cancelled, what came stays, once; an interrupting message ends the turn and gets its answer.
  await say(page, "Once more.");
  await log(page).getByText(/term8 /).waitFor();
  await page.getByRole("button", { name: "Cancel" }).click();
  await page.getByRole("button", { name: "Cancel" }).waitFor({ state: "hidden" });
  await assertOnce(page, "term3 ");
  await say(page, "And again.");
  await log(page).getByText(/item8 /).waitFor();
  await page.getByRole("combobox", { name: "While a turn is running" }).selectOption("interrupt");
  await say(page, "Stop that.");
  await log(page).getByText("I stopped.").waitFor();
  for (const text of ["Stop that.", "item3 ", "I stopped."]) await assertOnce(page, text);
}

/** A key may have any sign that addresses use. */
async function strangeKeys(page) {
  for (const key of KEYS) {
    await page.goto(`${url}/#/`);
    await page.getByRole("link", { name: key }).click();
    await page.getByRole("heading", { level: 1, name: key, exact: true }).waitFor();
    await page.reload();
    await page.getByText("Nothing said yet").waitFor();
  }
}

/** Two tabs answer one question at the same time: one answer counts, and both tabs go on. */
async function twoAnswers(page) {
  await page.goto(`${url}/#/session/asked`);
  const other = await openTab(page, GONE);
  await say(page, "Write.");
  for (const tab of [page, other]) await tab.getByRole("button", { name: "Yes" }).and(tab.locator(":enabled")).waitFor();
  const yes = await page.getByRole("button", { name: "Yes" }).elementHandle();
  const no = await other.getByRole("button", { name: "No", exact: true }).elementHandle();
  await Promise.all([yes, no].map((button) => button.evaluate((element) => element.click())));
  for (const tab of [page, other]) {
    await log(tab).getByText("It is over.").waitFor();
    await tab.getByRole("button", { name: "Yes" }).waitFor({ state: "detached" });
    await assertOnce(tab, "It is over.");
  }
  await other.close();
}

async function assertWholeAnswer(page) {
  await log(page).getByText(new RegExp(`word${WORDS - 1}`)).waitFor();
  await page.getByRole("button", { name: "Cancel" }).waitFor({ state: "hidden" });
  // Markdown drops the space behind the last word.
  for (let word = 0; word < WORDS - 1; word += 1) await assertOnce(page, `word${word} `);
}

async function assertOnce(page, words) {
  const text = await log(page).textContent();
  assert.equal(text.split(words).length, 2, `${words} in ${text}`);
}
