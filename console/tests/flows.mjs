// What a user does with the console, in a real browser: `node flows.mjs short|whole|more`. OFFSHOOT_BIN and OFFSHOOT_POOL
// name the engine; a dSource `shop` is linked there, and somebody writes to its source.
import { readFileSync } from "node:fs";
import { accessible, answer, answered, check, click, crowded, jobDone, offshoot, open, picture, psql, signIn, signInBy, until, visit } from "./page.mjs";
import { scale } from "./scale.mjs";
import { archives } from "./archives.mjs";
import { away, deadEnds, narrow, theme } from "./away.mjs";
import { replication } from "./engines.mjs";
import { groups } from "./groups.mjs";
import { above, points } from "./points.mjs";
import { roles } from "./roles.mjs";
import { bisect, diff, prices } from "./searches.mjs";
import { keys, webhooks } from "./told.mjs";
import { changes, gateway, hooks, kept, templates } from "./vdb.mjs";

const whole = process.argv[2] === "whole";
const page = await open();
const views = ["overview", "dsources", "vdbs", "jobs", "snapshots", "bookmarks", "bisect", "diff", "templates", "policies", "groups", "masks", "pool", "replication", "users", "tokens", "webhooks", "keys", "audit"];

const copied = async (name) => {
  await page.getByRole("button", { name: "Copy URI: the connect string with the password" }).click();
  return until(`the URI of ${name} is copied`, async () => {
    const text = await page.evaluate(() => navigator.clipboard.readText());
    return text.startsWith("postgresql://offshoot:") && text;
  });
};
const vdbRuns = (name) => until(`${name} runs`, async () => (await page.locator("header.page .state").textContent().catch(() => "")) === "running" && offshoot("vdb", "show", name).state === "running");

async function signingIn() {
  const { url, ms } = await signIn(page);
  const sizes = await page.evaluate(() => performance.getEntriesByType("resource").concat(performance.getEntriesByType("navigation")).filter((one) => !one.name.includes("/api/")).map((one) => one.transferSize));
  const kB = Math.round(sizes.reduce((sum, one) => sum + one, 0) / 1000);
  console.log(`  first view: ${ms} ms, ${kB} kB`);
  check(kB < 300, `the first view takes ${kB} kB of 300`);
  await firstViewInTime(ms);
  check(!page.url().includes("code"), "the code has left the address");
  check((await page.context().cookies()).length === 0, "there is no cookie");
  await until("the stream is there", async () => (await page.locator(".live").textContent()) === "live");
  // The link does not sign in another time.
  const other = await open();
  other.origin = page.origin;
  await other.goto(url);
  await other.getByText("this link was used").waitFor();
  await accessible(other, "sign-in");
  await other.browser.close();
}

/** What is promised of the first view, and how many browsers try. */
const FIRST_VIEW_MS = 1000;
const LOADS_MAX = 4;

/** The best of a few browsers says what the page takes; on a host that others use, so many times as long is as good. */
async function firstViewInTime(ms) {
  const loads = [ms];
  const shares = [ms < FIRST_VIEW_MS ? 1 : crowded()];
  const best = () => Math.min(...loads);
  while (best() >= FIRST_VIEW_MS && loads.length < LOADS_MAX) {
    const fresh = await open();
    loads.push((await signIn(fresh)).ms);
    shares.push(crowded());
    await fresh.browser.close();
  }
  if (best() < FIRST_VIEW_MS) return;
  const told = loads.map((load, index) => `${load} ms, ${shares[index].toFixed(1)} times as long as alone`).join("; ");
  console.log(`  first view: ${told}`);
  check(loads.some((load, index) => load / shares[index] < FIRST_VIEW_MS), `the first view is there within a second: ${told}`);
}

