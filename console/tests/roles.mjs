// What is offered to whom, on a telephone, in the dark.
import { accessible, check, offshoot, open, signInBy } from "./page.mjs";

const buttons = (page, ...names) => Promise.all(names.map((name) => page.getByRole("button", { name, exact: true }).count()));

async function enter(origin, role, ...more) {
  offshoot("user", "add", `the-${role}`, "--role", role, ...more);
  const { token } = offshoot("token", "create", "--user", `the-${role}`);
  const page = await open({ colorScheme: "dark", viewport: { width: 390, height: 780 } });
  await signInBy(page, origin, token);
  return page;
}

/** Whether the menu has these views. */
async function menu(page, has, hasNot) {
  const names = await page.locator("nav a").allTextContents();
  for (const name of has) check(names.includes(name), `the menu has ${name}: ${names}`);
  for (const name of hasNot) check(!names.includes(name), `the menu lacks ${name}: ${names}`);
}

async function look(page, where, heading) {
  await page.goto(`${page.origin}/#/${where}`);
  await page.getByRole("heading", { level: 1, name: heading, exact: true }).waitFor();
  await page.waitForTimeout(800);
  const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
  check(wide <= 0, `nothing of ${where} stands out of a narrow screen: ${wide} px`);
  await accessible(page, `${where}, narrow and dark`);
}

async function leave(page) {
  check(page.complaints.length === 0, page.complaints.join("; "));
  await page.browser.close();
}

/** Whoever only reads is offered nothing that changes; whoever makes VDBs sees nothing of other engines and keys. */
export async function roles(page) {
  const auditor = await enter(page.origin, "auditor");
  await menu(auditor, ["Replication", "Keys"], ["Bisect", "Diff", "Webhooks"]);
  await look(auditor, "replication", "Replication");
  check(String(await buttons(auditor, "Invite…", "Add…", "Send…", "Export…", "Import…")) === "0,0,0,0,0", "an auditor changes no peer");
  await look(auditor, "keys", "Keys");
  check(String(await buttons(auditor, "Another key…")) === "0", "nor a key");
  await look(auditor, "vdbs/dev", "dev");
  check(String(await buttons(auditor, "Set a hook…", "Change…", "change dev", "Compare…")) === "0,0,0,0", "nor a VDB");
  await leave(auditor);
  const developer = await enter(page.origin, "developer", "--parent", "shop");
  await menu(developer, ["Bisect", "Diff"], ["Replication", "Keys", "Webhooks"]);
  await look(developer, "bisect", "Bisect");
  await look(developer, "diff", "Diff");
  check((await developer.getByText("job-").count()) === 0, "a developer sees none of the administrator's searches");
  await look(developer, "dsources/shop", "shop");
  check(String(await buttons(developer, "Bisect…", "Compare…")) === "1,1", "it searches what VDBs are made from");
  await leave(developer);
}
