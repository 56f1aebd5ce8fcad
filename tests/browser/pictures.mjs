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
  await page.setViewportSize({ width: DESK.width, height: 1180 });
  // The diff, the command and its output, as the text beside the picture says.
  for (const call of await page.locator("[role=log] details.call").all()) await call.evaluate((fold) => (fold.open = true));
  // The conversation follows its end until somebody scrolls.
  await page.waitForTimeout(300);
  await page.getByRole("log").getByText("I write the function").evaluate((element) => element.scrollIntoView({ block: "start" }));
  await page.getByText("1 + 1 is 2", { exact: true }).first().waitFor();
  await page.waitForTimeout(500);
  await page.screenshot({ path: `${folder}/console-session.png` });

  await page.setViewportSize(DESK);
  await page.goto(`${url}/#/session/adder/figures`);
  await page.getByText("Where the time of a turn went").waitFor();
  await page.waitForTimeout(500);
  await page.screenshot({ path: `${folder}/console-figures.png`, fullPage: true });

  await page.goto(`${url}/#/schedules`);
  await page.getByRole("button", { name: "Run now: builds" }).click();
  await page.getByText(/^Last .*: \w+/).waitFor();
  await page.waitForTimeout(500);
  await page.screenshot({ path: `${folder}/console-schedules.png` });

  await page.goto(`${url}/#/session/adder`);
  await say(page, "Has it ever been wrong?");
  const phone = await openConsole(browser, { viewport: PHONE, colorScheme: "dark", deviceScaleFactor: 2 });
  await openSession(phone, "release");
  await say(phone, "Tag the release.");
  await phone.getByRole("group", { name: "Question" }).waitFor();
  await phone.waitForTimeout(1000);
  await phone.screenshot({ path: `${folder}/console-question.png` });
  await page.goto(`${url}/#/`);
  await page.getByRole("heading", { name: "Waiting for you" }).waitFor();
  await page.getByRole("heading", { name: "At work" }).waitFor();
  await page.waitForTimeout(1500);
  await page.screenshot({ path: `${folder}/console-sessions.png` });
});
