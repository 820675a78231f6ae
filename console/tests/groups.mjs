// Groups: VDBs of several dSources at one moment, and what is done to all of them at once.
import { accessible, answer, answered, check, click, jobDone, offshoot, psql, until, visit } from "./page.mjs";

const sources = { shop: process.env.SHOP_SUPERUSER_URI, orders: process.env.SOURCE_SUPERUSER_URI };
const names = Object.keys(sources);
const ask = (member, sql) => psql(offshoot("vdb", "show", `pair-${member}`).uri, sql);
/** What each VDB of the group answers, those of `shop` first. */
const all = (sql) => names.map((member) => ask(member, sql)).join(" ");
const there = (table) => all(`select to_regclass('${table}') is not null`);
const card = (page) => page.getByRole("region", { name: "pair", exact: true });
const states = () => names.map((member) => offshoot("vdb", "show", `pair-${member}`).state).join(" ");

/** In every source, received by the engine when this returns. */
function write(sql) {
  for (const name of names) psql(sources[name], sql);
  for (const name of names) offshoot("dsource", "sync", name);
}

/** Makes a group of the dSources, and VDBs of it; does all that a group can, with what the databases hold asked each time. */
export async function groups(page) {
  write("create table stock (item int primary key); insert into stock values (1)");
  await make(page);
  check(all("select count(*) from stock") === "1 1", "each VDB has what its source had");
  check(Number(ask("shop", "select count(*) from ticks")) > 0, "and nothing is mixed up");
  all("create table kept as select 1 as one");
  await card(page).getByRole("button", { name: "Bookmark…" }).click();
  await answer(page, "Bookmark pair", { Name: "both-good" }, "Set");
  await jobDone("group_bookmark");
  all("create table lost as select 1 as one");
  await stopAndStart(page);
  await rewindAndUndo(page);
  await refresh(page);
  await card(page).getByRole("button", { name: "Delete…" }).click();
  await page.getByRole("dialog", { name: "Delete pair" }).getByText(/: pair-(orders, pair-shop|shop, pair-orders)\./).waitFor();
  await answer(page, "Delete pair", {}, "Delete");
  await card(page).waitFor({ state: "detached" });
  check(offshoot("vdb", "list").vdbs.every((vdb) => !vdb.name.startsWith("pair-")), "its VDBs are gone");
}

async function make(page) {
  await visit(page, "groups", "Groups");
  await click(page, "Make a group");
  const members = page.getByRole("dialog", { name: "Make a group" });
  await members.getByLabel("Name", { exact: true }).fill("both");
  await members.getByRole("button", { name: "Make", exact: true }).click();
  await members.getByRole("alert").getByText("nothing is chosen: dSources").waitFor();
  await accessible(page, "a choice of several");
  await answer(page, "Make a group", { Name: "both", dSources: names }, "Make");
  await click(page, "Provision…");
  await answer(page, "Provision from both", { Name: "pair" }, "Provision");
  await jobDone("group_provision");
  for (const member of names) await card(page).getByText(`pair-${member}`, { exact: true }).waitFor();
  await accessible(page, "groups");
}

async function stopAndStart(page) {
  await card(page).getByRole("button", { name: "Stop", exact: true }).click();
  await card(page).getByRole("button", { name: "Start", exact: true }).waitFor();
  await until("both are stopped", () => states() === "stopped stopped");
  await card(page).getByRole("button", { name: "Stop", exact: true }).waitFor({ state: "detached" });
  for (const member of names) check(!answered(() => ask(member, "select 1")), `pair-${member} does not answer`);
  await card(page).getByRole("button", { name: "Start", exact: true }).click();
  await card(page).getByRole("button", { name: "Start", exact: true }).waitFor({ state: "detached" });
  await until("both run", () => states() === "running running");
  check(there("lost") === "t t", "nothing is lost by that");
}

async function rewindAndUndo(page) {
  const rewind = async (name) => {
    await card(page).getByRole("button", { name: "Rewind…" }).click();
    const dialog = page.getByRole("dialog", { name: "Rewind pair" });
    await dialog.getByLabel("Name", { exact: true }).fill(name);
    await dialog.getByRole("button", { name: "Rewind", exact: true }).click();
    return dialog;
  };
  const dialog = await rewind("nowhere");
  await dialog.getByRole("alert").getByText("nowhere").waitFor();
  await dialog.getByRole("button", { name: "Cancel" }).click();
  check(there("lost") === "t t", "a bookmark that is not there changes nothing");
  await (await rewind("both-good")).waitFor({ state: "detached" });
  await jobDone("group_rewind");
  check(`${there("kept")} ${there("lost")}` === "t t f f", "both went back");
  // A rewind is undone for each VDB alone.
  await visit(page, "vdbs/pair-orders", "pair-orders");
  await click(page, "Undo…");
  await answer(page, "Undo on pair-orders", {}, "Undo");
  await until("it is undone", () => answered(() => there("lost") === "f t"));
  await jobDone("vdb_rewind_undo", "pair-orders");
  await visit(page, "groups", "Groups");
}

async function refresh(page) {
  // Both sources have the clock of one host here.
  const between = psql(sources.shop, "select to_char(clock_timestamp() at time zone 'UTC', 'YYYY-MM-DD HH24:MI:SS.MS') || 'Z'");
  await new Promise((done) => setTimeout(done, 1000));
  write("insert into stock values (2)");
  const to = async (moment, rows) => {
    const { moment: before } = offshoot("group", "show", "pair");
    await card(page).getByRole("button", { name: "Refresh…" }).click();
    await answer(page, "Refresh pair", { Moment: moment }, "Refresh");
    await until(`it is refreshed to ${moment || "the latest"}`, () => offshoot("group", "show", "pair").moment !== before && states() === "running running");
    await jobDone("group_refresh");
    check(all("select count(*) from stock") === rows, `${moment || "the latest moment"}: ${all("select count(*) from stock")} rows`);
    check(there("kept") === "f f", "what was made in the VDBs is gone");
  };
  await card(page).getByRole("button", { name: "Refresh…" }).click();
  const dialog = page.getByRole("dialog", { name: "Refresh pair" });
  await dialog.getByLabel("Moment", { exact: true }).fill("the day before");
  await dialog.getByRole("button", { name: "Refresh", exact: true }).click();
  await dialog.getByRole("alert").getByText("is no time").waitFor();
  await dialog.getByRole("button", { name: "Cancel" }).click();
  await to("", "2 2");
  await to(between, "1 1");
  await card(page).getByText("opened at").waitFor();
}