async function overview() {
  await visit(page, "overview", "Overview");
  await page.locator(".figure", { hasText: "dSources" }).getByText("1", { exact: true }).waitFor();
  await page.getByRole("region", { name: "Space" }).getByText("compression").waitFor();
  await page.getByRole("region", { name: "Space by object" }).getByRole("link", { name: "shop", exact: true }).waitFor();
  await page.getByRole("region", { name: "Cache", exact: true }).getByText(/ % of .* reads/).waitFor();
  await page.getByRole("region", { name: "How far dSources are" }).getByText(/ behind$/).waitFor();
  await accessible(page, "overview");
}

async function timeline() {
  await visit(page, "dsources/shop", "shop");
  const slider = page.getByRole("slider", { name: "moment of the history" });
  await slider.waitFor();
  await page.getByText("commits per second, at most").waitFor();
  const box = await slider.boundingBox();
  const sourceHas = () => Number(psql(offshoot("vdb", "show", "shop-1").uri, "select max(value) from ticks"));
  // Three clicks: a moment, Provision, and its confirmation.
  await slider.click({ position: { x: box.width * 0.7, y: 58 } });
  const label = await slider.getAttribute("aria-valuetext");
  check(label !== "the latest moment", `a click picks: ${label}`);
  await click(page, "Provision…");
  await page.getByRole("dialog", { name: "Provision from shop" }).getByRole("button", { name: "Provision", exact: true }).click();
  await page.getByRole("heading", { level: 1, name: "shop-1" }).waitFor();
  await vdbRuns("shop-1");
  const earlier = sourceHas();
  const uri = await copied("shop-1");
  check(Number(psql(uri, "select max(value) from ticks")) === earlier && earlier > 0, `${earlier} ticks by the copied URI`);
  await accessible(page, "a VDB");
  await visit(page, "dsources/shop", "shop");
  await page.getByRole("region", { name: "Space and use" }).getByRole("link", { name: "shop-1", exact: true }).waitFor();
  await accessible(page, "a dSource");
  return earlier;
}

async function typedMoments(earlier) {
  await visit(page, "dsources/shop", "shop");
  const type = async (text) => {
    await page.getByLabel("Moment", { exact: true }).fill(text);
    await click(page, "Pick");
  };
  const picked = (text) => page.locator(".picked", { hasText: text }).waitFor();
  await type("the day before");
  await page.getByText("names no moment").waitFor();
  await type("xid 742");
  await picked("transaction 742");
  await type("yesterday 14:03");
  await picked(/\d{4}-\d\d-\d\d 14:03:00 – no moment opens here/);
  const { lsn } = offshoot("dsource", "show", "shop").synced_to;
  await type(lsn);
  await picked(`log position ${lsn}`);
  await click(page, "Provision…");
  await answer(page, "Provision from shop", { Name: "by-lsn" }, "Provision");
  await vdbRuns("by-lsn");
  const later = Number(psql(offshoot("vdb", "show", "by-lsn").uri, "select max(value) from ticks"));
  check(later > earlier, `${later} ticks at ${lsn} are more than ${earlier}`);
  await visit(page, "dsources/shop", "shop");
  await type("-5s");
  await page.getByRole("slider").focus();
  await page.keyboard.press("ArrowLeft");
  const moment = await page.getByRole("slider").getAttribute("aria-valuetext");
  check(/^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d/.test(moment), `the keyboard moves it: ${moment}`);
  await page.keyboard.press("Home");
  await page.keyboard.press("+");
  await page.keyboard.press("-");
  await type("-5s");
  await click(page, "Bookmark");
  await answer(page, "Bookmark on shop", { Name: "before" }, "Create");
  await jobDone("bookmark_create");
  await until("a bookmark is known by its name", async () => {
    await type("before");
    return (await page.locator(".picked", { hasText: "bookmark before" }).count()) > 0;
  });
  await gaps();
  await visit(page, "bookmarks", "Bookmarks");
  await page.getByRole("cell", { name: "before", exact: true }).waitFor();
  await page.getByRole("button", { name: "provision from before" }).click();
  await answer(page, "Provision from shop", { Name: "marked" }, "Provision");
  await vdbRuns("marked");
}

