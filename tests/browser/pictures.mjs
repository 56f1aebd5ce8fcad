// The pictures of the console in docs/pictures, made by scripts/pictures.

import { DESK, PHONE, openConsole, openSession, say, url, withBrowser } from "./page.mjs";

const folder = process.argv[2];

await withBrowser(async (browser) => {
  const page = await openConsole(browser, { viewport: DESK });
  await openSession(page, "adder");
  await say(page, "Write an adder with a test, and keep the tests running.");
  await page.getByRole("button", { name: "Yes" }).click();
  await page.getByText("a task keeps checking").waitFor();
  await page.getByRole("button", { name: "Cancel" }).waitFor({ state: "hidden" });
  await page.locator("[role=log] details.call > summary", { hasText: "write_file" }).first().click();
  await page.getByRole("log").evaluate((element) => element.scrollTo(0, element.scrollHeight));
  await page.waitForTimeout(500);
  await page.screenshot({ path: `${folder}/console-session.png` });

  await page.goto(`${url}/#/session/adder/figures`);
  await page.getByText("Where the time of a turn went").waitFor();
  await page.waitForTimeout(500);
  await page.screenshot({ path: `${folder}/console-figures.png` });

  const phone = await openConsole(browser, { viewport: PHONE, colorScheme: "dark", deviceScaleFactor: 2 });
  await openSession(phone, "release");
  await say(phone, "Tag the release.");
  await phone.getByRole("group", { name: "Question" }).waitFor();
  await phone.waitForTimeout(500);
  await phone.screenshot({ path: `${folder}/console-question.png` });
  await page.goto(`${url}/#/`);
  await page.getByRole("heading", { name: "Waiting for you" }).waitFor();
  await page.waitForTimeout(500);
  await page.screenshot({ path: `${folder}/console-sessions.png` });
});
