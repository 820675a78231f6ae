// Whom the engine tells of events, and what its secrets are under.
import { createHmac } from "node:crypto";
import { createServer } from "node:http";
import { accessible, answer, check, click, jobDone, offshoot, until, visit } from "./page.mjs";

/** A receiver that takes what it hears, or refuses it. */
async function receiver() {
  const heard = [];
  const server = createServer((request, response) => {
    let body = "";
    request.on("data", (part) => (body += part));
    request.on("end", () => {
      heard.push({ headers: request.headers, body });
      response.writeHead(here.status).end();
    });
  });
  await new Promise((done) => server.listen(0, "127.0.0.1", done));
  const here = { heard, status: 204, url: `http://127.0.0.1:${server.address().port}/told`, close: () => server.close() };
  return here;
}

function isSigned({ headers, body }, secret) {
  const key = Buffer.from(secret.replace("whsec_", ""), "base64");
  const made = createHmac("sha256", key).update(`${headers["webhook-id"]}.${headers["webhook-timestamp"]}.${body}`).digest("base64");
  return headers["webhook-signature"].split(" ").includes(`v1,${made}`);
}

export async function webhooks(page) {
  const there = await receiver();
  await visit(page, "webhooks", "Webhooks");
  await click(page, "Add a webhook");
  const dialog = page.getByRole("dialog", { name: "Add a webhook" });
  await dialog.getByLabel("Name", { exact: true }).fill("ci");
  await dialog.getByLabel("Address", { exact: true }).fill("http://ci.example/told");
  await dialog.getByRole("button", { name: "Add", exact: true }).click();
  await dialog.getByRole("alert").waitFor();
  await answer(page, "Add a webhook", { Address: there.url, Events: "fault.*, job.snapshot_take.*" }, "Add");
  const secret = await page.getByRole("region", { name: "Secret of ci" }).locator("code.long").textContent();
  await accessible(page, "a webhook");
  await click(page, "Hide");
  check((await page.getByText(secret).count()) === 0, "the secret is shown once");
  const row = page.getByRole("row", { name: /^ci .*fault\.\*, job\.snapshot_take\.\* active/ });
  await row.waitFor();
  await page.getByRole("button", { name: "test ci" }).click();
  await page.getByText(/ci took it in \d+ ms/).waitFor();
  check(JSON.parse(there.heard[0].body).type === "webhook.test" && isSigned(there.heard[0], secret), "it was tested, and signed with the secret that was shown");
  offshoot("snapshot", "take", "dev");
  await until("it is told of a job", () => there.heard.some((one) => JSON.parse(one.body).type === "job.snapshot_take.done" && isSigned(one, secret)));
  await changed(page, there, secret);
  there.status = 500;
  await page.getByRole("button", { name: "test ci" }).click();
  await page.getByText("ci did not take it").waitFor();
  await page.getByRole("button", { name: "remove ci" }).click();
  await answer(page, "Remove the webhook ci", {}, "Remove");
  await page.getByText("nobody is told of anything").waitFor();
  check(offshoot("webhook", "list").webhooks.length === 0, "it is gone");
  there.close();
}

/** Other events, and another secret beside that of before. */
async function changed(page, there, secret) {
  await page.getByRole("button", { name: "change ci" }).click();
  await accessible(page, "a change of a webhook");
  await answer(page, "Change the webhook ci", { Events: "job.*", "Make another secret, and show it": true }, "Change");
  const another = await page.getByRole("region", { name: "Secret of ci" }).locator("code.long").textContent();
  await click(page, "Hide");
  await page.getByRole("row", { name: /^ci .*job\.\* active/ }).waitFor();
  check(another !== secret, "its secret is another one");
  const before = there.heard.length;
  await page.getByRole("button", { name: "test ci" }).click();
  const last = await until("another test is there", () => there.heard.slice(before).find((one) => JSON.parse(one.body).type === "webhook.test"));
  check(isSigned(last, another) && isSigned(last, secret), "it is signed with the new secret and with the one before");
  // What is not changed stays, the secret too.
  await page.getByRole("button", { name: "change ci" }).click();
  await answer(page, "Change the webhook ci", { Events: "fault.*" }, "Change");
  await page.getByRole("row", { name: /^ci .*fault\.\* active/ }).waitFor();
  check((await page.getByRole("region", { name: "Secret of ci" }).count()) === 0 && offshoot("webhook", "show", "ci").url === there.url, "only events have changed");
  for (const [from, to] of [["ci", "builds"], ["builds", "ci"]]) {
    await page.getByRole("button", { name: `change ${from}` }).click();
    await answer(page, `Change the webhook ${from}`, { Name: to }, "Change");
    await page.getByRole("row", { name: new RegExp(`^${to} .*fault`) }).waitFor();
  }
}

export async function keys(page) {
  const before = offshoot("secret", "show");
  await visit(page, "keys", "Keys");
  const passwords = page.getByRole("region", { name: "Passwords", exact: true });
  await passwords.getByText(before.keys[0]).waitFor();
  await passwords.getByText(before.place).waitFor();
  await passwords.getByRole("button", { name: "Another key…" }).click();
  await answer(page, "Another key for passwords", {}, "Make");
  await jobDone("secret_rotate");
  const [first, second] = offshoot("secret", "show").keys;
  check(first !== before.keys[0] && second === before.keys[0], "another key seals, and the one before is kept");
  await passwords.getByText(first).waitFor();
  await accessible(page, "keys");
}
