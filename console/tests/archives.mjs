// A dSource as a file of the browser's host: exported by one engine's console, imported by another's.
import { readFileSync } from "node:fs";
import { accessible, answer, check, click, engineOf, open, signIn, until, visit } from "./page.mjs";

const east = engineOf(process.env.EAST_POOL);

export async function archives(page) {
  await visit(page, "replication", "Replication");
  const card = page.getByRole("region", { name: "Archives", exact: true });
  await cancelled(page, card);
  // From the dSource's own page, which has it ticked already.
  await visit(page, "dsources/shop", "shop");
  await click(page, "Export…");
  const coming = page.waitForEvent("download");
  await answer(page, "Export archives", {}, "Export");
  const download = await coming;
  check(download.suggestedFilename() === "shop.offshoot", download.suggestedFilename());
  await card.getByRole("row", { name: /^export of shop done .*MiB of .*MiB/ }).waitFor();
  await accessible(page, "archives");
  const file = { name: "shop.offshoot", mimeType: "application/octet-stream", buffer: readFileSync(await download.path()) };
  const other = await open({ ignoreHTTPSErrors: true });
  await signIn(other, east);
  await visit(other, "replication", "Replication");
  await refused(other, { ...file, name: "cut.offshoot", buffer: file.buffer.subarray(0, file.buffer.length / 2) });
  await takenIn(other, file);
  check(other.complaints.length === 0, other.complaints.join("; "));
  check(other.foreign.length === 0, other.foreign.join("; "));
  await other.browser.close();
}

/** One that does not come is given up, and so is one that waits for it. */
async function cancelled(page, card) {
  await page.route("**/api/v1/replication/archives/shop", () => undefined);
  await click(page, "Export…");
  await answer(page, "Export archives", { What: ["shop, a dSource", "dev, a VDB: its snapshots that are ready"] }, "Export");
  await card.getByRole("row", { name: /^export of dev waiting / }).waitFor();
  await card.getByRole("button", { name: "cancel the export of dev" }).click();
  await card.getByRole("row", { name: /^export of dev cancelled / }).waitFor();
  await card.getByRole("button", { name: "cancel the export of shop" }).click();
  await card.getByRole("row", { name: /^export of shop cancelled / }).waitFor();
  await page.unrouteAll({ behavior: "ignoreErrors" });
}

async function send(other, file) {
  await click(other, "Import…");
  const dialog = other.getByRole("dialog", { name: "Import an archive" });
  await dialog.getByLabel("Archive", { exact: true }).setInputFiles(file);
  await answer(other, "Import an archive", { Prefix: "truck" }, "Import");
}

/** What is no archive is refused at once; of one that was cut off the job fails, and nothing stays. */
async function refused(other, cut) {
  const card = other.getByRole("region", { name: "Archives", exact: true });
  await send(other, { ...cut, name: "notes.txt", buffer: Buffer.from("no archive") });
  await card.getByRole("row", { name: /^import of notes\.txt failed / }).waitFor();
  await card.getByRole("alert").getByText("archive").waitFor();
  await send(other, cut);
  await until("one that was cut off fails", () => east("job", "list").jobs.some((job) => job.kind === "replication_import" && job.state === "failed"));
  check(east("dsource", "list").dsources.every((one) => one.name !== "truck/shop"), "nothing of it stays");
}

async function takenIn(other, file) {
  await send(other, file);
  const card = other.getByRole("region", { name: "Archives", exact: true });
  await card.getByRole("row", { name: /^import of shop\.offshoot done .* job-/ }).waitFor();
  await other.getByRole("region", { name: "Received", exact: true }).getByRole("link", { name: "truck/shop", exact: true }).waitFor();
  await accessible(other, "an archive that was taken in");
  // Somebody else who signs in by this tab sees nothing of it.
  await click(other, "Sign out");
  await other.getByRole("button", { name: "Sign in" }).waitFor();
  await signIn(other, east);
  await visit(other, "replication", "Replication");
  await card.waitFor();
  check((await card.getByText("shop.offshoot").count()) === 0, "what was sent before is forgotten");
}
