// Sending to another engine, and that one going on alone: both by their consoles.
import { accessible, answer, check, click, engineOf, offshoot, open, signIn, until, visit } from "./page.mjs";

const east = engineOf(process.env.EAST_POOL);

export async function replication(page) {
  // The other engine answers by TLS, with a certificate of its own.
  const other = await open({ ignoreHTTPSErrors: true });
  await signIn(other, east);
  const code = await invited(other);
  await visit(page, "replication", "Replication");
  await page.getByText("This engine sends to no other").waitFor();
  await click(page, "Add…");
  await answer(page, "Add an engine to send to", { Name: "east", Address: process.env.EAST_ADDRESS, Code: code }, "Add");
  await page.getByRole("region", { name: "Peers", exact: true }).getByRole("row", { name: /^east no / }).waitFor();
  await profile(page);
  await takenOver(other);
  await afterwards(page);
  check(other.complaints.length === 0, other.complaints.join("; "));
  check(other.foreign.length === 0, other.foreign.join("; "));
  await other.browser.close();
}

async function invited(other) {
  await visit(other, "replication", "Replication");
  await click(other, "Invite…");
  await answer(other, "Let another engine send here", { "Its name here": "west" }, "Invite");
  const region = other.getByRole("region", { name: /^Code for west/ });
  const code = await region.locator("code.long").textContent();
  await region.getByRole("button", { name: "Hide" }).click();
  return code;
}

async function profile(page) {
  await click(page, "Send…");
  await answer(page, "Send to another engine", { Name: "nightly", To: "east", What: ["dsource:shop", "vdb:dev"], Every: "2h" }, "Make");
  await page.getByRole("heading", { level: 1, name: "nightly" }).waitFor();
  await page.getByText("shop, dev", { exact: true }).waitFor();
  await page.getByText("every 2 h").waitFor();
  await until("a run is done", async () => {
    const { last_success_at, state } = offshoot("replication", "show", "nightly");
    if (!last_success_at && state === "waiting") await click(page, "Run");
    return last_success_at;
  });
  await page.getByRole("region", { name: "Runs", exact: true }).getByRole("cell", { name: "done", exact: true }).first().waitFor();
  await click(page, "Pause");
  await page.locator("header.page .state", { hasText: "paused" }).waitFor();
  await click(page, "Resume");
  await page.locator("header.page .state", { hasText: "waiting" }).waitFor();
  await accessible(page, "a profile");
  await carried(page);
  await visit(page, "replication", "Replication");
  await page.getByRole("region", { name: "Sent", exact: true }).getByRole("row", { name: /^nightly east waiting / }).waitFor();
  const drawn = page.getByRole("region", { name: "Who sends to whom" });
  await drawn.getByText("this engine sends to").waitFor();
  await accessible(page, "an engine that sends");
}

/** What it sends can be carried there, too. */
async function carried(page) {
  await click(page, "Export…");
  const dialog = page.getByRole("dialog", { name: "Export archives" });
  await dialog.waitFor();
  const ticked = await dialog.locator("fieldset input:checked").evaluateAll((all) => all.map((one) => one.value));
  check(String(ticked.sort()) === "dev,shop", `what it sends is ticked: ${ticked}`);
  await dialog.getByRole("button", { name: "Cancel" }).click();
}

async function takenOver(other) {
  await visit(other, "replication", "Replication");
  const received = other.getByRole("region", { name: "Received", exact: true });
  await received.getByRole("link", { name: "west/shop", exact: true }).waitFor();
  await received.getByRole("link", { name: "west/dev", exact: true }).click();
  await other.getByRole("heading", { level: 1, name: "west/dev" }).waitFor();
  check((await other.getByRole("button", { name: "Sync", exact: true }).count()) === 0, "a copy is not synced");
  await visit(other, "replication", "Replication");
  await accessible(other, "an engine that is sent to");
  await received.getByRole("button", { name: "Take over west…" }).click();
  const dialog = other.getByRole("dialog", { name: "Take over west" });
  await dialog.getByText("becomes this engine's own: dev, shop").waitFor();
  await accessible(other, "a failover");
  await answer(other, "Take over west", { "Do it although it seems to live": true, "Other names": "shop=shop-west" }, "Take over");
  await until("it is this engine's own", () => east("dsource", "list").dsources.some((one) => one.name === "shop-west" && one.state !== "replica"));
  await other.getByRole("region", { name: "Peers", exact: true }).getByText("taken over").waitFor();
  await received.getByRole("button", { name: "Take over west…" }).waitFor({ state: "detached" });
}

/** What the engine that sent shows, and forgets. */
async function afterwards(page) {
  await visit(page, "replication/nightly", "nightly");
  await click(page, "Run");
  await page.getByText("was taken over").first().waitFor();
  // What is wrong is said with its fix, and leads to where it is.
  await visit(page, "overview", "Overview");
  const fault = page.getByRole("list", { name: "faults and warnings" }).getByRole("listitem").filter({ hasText: "was taken over" });
  await fault.getByText("Fix:").waitFor();
  await fault.getByRole("link", { name: "nightly" }).click();
  await page.getByRole("heading", { level: 1, name: "nightly" }).waitFor();
  await click(page, "Delete…");
  await answer(page, "Delete nightly", {}, "Delete");
  await page.getByText("nothing is sent to another engine").waitFor();
  await page.getByRole("button", { name: "remove east" }).click();
  await answer(page, "Remove the peer east", {}, "Remove");
  await page.getByText("no other engine is known").waitFor();
}
