// Large lists: what the engine would answer with 1,000 VDBs and 10,000 snapshots is made up here from what it answers
// for one of each, as no test machine holds so many. What is measured is the page alone.
import { check, visit } from "./page.mjs";

const VDBS = 1000;
const SNAPSHOTS = 10_000;
const DAY = 86_400_000;
/** No frame may take longer while a large list moves, in ms. */
const FRAME_MS = 300;

export async function scale(page) {
  const like = async (route, change) => {
    const answer = await route.fetch();
    await route.fulfill({ json: change(await answer.json()) });
  };
  const many = ([one], count) =>
    Array.from({ length: count }, (_, index) => ({ ...one, id: `snapshot-${index + 1}`, time: new Date(Date.parse(one.time) - (count - index) * (DAY / 100)).toISOString() }));
  await page.route("**/api/v1/vdbs", (route) =>
    like(route, ({ vdbs }) => ({
      // Ten below each, so that the tree is three deep.
      vdbs: Array.from({ length: VDBS }, (_, index) => ({
        ...vdbs[0],
        id: `vdb-${index + 1}`,
        name: `vdb${index}`,
        ...(index < 10 ? { parent: "shop", parent_kind: "dsource" } : { parent: `vdb${Math.floor(index / 10)}`, parent_kind: "vdb" }),
      })),
    })),
  );
  await page.route("**/api/v1/snapshots", (route) => like(route, ({ snapshots }) => ({ snapshots: many(snapshots, SNAPSHOTS) })));
  await page.route("**/api/v1/timeflows/shop", (route) =>
    like(route, (answer) => ({ ...answer, timeflows: answer.timeflows.map((flow) => ({ ...flow, snapshots: many(flow.snapshots, SNAPSHOTS) })) })),
  );
  const table = page.locator(".table.long").first();
  for (const [where, heading, rows] of [["vdbs", "VDBs", VDBS], ["snapshots", "Snapshots", SNAPSHOTS]]) {
    await page.goto(`${page.origin}/#/overview`);
    const begun = Date.now();
    await visit(page, where, heading);
    await page.waitForFunction((least) => Number(document.querySelector("table")?.getAttribute("aria-rowcount")) >= least, rows);
    const ms = Date.now() - begun;
    const drawn = await page.locator("tbody tr").count();
    const worst = await longestFrame(page, () => table.evaluate((box) => glide((at) => (box.scrollTop = at * box.scrollHeight))));
    console.log(`  ${where}: ${rows} rows there after ${ms} ms, ${drawn} drawn; longest frame while scrolling ${worst} ms`);
    check(drawn < 120, `${drawn} rows are drawn`);
    check(worst < FRAME_MS, `the longest frame takes ${worst} ms`);
  }
  await visit(page, "dsources/shop", "shop");
  const slider = page.getByRole("slider", { name: "moment of the history" });
  await slider.waitFor();
  const box = await slider.boundingBox();
  await page.mouse.move(box.x + box.width / 2, box.y + 58);
  const worst = await longestFrame(page, async () => {
    for (let turn = 0; turn < 20; turn++) await page.mouse.wheel(0, turn < 10 ? -120 : 120);
  });
  console.log(`  time line with ${SNAPSHOTS} snapshots: longest frame while zooming ${worst} ms`);
  check(worst < FRAME_MS, `the longest frame takes ${worst} ms`);
  await page.unrouteAll({ behavior: "ignoreErrors" });
}

/** The longest time between two frames, in ms, while something is done: of three times the best, as others use the host, too. */
async function longestFrame(page, run) {
  let best = Infinity;
  for (let time = 0; time < 3 && best >= FRAME_MS; time++) best = Math.min(best, await longestFrameOnce(page, run));
  return best;
}

async function longestFrameOnce(page, run) {
  await page.evaluate(() => {
    globalThis.frames_ = { worst: 0, last: performance.now(), on: true };
    const tick = (now) => {
      const state = globalThis.frames_;
      state.worst = Math.max(state.worst, now - state.last);
      state.last = now;
      if (state.on) requestAnimationFrame(tick);
    };
    requestAnimationFrame(tick);
    // From 0 to 1 in two seconds, a step a frame.
    globalThis.glide = (move) =>
      new Promise((done) => {
        const begun = performance.now();
        const step = (now) => {
          const at = Math.min(1, (now - begun) / 2000);
          move(at);
          if (at < 1) requestAnimationFrame(step);
          else done();
        };
        requestAnimationFrame(step);
      });
  });
  await run();
  return Math.round(
    await page.evaluate(() => {
      globalThis.frames_.on = false;
      return globalThis.frames_.worst;
    }),
  );
}