/** Where the source no longer had its log: the line says so in words, too. */
async function gaps() {
  const ago = (seconds) => ({ time: new Date(Date.now() - seconds * 1000).toISOString(), lsn: "0/1" });
  await page.route("**/api/v1/timeflows/shop", async (route) => {
    const answer = await (await route.fetch()).json();
    const [first, ...more] = answer.timeflows;
    const ranges = [{ ...first.ranges[0], from: ago(900), to: ago(600) }, { ...first.ranges[0], from: ago(300), to: ago(0) }];
    await route.fulfill({ json: { ...answer, timeflows: [{ ...first, ranges, gaps: [{ from: ago(600), to: ago(300) }] }, ...more] } });
  });
  await page.reload();
  await page.getByText("No moment opens in a gap").waitFor();
  await page.getByLabel("Moment", { exact: true }).fill("-450s");
  await click(page, "Pick");
  await page.locator(".picked", { hasText: "no moment opens here" }).waitFor();
  await page.unrouteAll({ behavior: "ignoreErrors" });
}

async function aVdbsLife() {
  const query = (text) => psql(offshoot("vdb", "show", "shop-1").uri, text);
  query("create table kept as select 1 as one");
  await visit(page, "vdbs/shop-1", "shop-1");
  await click(page, "Take a snapshot");
  await jobDone("snapshot_take", "shop-1");
  query("create table lost as select 1 as one");
  // It opens at what was kept of it alone.
  await page.locator(".picked", { hasText: "pick a snapshot or bookmark" }).waitFor();
  await page.getByLabel("Moment", { exact: true }).fill("-1min");
  await click(page, "Pick");
  await page.getByRole("alert").getByText("at its snapshots and bookmarks alone").waitFor();
  // The one snapshot of it is picked by its button.
  await page.getByRole("button", { name: "← Previous snapshot" }).click();
  await page.locator(".picked", { hasText: "snapshot-" }).waitFor();
  await click(page, "Bookmark");
  await answer(page, "Bookmark on shop-1", { Name: "good" }, "Create");
  await jobDone("bookmark_create");
  await click(page, "Rewind…");
  await answer(page, "Rewind shop-1", {}, "Rewind");
  await jobDone("vdb_rewind", "shop-1");
  check(query("select to_regclass('kept') is not null, to_regclass('lost') is null") === "t|t", "it went back");
  await click(page, "Undo…");
  await answer(page, "Undo on shop-1", {}, "Undo");
  await until("the rewind is undone", () => answered(() => query("select to_regclass('lost') is not null") === "t"));
  await vdbRuns("shop-1");
  await visit(page, "vdbs/shop-1", "shop-1");
  await click(page, "Branch…");
  await answer(page, "Provision from shop-1", { Name: "twig" }, "Provision");
  await vdbRuns("twig");
  await visit(page, "vdbs/shop-1", "shop-1");
  await click(page, "Stop");
  await until("it is stopped", () => offshoot("vdb", "show", "shop-1").state === "stopped");
  await click(page, "Start");
  await vdbRuns("shop-1");
  const before = offshoot("vdb", "show", "shop-1").uri;
  await click(page, "New password…");
  await answer(page, "New password for shop-1", {}, "Make");
  await until("the password is another", () => offshoot("vdb", "show", "shop-1").uri !== before);
  await click(page, "Refresh…");
  await answer(page, "Refresh shop-1", { Moment: "latest" }, "Refresh");
  await until("it is refreshed", () => offshoot("vdb", "show", "shop-1").state === "running" && answered(() => query("select to_regclass('kept') is null") === "t"));
}

