// What the page says while the engine is away, of what there is not, and on a narrow screen.
import { accessible, check, click, until, visit } from "./page.mjs";

/** Tabs that nobody sees hold no stream: hidden and seen again, the page opens it anew. */
async function openAnew(page) {
  await page.evaluate(() => {
    const turn = (hidden) => {
      Object.defineProperty(document, "hidden", { value: hidden, configurable: true });
      document.dispatchEvent(new Event("visibilitychange"));
    };
    turn(true);
    turn(false);
  });
}

export async function away(page) {
  await visit(page, "vdbs", "VDBs");
  const table = page.getByRole("region", { name: "VDBs by parent" });
  await table.waitFor();
  await page.route("**/api/v1/**", (route) => route.abort());
  const before = page.complaints.length;
  await openAnew(page);
  const said = page.getByRole("status").getByText("the engine does not answer");
  await said.waitFor();
  await page.getByText("not live").waitFor();
  check((await table.count()) === 1, "what was known stays");
  await accessible(page, "a page whose engine is away");
  // What is asked meanwhile says the same, until somebody has read it.
  await page.getByRole("button", { name: /^stop / }).first().click();
  const toast = page.locator(".toast", { hasText: "the engine does not answer" });
  await toast.getByRole("button", { name: /^close: / }).click();
  await toast.waitFor({ state: "detached" });
  await page.unrouteAll({ behavior: "ignoreErrors" });
  await said.waitFor({ state: "detached" });
  await until("the stream is there again", async () => (await page.locator(".live").textContent()) === "live");
  // Browsers complain of each request that failed.
  page.complaints.splice(before);
}

/** Nobody is left where there is nothing. */
export async function deadEnds(page) {
  await visit(page, "nowhere", "Not found");
  await page.getByRole("main").getByRole("link", { name: "overview" }).click();
  await page.getByRole("heading", { level: 1, name: "Overview" }).waitFor();
  await visit(page, "dsources/nothing", "nothing");
  await page.getByRole("alert").getByText("there is no dSource named 'nothing'").waitFor();
  check((await page.getByRole("button", { name: "Provision…" }).count()) === 0, "nothing is provisioned from what is not there");
  await page.getByRole("link", { name: "All dSources" }).click();
  await page.getByRole("heading", { level: 1, name: "dSources" }).waitFor();
  await visit(page, "vdbs/nothing", "nothing");
  await page.getByRole("main").getByRole("link", { name: "jobs" }).waitFor();
}

/** The theme is chosen, and kept. */
export async function theme(page) {
  await visit(page, "overview", "Overview");
  const is = () => page.evaluate(() => document.documentElement.dataset.theme);
  check((await is()) === "light", "it is as the system has it");
  await click(page, "Dark");
  check((await is()) === "dark", "and as somebody chooses");
  await page.reload();
  await page.locator("div.figures").waitFor();
  check((await is()) === "dark", "also later");
  await click(page, "Light");
  await page.evaluate(() => localStorage.clear());
}

const LONG = "a-very-long-name-that-somebody-gave-to-a-database-of-pr-1234567";

/** Every view on a small telephone: nothing stands out of the page, what is cut can be read. */
export async function narrow(page, views) {
  const before = page.viewportSize();
  await page.setViewportSize({ width: 360, height: 740 });
  await page.route("**/api/v1/vdbs", async (route) => {
    const answer = await route.fetch();
    const { vdbs } = await answer.json();
    await route.fulfill({ json: { vdbs: [...vdbs, { ...vdbs[0], id: "vdb-999", name: LONG }] } });
  });
  for (const view of [...views, "dsources/shop", `vdbs/${LONG}`]) {
    await page.goto(`${page.origin}/#/${view}`);
    await page.waitForTimeout(500);
    const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
    check(wide <= 0, `nothing of ${view} stands out of a narrow screen: ${wide} px`);
  }
  await visit(page, "vdbs", "VDBs");
  const link = page.getByRole("link", { name: LONG, exact: true });
  await link.hover();
  check((await link.getAttribute("title")) === LONG, "a name that is cut is told");
  await page.setViewportSize({ width: 300, height: 740 });
  await page.locator(".table.more").waitFor();
  await page.unrouteAll({ behavior: "ignoreErrors" });
  await page.setViewportSize(before);
}
