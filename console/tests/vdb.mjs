// What belongs to the VDB `dev`: its name and port, what a refresh keeps, its hooks and its gateway. And templates.
import { createServer } from "node:net";
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
  const wished = {
    Name: "ci",
    From: "shop",
    Settings: "work_mem=5MB",
    Labels: "team=qa",
    "Expires after": "2h",
    "A refresh keeps roles, with their passwords": true,
    "Its user is a superuser, and may run programs in the server's cell": true,
    "It may connect to": "192.0.2.1:5432",
    "after-provision": "create table by_template as\n  select 1 as one",
    "before-stop": "select 1",
    "Time limit of each": "2min",
  };
  await answer(page, "Create a template", wished, "Create");
  const row = page.getByRole("row", { name: /^ci shop 2 h work_mem=5MB/ });
  await row.getByText("superuser; connects to 192.0.2.1:5432; a refresh keeps roles; hooks: after-provision, before-stop").waitFor();
  const limits = offshoot("template", "show", "ci").hooks.map((hook) => hook.time_limit_ms);
  check(String(limits) === "120000,120000", `each hook has the limit: ${limits}`);
  await accessible(page, "templates");
  await page.getByRole("button", { name: "provision by ci" }).click();
  await answer(page, "Provision by ci", { Name: "pr1" }, "Provision");
  await until("it runs as the template says", () => {
    const vdb = offshoot("vdb", "list").vdbs.find((one) => one.name === "pr1");
    return vdb?.state === "running" && vdb.settings.work_mem === "5MB" && vdb.labels.team === "qa" && vdb.expires_at !== null && vdb.superuser && String(vdb.refresh_keeps) === "roles" && vdb.hooks.length === 2;
  });
  check(psql(offshoot("vdb", "show", "pr1").uri, "select one, rolsuper from by_template, pg_roles where rolname = current_user") === "1|t", "its hook has run, as a superuser");
  await templateChanged(page);
  await page.getByRole("button", { name: "delete ci" }).click();
  await answer(page, "Delete the template ci", {}, "Delete");
  await page.getByText("there is no template").waitFor();
  offshoot("vdb", "delete", "pr1", "--yes");
}

/** Some of what it says is another then; the rest stays, also what the dialog does not show. */
async function templateChanged(page) {
  offshoot("template", "set", "ci", "--memory", "600000000");
  await visit(page, "templates", "Templates");
  await page.getByRole("row", { name: /^ci shop/ }).waitFor();
  await page.getByRole("button", { name: "change ci" }).click();
  await accessible(page, "a change of a template");
  const change = {
    Settings: "jit=off",
    "Expires after": "",
    "Its user is a superuser, and may run programs in the server's cell": false,
    "after-provision": "select 2",
    "Remove before-stop": true,
  };
  await answer(page, "Change the template ci", change, "Change");
  const row = page.getByRole("row", { name: /^ci shop – jit=off/ });
  await row.getByText("connects to 192.0.2.1:5432; a refresh keeps roles; hooks: after-provision", { exact: false }).waitFor();
  const { request, hooks } = offshoot("template", "show", "ci");
  check(JSON.stringify([request.settings, request.labels, request.superuser, request.memory_bytes, hooks.length]) === '[{"jit":"off"},{"team":"qa"},false,600000000,1]', `it says: ${JSON.stringify(request)}`);
}

const KEEPS = "A refresh keeps settings of databases, roles and ALTER SYSTEM";

/** What a refresh keeps is chosen when a VDB is made, and changed later. */
export async function kept(page) {
  await visit(page, "dsources/shop", "shop");
  await click(page, "Provision…");
  await answer(page, "Provision from shop", { Name: "keeper", [KEEPS]: true, Description: "for tests" }, "Provision");
  await page.getByText("a refresh keeps", { exact: true }).waitFor();
  await page.getByText("for tests", { exact: true }).waitFor();
  await jobDone("vdb_provision", "keeper");
  const { uri } = offshoot("vdb", "show", "keeper");
  psql(uri, "alter database postgres set work_mem = '7MB'");
  offshoot("vdb", "refresh", "keeper");
  check(psql(uri, "show work_mem") === "7MB", "a refresh keeps the setting");
  await change(page, "keeper", { [KEEPS]: false });
  await until("a refresh keeps nothing any more", () => offshoot("vdb", "show", "keeper").refresh_keeps.length === 0);
  offshoot("vdb", "refresh", "keeper");
  check(psql(uri, "show work_mem") !== "7MB", "and then the setting is gone");
  offshoot("vdb", "delete", "keeper", "--yes");
}

async function change(page, name, fields) {
  await page.getByRole("button", { name: `change ${name}`, exact: true }).click();
  await answer(page, `Change ${name}`, fields, "Change");
}

async function freePort() {
  const server = createServer();
  await new Promise((done) => server.listen(0, "127.0.0.1", done));
  const { port } = server.address();
  await new Promise((done) => server.close(done));
  return port;
}

/** Another name and port, memory, settings, and what is said of it. */
export async function changes(page) {
  await visit(page, "vdbs/dev", "dev");
  const before = shown();
  const port = await freePort();
  await page.getByRole("button", { name: "change dev", exact: true }).click();
  const dialog = page.getByRole("dialog", { name: "Change dev" });
  check((await dialog.getByLabel("Port", { exact: true }).inputValue()) === String(before.port), "what is changed is what there is");
  await accessible(page, "what a VDB is changed by");
  await dialog.getByRole("button", { name: "Change", exact: true }).click();
  await dialog.getByRole("alert").getByText("nothing is changed").waitFor();
  await answer(page, "Change dev", { Name: "devel", Port: String(port), "Memory limit": "512MiB", Settings: "work_mem=6MB", Labels: "team=qa", "Expires in": "3d" }, "Change");
  await page.getByRole("heading", { level: 1, name: "devel" }).waitFor();
  await jobDone("vdb_set");
  const facts = page.getByRole("region", { name: "State", exact: true });
  for (const text of ["512 MiB", "work_mem=6MB", "team=qa"]) await facts.getByText(text, { exact: true }).waitFor();
  const after = offshoot("vdb", "show", "devel");
  check(after.id === before.id && after.port === port && after.expires_at !== null, JSON.stringify(after));
  check(psql(after.uri, "show work_mem") === "6MB" && after.uri.includes(`:${port}/`), `it answers at ${port}`);
  await click(page, "Show the log");
  await page.getByLabel("log of devel", { exact: true }).getByText("database system is ready to accept connections").waitFor();
  await change(page, "devel", { Name: "dev", "Memory limit": "", Settings: "", Labels: "", "Expires in": "never" });
  await page.getByRole("heading", { level: 1, name: "dev" }).waitFor();
  await until("it is as it was", () => answered(() => shown().memory_bytes === before.memory_bytes && shown().expires_at === null));
  check(JSON.stringify([shown().settings, shown().labels]) === "[{},{}]", "settings and labels are removed");
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