async function tree() {
  await visit(page, "vdbs", "VDBs");
  const row = (name) => page.getByRole("link", { name, exact: true });
  await row("twig").waitFor();
  await page.getByRole("button", { name: "what was made from shop-1" }).click();
  await row("twig").waitFor({ state: "detached" });
  await page.getByRole("searchbox").fill("twi");
  await row("twig").waitFor();
  await row("marked").waitFor({ state: "detached" });
  await page.getByRole("searchbox").fill("");
  await page.getByRole("button", { name: "stop marked" }).click();
  await page.getByRole("button", { name: "start marked" }).click();
  await page.getByRole("button", { name: "stop marked" }).waitFor();
  await visit(page, "vdbs/shop-1", "shop-1");
  await click(page, "Delete…");
  const dialog = page.getByRole("dialog", { name: "Delete shop-1" });
  await dialog.getByText("What was made from it stays: twig").waitFor();
  await dialog.getByText("of the pool become free").waitFor();
  await accessible(page, "a deletion");
  await dialog.getByRole("button", { name: "Delete", exact: true }).click();
  await page.getByRole("heading", { level: 1, name: "VDBs" }).waitFor();
  await until("it is gone", () => offshoot("vdb", "list").vdbs.every((vdb) => vdb.name !== "shop-1"));
  await page.locator("s", { hasText: "shop-1" }).waitFor();
}

async function jobsLive() {
  await visit(page, "pool", "Pool");
  const space = page.getByRole("region", { name: "Space", exact: true });
  for (const text of [/ of .*iB$/, / % *: .* to be reclaimed$/, /references to each block$/]) await space.getByText(text).first().waitFor();
  await page.locator(".treemap").getByRole("link", { name: /^shop .*B$/ }).waitFor();
  await page.getByRole("region", { name: "Ledger" }).getByRole("cell", { name: "twig", exact: true }).first().waitFor();
  await page.getByRole("checkbox", { name: "delete twig, as a question" }).check();
  await click(page, "What would deletion free?");
  await page.getByText("deleting twig would free").waitFor();
  await click(page, "Scrub");
  await jobDone("pool_scrub");
  await visit(page, "jobs", "Jobs");
  await page.getByRole("searchbox").fill("provision");
  await page.getByRole("cell", { name: "twig", exact: true }).first().waitFor();
  await page.getByRole("link", { name: /^job-/ }).first().click();
  await page.getByRole("region", { name: "Steps" }).getByText("done").first().waitFor();
  await accessible(page, "a job");
  // One that takes its time is cancelled while it is looked at.
  const { job } = offshoot("pool", "scrub", "--rate", "64KiB", "--detach");
  await visit(page, "jobs", "Jobs");
  await page.getByRole("row", { name: new RegExp(`^${job} running .* of .*iB, .*/s`) }).waitFor();
  await page.getByRole("button", { name: `cancel ${job}` }).click();
  await page.getByRole("row", { name: new RegExp(`${job} .*cancelled`) }).waitFor();
}

async function snapshotsAndBookmarks() {
  await visit(page, "snapshots", "Snapshots");
  await click(page, "Take a snapshot");
  await answer(page, "Take a snapshot", { Of: "twig" }, "Take");
  await jobDone("snapshot_take", "twig");
  const [{ id }] = offshoot("snapshot", "list", "twig").snapshots.slice(-1);
  await page.getByRole("button", { name: `delete ${id}` }).click();
  await answer(page, `Delete ${id}`, {}, "Delete");
  await page.getByRole("cell", { name: id, exact: true }).waitFor({ state: "detached" });
  await visit(page, "bookmarks", "Bookmarks");
  await page.getByRole("button", { name: "delete before" }).click();
  await answer(page, "Delete the bookmark before", {}, "Delete");
  await until("it is gone", () => offshoot("bookmark", "list").bookmarks.every((one) => one.name !== "before"));
}

