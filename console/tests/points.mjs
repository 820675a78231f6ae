// Recovery points of the dSource `shop`: drawn on its time line, told in words, picked and opened.
import { accessible, answer, check, click, jobDone, offshoot, psql, until, visit } from "./page.mjs";

const source = (sql) => psql(process.env.SHOP_SUPERUSER_URI, sql);
const made = () => offshoot("timeflow", "show", "shop").timeflows.flatMap((flow) => flow.recovery_points);

/** The engine makes one after so much log. */
async function makePoint() {
  // The shorter openings are to be, the nearer they lie.
  offshoot("policy", "set", "shop", "--open-within", "1s");
  source("create table sides (side text); insert into sides values ('before')");
  return until("a recovery point", () => {
    source("select pg_logical_emit_message(false, 'test', repeat('x', 2000000))");
    const points = made();
    return points.length > 0 && points;
  });
}

/** Where strokes are below the line, and where those of the points should be, in pixels. */
const strokes = (page, points) =>
  page.getByRole("slider", { name: "moment of the history" }).evaluate((canvas, times) => {
    const [from, to] = ["min", "max"].map((end) => Number(canvas.getAttribute(`aria-value${end}`)));
    const margin = (to - from) * 0.03 + 500;
    const x = (at) => ((at - from + margin) / (to - from + 2 * margin)) * canvas.width;
    const row = canvas.getContext("2d").getImageData(0, (69 * canvas.height) / canvas.clientHeight, canvas.width, 1).data;
    const drawn = Array.from({ length: canvas.width }, (_, column) => column).filter((column) => row[4 * column + 3] > 0);
    return { drawn, due: times.map(x), cursor: x(Number(canvas.getAttribute("aria-valuenow"))) };
  }, points.map((point) => Date.parse(point.time)));

const near = (one) => (other) => Math.abs(one - other) <= 3;

export async function points(page) {
  await makePoint();
  source("insert into sides values ('after')");
  await visit(page, "dsources/shop", "shop");
  await page.getByText(/recovery points? keeps? the opening of moments short: .* typically, .* at most/).waitFor();
  await page.getByRole("slider").press("Home");
  let seen;
  await until("a stroke is drawn for each point, and none elsewhere", async () => {
    seen = await strokes(page, made());
    const { drawn, due, cursor } = seen;
    return due.every((place) => drawn.some(near(place))) && drawn.every((place) => due.some(near(place)) || near(cursor)(place));
  }).catch((error) => {
    throw new Error(`${error.message}: ${JSON.stringify(seen)}`);
  });
  const button = page.getByRole("button", { name: /^pick the recovery point of \d{4}-\d\d-\d\d \d\d:\d\d:\d\d/ }).first();
  await button.click();
  await page.locator(".picked", { hasText: "recovery point, " }).waitFor();
  check(/^recovery point, \d{4}-/.test(await page.getByRole("slider").getAttribute("aria-valuetext")), "the line says what is picked");
  await accessible(page, "a time line with recovery points");
  await click(page, "Provision…");
  await answer(page, "Provision from shop", { Name: "pointed" }, "Provision");
  await jobDone("vdb_provision", "pointed");
  check(psql(offshoot("vdb", "show", "pointed").uri, "select string_agg(side, ',') from sides") === "before", "it holds what was before the point");
  offshoot("vdb", "delete", "pointed", "--yes");
}

/** What is told while a dialog is open lies above it, and can be closed. */
export async function above(page) {
  await visit(page, "dsources/shop", "shop");
  await click(page, "Sync");
  await page.locator(".toast").first().waitFor();
  await click(page, "Bookmark");
  const dialog = page.getByRole("dialog", { name: "Bookmark on shop" });
  const told = dialog.locator(".toast", { hasText: "sync of shop is done" });
  await told.waitFor();
  const onTop = await told.evaluate((toast) => {
    const { left, top, width, height } = toast.getBoundingClientRect();
    return toast.contains(document.elementFromPoint(left + width / 2, top + height / 2));
  });
  check(onTop, "it lies above the dialog");
  check((await page.locator(".toast").count()) === (await dialog.locator(".toast").count()), "nothing is told twice");
  await accessible(page, "a dialog with what is told meanwhile");
  await told.getByRole("button", { name: /^close: / }).click();
  await told.waitFor({ state: "detached" });
  check(await dialog.isVisible(), "the dialog stays");
  await dialog.getByRole("button", { name: "Cancel" }).click();
  await dialog.waitFor({ state: "detached" });
}
