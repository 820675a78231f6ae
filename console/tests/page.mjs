// What flows are written with: a browser, a page whose every complaint counts, and the command line beside it.
import axe from "axe-core";
import { chromium } from "playwright-core";
import { execFileSync } from "node:child_process";
import { existsSync } from "node:fs";

const BIN = process.env.OFFSHOOT_BIN;
const WAIT_MS = 60_000;

/** Commands of an engine's own command line; what it answers. */
export const engineOf = (pool) => (...args) => JSON.parse(execFileSync(BIN, [...args, "--json"], { encoding: "utf8", env: { ...process.env, OFFSHOOT_POOL: pool } }));
/** Those of the engine that flows try. */
export const offshoot = engineOf(process.env.OFFSHOOT_POOL);

/** A query by psql, as a user would ask it with what the console copied. */
export function psql(uri, query) {
  return execFileSync("psql", [uri, "-AtXc", query], { encoding: "utf8" }).trim();
}

/** What a VDB answers, if it runs at the moment. */
export const answered = (ask) => {
  try {
    return ask();
  } catch {
    return false;
  }
};

export function check(holds, what) {
  if (!holds) throw new Error(`does not hold: ${what}`);
}

export async function until(what, holds, limit = WAIT_MS) {
  const end = Date.now() + limit;
  for (;;) {
    const seen = await holds();
    if (seen) return seen;
    if (Date.now() > end) throw new Error(`not within ${limit} ms: ${what}`);
    await new Promise((done) => setTimeout(done, 100));
  }
}

/** How many times as long as alone work takes on this host at the moment, as others use its processors, too. */
export function crowded() {
  const [begun, used] = [performance.now(), process.cpuUsage()];
  const spent = () => {
    const { user, system } = process.cpuUsage(used);
    return (user + system) / 1000;
  };
  while (spent() < 200);
  return Math.max(1, (performance.now() - begun) / spent());
}

/** A browser of its own with one page. */
export async function open(options = {}) {
  const path = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"].find(existsSync);
  const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? path, args: ["--no-sandbox", "--disable-dev-shm-usage"] });
  const context = await browser.newContext({ viewport: { width: 1280, height: 860 }, ...options });
  await context.grantPermissions(["clipboard-read", "clipboard-write"]);
  const page = await context.newPage();
  page.setDefaultTimeout(WAIT_MS / 2);
  const complaints = [];
  const foreign = [];
  page.on("pageerror", (error) => complaints.push(`error: ${error.message}`));
  page.on("console", (message) => {
    const text = message.text();
    // An answer that refuses is no complaint of the page.
    if (message.type() === "error" && !text.includes("the server responded with a status of")) complaints.push(text);
  });
  page.on("request", (request) => {
    const { origin, protocol } = new URL(request.url());
    if (protocol.startsWith("http") && origin !== page.origin) foreign.push(request.url());
  });
  return Object.assign(page, { browser, complaints, foreign });
}

/** Signs in by a fresh link; how long after opening it the first view was painted with its figures, by the browser's clock. */
export async function signIn(page, engine = offshoot) {
  const { url } = engine("console");
  page.origin = new URL(url).origin;
  await page.addInitScript(() => {
    if (!location.hash.startsWith("#code=")) return;
    const painted = () => performance.mark("figures");
    const watch = new MutationObserver(() => {
      if (!document.querySelector("div.figures")) return;
      watch.disconnect();
      requestAnimationFrame(() => setTimeout(painted));
    });
    watch.observe(document, { childList: true, subtree: true });
  });
  await page.goto(url);
  await page.getByRole("heading", { name: "Overview" }).waitFor();
  await page.locator("div.figures").waitFor();
  const mark = await page.waitForFunction(() => performance.getEntriesByName("figures")[0]?.startTime);
  return { url, ms: Math.round(await mark.jsonValue()) };
}

/** Signs in by a user's token. */
export async function signInBy(page, origin, token) {
  page.origin = origin;
  await page.goto(origin);
  await page.getByLabel("Your token, or such a link").fill(token);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByRole("heading", { name: "Overview" }).waitFor();
}

export async function visit(page, where, heading) {
  await page.goto(`${page.origin}/#/${where}`);
  await page.getByRole("heading", { level: 1, name: heading, exact: true }).waitFor();
}

/** A button by its name, whatever else is like it. */
export const click = (page, name) => page.getByRole("button", { name, exact: true }).first().click();

/** Fills a dialog and does what it asks for. */
export async function answer(page, title, fields, verb) {
  const dialog = page.getByRole("dialog", { name: title });
  await dialog.waitFor();
  const folded = dialog.locator("details:not([open]) > summary");
  while ((await folded.count()) > 0) await folded.first().click();
  for (const [label, value] of Object.entries(fields)) {
    const field = dialog.getByLabel(label, { exact: true });
    const kind = await field.evaluate((element) => element.type);
    if (kind === "fieldset") for (const one of value) await field.getByLabel(one, { exact: true }).check();
    else if (kind.startsWith("select")) await field.selectOption(value);
    else if (kind === "checkbox") await field.setChecked(value);
    else await field.fill(value);
  }
  await dialog.getByRole("button", { name: verb, exact: true }).click();
  await dialog.waitFor({ state: "detached" });
}

/** A picture for the documents. */
export async function picture(page, name) {
  const before = page.viewportSize();
  await page.setViewportSize({ width: 1180, height: 820 });
  await page.waitForTimeout(1500);
  await page.screenshot({ path: `${process.env.PICTURES}/${name}.png` });
  await page.setViewportSize(before);
}

/** Waits for the newest job of a kind to be done. */
export async function jobDone(kind, object) {
  await until(`${kind} of ${object} is done`, () => {
    const job = offshoot("job", "list").jobs.find((one) => one.kind === kind && (!object || one.object === object));
    if (job && ["failed", "cancelled"].includes(job.state)) throw new Error(`${kind} of ${object} ${job.state}: ${job.error?.message}`);
    return job?.state === "done";
  });
}

/** No finding of axe that is serious or worse. */
export async function accessible(page, where) {
  // Evaluated by the debugger's way, which the page's policy does not forbid; no script is added to the page.
  await page.evaluate(axe.source);
  const { violations } = await page.evaluate(() => globalThis.axe.run(document, { resultTypes: ["violations"] }));
  const serious = violations.filter((one) => ["serious", "critical"].includes(one.impact));
  const told = serious.map((one) => `${one.id}: ${one.nodes.map((node) => node.html.slice(0, 160)).join(" | ")}`);
  check(serious.length === 0, `${where} is accessible: ${told.join("; ")}`);
}