async function policies() {
  await visit(page, "policies", "Policies");
  await page.getByRole("button", { name: "change the policy of shop" }).click();
  const dialog = page.getByRole("dialog", { name: "Policy of shop" });
  check((await dialog.getByLabel("The first of each week stays for", { exact: true }).inputValue()) === "0", "nothing is written as it is read");
  await answer(page, "Policy of shop", { "Snapshot every": "30min", Quota: "20GiB" }, "Set");
  await page.getByText("the policy of shop is set").waitFor();
  const policy = offshoot("policy", "show", "shop");
  check(policy.snapshot_every_ms === 1_800_000 && policy.quota_bytes === 20 * 1024 ** 3, JSON.stringify(policy));
}

async function linking() {
  await visit(page, "dsources", "dSources");
  await click(page, "Link a source");
  const dialog = page.getByRole("dialog", { name: "Link a source" });
  const fill = async (password) => {
    await dialog.getByLabel("Name", { exact: true }).fill("orders");
    await dialog.getByLabel("Source", { exact: true }).fill(process.env.SOURCE_URI);
    await dialog.getByLabel("Password", { exact: true }).fill(password);
    await dialog.getByRole("button", { name: "Link", exact: true }).click();
  };
  await fill("wrong");
  // What is wrong is said where it was asked, and nothing typed is lost.
  await until("a wrong password is refused", async () => (await dialog.getByRole("alert").count()) > 0 || offshoot("job", "list").jobs.some((job) => job.kind === "dsource_link" && job.state === "failed"));
  if ((await dialog.count()) === 0) {
    await until("what was begun is undone", () => offshoot("dsource", "list").dsources.length === 1);
    await click(page, "Link a source");
  }
  await fill(process.env.SOURCE_PASSWORD);
  await dialog.waitFor({ state: "detached" });
  await until("it is followed", () => offshoot("dsource", "list").dsources.find((one) => one.name === "orders")?.state === "active");
  await visit(page, "dsources/orders", "orders");
  await click(page, "Pause");
  await page.getByText("paused").first().waitFor();
  await click(page, "Resume");
  await page.getByText("active").first().waitFor();
  await click(page, "Sync");
  await jobDone("dsource_sync", "orders");
}

async function masking() {
  const { psqlSource } = await import("./source.mjs");
  psqlSource("create table people (id int primary key, email text, name text); insert into people select n, 'p' || n || '@example.com', 'Ann Person' || n from generate_series(1, 50) n");
  offshoot("dsource", "sync", "orders");
  await visit(page, "masks", "Masking");
  await click(page, "Discover…");
  await answer(page, "Discover what should be masked", { dSource: "orders" }, "Discover");
  const findings = page.getByRole("region", { name: "Found in orders" });
  await findings.getByRole("cell", { name: "email", exact: true }).first().waitFor();
  await accessible(page, "findings");
  await click(page, "Use the proposed rules");
  await click(page, "Preview…");
  const dialog = page.getByRole("dialog", { name: "Preview masked rows" });
  await dialog.getByLabel("dSource", { exact: true }).selectOption("orders");
  await dialog.getByLabel("Table", { exact: true }).fill("public.people");
  await dialog.getByLabel("Show the values of production, too").check();
  await dialog.getByRole("button", { name: "Preview", exact: true }).click();
  await page.locator("del", { hasText: "@example.com" }).first().waitFor();
  await click(page, "Mask…");
  await answer(page, "Make or renew a masked dSource", { dSource: "orders", Name: "safe" }, "Mask");
  await page.getByRole("region", { name: "safe", exact: true }).getByText("masked", { exact: true }).waitFor();
  await accessible(page, "masking");
  await page.getByRole("button", { name: "report of safe" }).click();
  const report = page.getByRole("region", { name: "Report of safe" });
  await report.getByRole("row", { name: /^public\.people email / }).waitFor();
  await accessible(page, "a report of what was masked");
  const coming = page.waitForEvent("download");
  await report.getByRole("button", { name: "Save…" }).click();
  const saved = readFileSync(await (await coming).path(), "utf8");
  check(saved.includes("public.people") && saved.includes("offshoot-ed25519:"), "what is saved is the signed document");
  await report.getByRole("button", { name: "Hide" }).click();
  // Rules are held against a dSource before they mask it; those that were typed stay.
  await click(page, "Check…");
  await answer(page, "Check rules", { dSource: "orders" }, "Check");
  await page.getByRole("heading", { level: 1, name: /^job-/ }).waitFor();
  await page.locator("header.page .state", { hasText: "done" }).waitFor();
}

