// What belongs to the VDB `dev`: its hooks and its gateway.
import { accessible, answer, answered, check, click, jobDone, offshoot, psql, until, visit } from "./page.mjs";

const shown = () => offshoot("vdb", "show", "dev");

export async function hooks(page) {
  await visit(page, "vdbs/dev", "dev");
  await click(page, "Set a hook…");
  const sql = "create table hooked as\n  select 'by a hook'::text as how";
  await answer(page, "Set a hook of dev", { Event: "after-refresh", "SQL, or a program": sql, "Time limit": "2min" }, "Set");
  const card = page.getByRole("region", { name: "Hooks", exact: true });
  await card.getByRole("row", { name: /after-refresh .*2 min/ }).waitFor();
  await page.getByRole("button", { name: "show the text of after-refresh" }).click();
  const text = await page.getByLabel("text of after-refresh", { exact: true }).textContent();
  check(text === sql, `the hook is shown as it was typed: ${text}`);
  await accessible(page, "a hook");
  await page.getByRole("button", { name: "change after-refresh" }).click();
  const dialog = page.getByRole("dialog", { name: "Change the hook after-refresh of dev" });
  check((await dialog.getByLabel("SQL, or a program", { exact: true }).inputValue()) === sql, "what is changed is what there is");
  await answer(page, "Change the hook after-refresh of dev", { "SQL, or a program": "create table hooked_anew as select 1 as one" }, "Set");
  await jobDone("vdb_set", "dev");
  offshoot("vdb", "refresh", "dev");
  check(psql(shown().uri, "select to_regclass('hooked') is null, to_regclass('hooked_anew') is not null") === "t|t", "the hook that was set last has run");
  await failing(page, card);
  await page.getByRole("button", { name: "remove after-refresh" }).click();
  await answer(page, "Remove the hook after-refresh of dev", {}, "Remove");
  await card.getByText("nothing runs").waitFor();
  await page.locator("p.warn").waitFor({ state: "detached" });
  check((shown().hooks ?? []).length === 0, "it is gone");
}

/** One that fails: the page says so until it is removed. */
async function failing(page, card) {
  await page.getByRole("button", { name: "change after-refresh" }).click();
  await answer(page, "Change the hook after-refresh of dev", { "SQL, or a program": "select 1 / 0" }, "Set");
  await jobDone("vdb_set", "dev");
  check(!answered(() => offshoot("vdb", "refresh", "dev")), "its refresh fails");
  await page.locator("p.warn", { hasText: "after-refresh" }).waitFor();
  await card.getByRole("row", { name: /after-refresh/ }).waitFor();
}

export async function templates(page) {
  await visit(page, "templates", "Templates");
  await click(page, "Create a template");
  await answer(page, "Create a template", { Name: "ci", From: "shop", Settings: "work_mem=5MB", Labels: "team=qa", "Expires after": "2h" }, "Create");
  await page.getByRole("row", { name: /^ci shop 2 h work_mem=5MB/ }).waitFor();
  await accessible(page, "templates");
  await page.getByRole("button", { name: "provision by ci" }).click();
  await answer(page, "Provision by ci", { Name: "pr1" }, "Provision");
  await until("it runs as the template says", () => {
    const vdb = offshoot("vdb", "list").vdbs.find((one) => one.name === "pr1");
    return vdb?.state === "running" && vdb.settings.work_mem === "5MB" && vdb.labels.team === "qa" && vdb.expires_at !== null;
  });
  await visit(page, "templates", "Templates");
  await page.getByRole("button", { name: "delete ci" }).click();
  await answer(page, "Delete the template ci", {}, "Delete");
  await page.getByText("there is no template").waitFor();
  offshoot("vdb", "delete", "pr1", "--yes");
}

export async function gateway(page) {
  await visit(page, "vdbs/dev", "dev");
  const card = page.getByRole("region", { name: "Connections", exact: true });
  await card.getByText("end with refresh").waitFor();
  const change = async (fields) => {
    await card.getByRole("button", { name: "Change…" }).click();
    await answer(page, "Connections of dev", fields, "Set");
  };
  await card.getByRole("button", { name: "Change…" }).click();
  const dialog = page.getByRole("dialog", { name: "Connections of dev" });
  await dialog.getByLabel("Stop when idle for", { exact: true }).fill("45min");
  await dialog.getByRole("button", { name: "Set", exact: true }).click();
  await dialog.getByText("only a VDB with a gateway").waitFor();
  await accessible(page, "what a gateway is asked by");
  await answer(page, "Connections of dev", { "Keep connections open over refresh, rewind and restart": true }, "Set");
  await card.getByText("when nobody has used it for 45 min").waitFor();
  check(shown().gateway?.stop_when_idle_ms === 2_700_000, JSON.stringify(shown().gateway));
  await change({ "Keep connections open over refresh, rewind and restart": false, "Stop when idle for": "" });
  await card.getByText("end with refresh").waitFor();
  await until("it runs without a gateway", () => shown().gateway === null && answered(() => psql(shown().uri, "select 1") === "1"));
}
