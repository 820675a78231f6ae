// What is looked for in the history of the dSource `shop`: which commit it was, and what differs.
import { execFileSync } from "node:child_process";
import { accessible, answer, check, click, jobDone, offshoot, psql, until, visit } from "./page.mjs";

const source = (sql) => psql(process.env.SHOP_SUPERUSER_URI, sql);

/** Prices, one of which a commit changes; the moments before and after it, and its transaction. */
export function prices() {
  source("create table prices (item int primary key, price int); insert into prices select n, 100 + n from generate_series(1, 20) n");
  const from = source("select pg_current_wal_insert_lsn()");
  source("update prices set price = price where item = 3");
  const xid = source("with changed as (update prices set price = 5 where item = 7 returning 1) select txid_current() from changed");
  source("delete from prices where item = 9");
  const to = source("select pg_current_wal_flush_lsn()");
  return { from, to, xid };
}

async function received(lsn) {
  await until(`the log until ${lsn} is there`, () => psql(process.env.SHOP_SUPERUSER_URI, `select '${offshoot("dsource", "show", "shop").synced_to.lsn}'::pg_lsn >= '${lsn}'`) === "t");
}

export async function bisect(page, { from, to, xid }) {
  await received(to);
  await visit(page, "dsources/shop", "shop");
  await page.getByLabel("Moment", { exact: true }).fill(from);
  await click(page, "Pick");
  await click(page, "Bisect…");
  const dialog = page.getByRole("dialog", { name: "Bisect shop" });
  check((await dialog.getByLabel("From", { exact: true }).inputValue()) === from, "a search begins at the moment that is picked");
  await accessible(page, "what a search is asked by");
  await dialog.getByLabel("Query", { exact: true }).fill("select min(price) from prices");
  await dialog.getByLabel("From", { exact: true }).fill("the day before");
  await dialog.getByRole("button", { name: "Search", exact: true }).click();
  await dialog.getByText("names no moment").waitFor();
  await answer(page, "Bisect shop", { From: from, "Until the answer is": "5" }, "Search");
  await page.getByRole("heading", { level: 1, name: /^Bisect, job-/ }).waitFor();
  const commit = page.getByRole("region", { name: "The commit" });
  await commit.getByText(xid, { exact: true }).waitFor();
  await commit.getByRole("row", { name: /public\.prices.* 0 1 0 / }).waitFor();
  await commit.getByText("101", { exact: true }).waitFor();
  await accessible(page, "a commit that was found");
  await commit.getByRole("button", { name: "Provision…" }).click();
  await answer(page, "Provision from shop", { Name: "cheap" }, "Provision");
  await jobDone("vdb_provision", "cheap");
  check(psql(offshoot("vdb", "show", "cheap").uri, "select price from prices where item = 7") === "5", "the commit is in it");
  // A query that is refused ends the search; why is said where the result would be.
  await visit(page, "dsources/shop", "shop");
  await click(page, "Bisect…");
  await answer(page, "Bisect shop", { Query: "select count(*) from nowhere", From: from }, "Search");
  await page.getByRole("alert").getByText("nowhere").waitFor();
  await visit(page, "bisect", "Bisect");
  await page.getByRole("region", { name: "jobs" }).getByRole("link", { name: /^job-/ }).nth(1).waitFor();
}

export async function diff(page, { from, to }) {
  await visit(page, "diff", "Diff");
  await click(page, "Compare…");
  const states = { First: "shop", "First: moment": from, Second: "shop", "Second: moment": to, Tables: "prices" };
  await answer(page, "Compare two states", states, "Compare");
  await page.getByRole("heading", { level: 1, name: /^Diff, job-/ }).waitFor();
  const tables = page.getByRole("region", { name: "Tables", exact: true });
  await tables.getByRole("row", { name: /prices.* 0 1 1 / }).waitFor();
  await page.getByRole("button", { name: /^rows of .*prices$/ }).click();
  const changed = page.getByRole("row", { name: /^changed 7 107 5$/ });
  await changed.waitFor();
  check((await changed.locator("del").textContent()) === "107", "the value before is struck out");
  await page.getByRole("row", { name: /^removed 9 109$/ }).waitFor();
  await accessible(page, "what differs");
  await click(page, "SQL that brings these rows back");
  const statements = page.getByLabel("statements", { exact: true });
  await statements.waitFor();
  const sql = await statements.textContent();
  offshoot("vdb", "provision", "mended", "--from", "shop", "--lsn", to);
  const { uri } = offshoot("vdb", "show", "mended");
  psql(uri, sql);
  check(psql(uri, "select price from prices where item = 7") === "107" && psql(uri, "select count(*) from prices") === "20", "the statements bring them back");
  await accessible(page, "statements");
  await ofVdb(page);
  // Who compared by the command line asked for no rows.
  offshoot("diff", `shop@${from}`, `shop@${to}`, "--table", "prices");
  const { id } = offshoot("job", "list").jobs.find((job) => job.kind === "diff");
  await visit(page, `diff/${id}`, `Diff, ${id}`);
  await click(page, "Show the rows");
  await page.getByRole("button", { name: /^rows of .*prices$/ }).waitFor();
}

/** What was done in a VDB, from its own page. */
async function ofVdb(page) {
  psql(offshoot("vdb", "show", "mended").uri, "alter table prices add column note text; create table own as select 1 as one");
  await visit(page, "vdbs/mended", "mended");
  await click(page, "Compare…");
  await answer(page, "Compare two states", { Tables: "prices, own" }, "Compare");
  await page.getByRole("heading", { level: 1, name: /^Diff, job-/ }).waitFor();
  const schema = page.getByRole("region", { name: "Schema", exact: true });
  await schema.getByRole("row", { name: /column .*prices\.note/ }).waitFor();
  await schema.getByRole("row", { name: /^table .*own/ }).waitFor();
}