async function pictures() {
  // What was begun before is told for a while.
  await page.locator(".toast").first().waitFor({ state: "detached" });
  offshoot("snapshot", "take", "shop");
  offshoot("bookmark", "create", "before-release", "--on", "shop");
  await new Promise((done) => setTimeout(done, 20_000));
  await visit(page, "overview", "Overview");
  await picture(page, "overview");
  await visit(page, "dsources/shop", "shop");
  await page.getByLabel("Moment", { exact: true }).fill("-10s");
  await click(page, "Pick");
  await page.getByText("commits per second, at most").waitFor();
  await picture(page, "timeline");
  await page.emulateMedia({ colorScheme: "dark" });
  await visit(page, "vdbs", "VDBs");
  await picture(page, "vdbs");
  await page.emulateMedia({ colorScheme: "light" });
}

async function usersAndTokens() {
  await visit(page, "users", "Users");
  await click(page, "Add a user");
  await answer(page, "Add a user", { Name: "eve", Role: "developer", "A developer may provision from": ["shop"] }, "Add");
  await page.getByRole("cell", { name: "eve", exact: true }).waitFor();
  await page.getByRole("button", { name: "change eve" }).click();
  await answer(page, "Change what eve may have", { "Most VDBs": "3", "Space that these may take": "2GiB" }, "Change");
  await page.getByRole("row", { name: /^eve developer 0 of 3 0 B of 2(\.0)? GiB shop/ }).waitFor();
  await visit(page, "tokens", "Tokens");
  await click(page, "Make a token");
  await answer(page, "Make a token", { User: "eve" }, "Make");
  const token = await page.locator("code.long").textContent();
  const eve = await open({ colorScheme: "dark", viewport: { width: 390, height: 780 } });
  eve.origin = page.origin;
  await eve.goto(page.origin);
  await eve.getByLabel("Your token, or such a link").fill("no token");
  await eve.getByRole("button", { name: "Sign in" }).click();
  await eve.getByText("this is no token of this engine").waitFor();
  await signInBy(eve, page.origin, token);
  // She sees what is hers, on a telephone, in the dark.
  await eve.getByRole("button", { name: "Menu" }).click();
  check((await eve.getByRole("link", { name: "Audit" }).count()) === 0, "a developer sees no audit");
  await eve.getByRole("navigation").getByRole("link", { name: "dSources" }).click();
  await eve.getByRole("link", { name: "shop", exact: true }).waitFor();
  check((await eve.getByRole("link", { name: "orders" }).count()) === 0, "nor another dSource");
  const wide = await eve.evaluate(() => document.documentElement.scrollWidth - innerWidth);
  check(wide <= 0, `nothing stands out of a narrow screen: ${wide} px`);
  for (const view of ["overview", "dsources/shop", "vdbs"]) {
    await eve.goto(`${eve.origin}/#/${view}`);
    await eve.waitForTimeout(800);
    await accessible(eve, `${view}, narrow and dark`);
  }
  await page.getByRole("button", { name: /^revoke token-/ }).first().click();
  await page.getByRole("dialog").getByRole("button", { name: "Revoke", exact: true }).click();
  await eve.getByRole("button", { name: "Sign in" }).waitFor();
  await eve.getByText("You were signed out: ").waitFor();
  check(eve.complaints.length === 0, eve.complaints.join("; "));
  await eve.browser.close();
  await visit(page, "audit", "Audit");
  await page.getByRole("cell", { name: "token revoke" }).first().waitFor();
}

async function everyView() {
  for (const colour of ["light", "dark"]) {
    await page.emulateMedia({ colorScheme: colour });
    for (const view of views) {
      await page.goto(`${page.origin}/#/${view}`);
      await page.waitForTimeout(500);
      await accessible(page, `${view}, ${colour}`);
    }
  }
  await page.emulateMedia({ colorScheme: "light" });
  // By the keyboard alone: the first stop leads past the menu.
  await visit(page, "overview", "Overview");
  await page.reload();
  await page.locator("div.figures").waitFor();
  await page.keyboard.press("Tab");
  await page.keyboard.press("Enter");
  check(await page.evaluate(() => document.activeElement.id === "main"), "the keyboard skips to the content");
}

async function signingOut() {
  await click(page, "Sign out");
  await page.getByRole("button", { name: "Sign in" }).waitFor();
  check((await page.evaluate(() => sessionStorage.length)) === 0, "no token is kept");
  check(page.complaints.length === 0, page.complaints.join("; "));
  check(page.foreign.length === 0, `nothing is asked of others: ${page.foreign.join(", ")}`);
}

const flow = async (name, run) => {
  const begun = Date.now();
  try {
    const result = await run();
    console.log(`ok ${name} (${Date.now() - begun} ms)`);
    return result;
  } catch (error) {
    const shot = `${process.env.SHOTS ?? "/tmp"}/failed-flow.png`;
    await page.screenshot({ path: shot }).catch(() => undefined);
    console.log(`FAILED ${name}: ${error.stack}\n${page.complaints.join("\n")}\nthe page: ${page.url()}\n${await page.locator("body").innerText().catch(() => "")}`);
    await page.browser.close();
    process.exit(1);
  }
};

await flow("sign in by a link, once", signingIn);
await flow("overview", overview);
const earlier = await flow("a VDB from the time line in three clicks", timeline);
if (whole) {
  await flow("typed moments, keyboard, bookmarks", () => typedMoments(earlier));
  await flow("snapshot, rewind, undo, branch, stop, start, password, refresh", aVdbsLife);
  await flow("the tree, deletion with what goes with it", tree);
  await flow("pool, jobs, cancelling", jobsLive);
  await flow("snapshots and bookmarks", snapshotsAndBookmarks);
  await flow("policies", policies);
  await flow("linking", linking);
  await flow("groups", () => groups(page));
  await flow("masking", masking);
  if (process.env.PICTURES) await flow("pictures for the documents", pictures);
  await flow("users, tokens, a developer on a telephone", usersAndTokens);
  await flow("every view is accessible, light and dark", everyView);
  await flow("an engine that is away", () => away(page));
  await flow("what is not there", () => deadEnds(page));
  await flow("dark or light, as somebody chooses", () => theme(page));
  await flow("every view on a narrow screen", () => narrow(page, views));
  await flow("1,000 VDBs and 10,000 snapshots", () => scale(page));
}
if (process.argv[2] === "more") {
  offshoot("vdb", "provision", "dev", "--from", "shop");
  const marks = prices();
  await flow("what is told lies above a dialog", () => above(page));
  await flow("recovery points on the time line", () => points(page));
  await flow("the commit that changed an answer", () => bisect(page, marks));
  await flow("what differs, and what brings it back", () => diff(page, marks));
  await flow("name, port, memory and settings of a VDB", () => changes(page));
  await flow("what a refresh keeps", () => kept(page));
  await flow("hooks of a VDB", () => hooks(page));
  await flow("the gateway of a VDB", () => gateway(page));
  await flow("templates", () => templates(page));
  await flow("webhooks", () => webhooks(page));
  await flow("keys", () => keys(page));
  await flow("roles", () => roles(page));
  await flow("sending to another engine, which takes over", () => replication(page));
  await flow("an archive, from one engine to another", () => archives(page));
  await flow("every view is accessible, light and dark", everyView);
}
await flow("sign out", signingOut);
await page.browser.close();
