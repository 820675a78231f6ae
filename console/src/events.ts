// The stream of what changes: jobs, and the engine at a glance. A browser's own EventSource sends no token, so the
// stream is read here.
import { away, changes, ended, Refused, refusalOf, token } from "./api";
import { Cell } from "./cell";
import type { Job, Status, StreamEvent } from "./schema";

/** All jobs that were told of, by id. */
export const jobs = new Cell<ReadonlyMap<string, Job>>(new Map());
export const status = new Cell<Status | undefined>(undefined);
/** Whether the stream is there; what is shown is old where it is not. */
export const live = new Cell(false);

/** Jobs that are kept; more are at /api/v1/jobs. */
const JOBS_MAX = 2000;
const PAUSE_MS = [500, 1000, 2000, 5000];
/** The least time between two times that everything shown is asked for again. */
const CHANGE_MS = 1000;

let due: ReturnType<typeof setTimeout> | undefined;

/** Has everything that is shown asked for again, soon. */
export function changed(): void {
  due ??= setTimeout(() => {
    due = undefined;
    changes.set(changes.value + 1);
  }, CHANGE_MS / 2);
}

export const isFinal = (job: Job): boolean => ["done", "failed", "cancelled"].includes(job.state);
export const jobNumber = (id: string): number => Number(id.slice(id.lastIndexOf("-") + 1));

function takeAll(events: StreamEvent[]): void {
  const all = new Map(jobs.value);
  let fresh = false;
  let some = false;
  for (const event of events) {
    if (event.kind === "status") {
      status.set(event.status);
      continue;
    }
    const before = all.get(event.job.id);
    all.set(event.job.id, event.job);
    some = true;
    // A whole history arrives at the beginning: only what changes from then on is news.
    if (before ? before.state !== event.job.state : caughtUp) fresh = true;
  }
  if (some) {
    const ids = [...all.keys()].sort((a, b) => jobNumber(b) - jobNumber(a));
    for (const id of ids.slice(JOBS_MAX)) all.delete(id);
    jobs.set(all);
  }
  if (fresh) changed();
}

/** Whether the jobs that were there at the beginning have come. */
let caughtUp = false;

/** Reads the stream as long as this token is the tab's. */
export function follow(): () => void {
  const stop = new AbortController();
  const bearer = token.value;
  jobs.set(new Map());
  status.set(undefined);
  const run = async () => {
    for (let tries = 0; !stop.signal.aborted; tries++) {
      caughtUp = false;
      const soon = setTimeout(() => (caughtUp = true), 2500);
      const unseen = new AbortController();
      const hide = () => document.hidden && unseen.abort();
      document.addEventListener("visibilitychange", hide);
      let why: Refused | undefined;
      try {
        await seen();
        await read(bearer, AbortSignal.any([stop.signal, unseen.signal]), () => {
          if (tries > 0) changed();
          tries = 0;
        });
      } catch (error) {
        // Tried again below. Only what the engine, or the way to it, answered is worth telling.
        if (error instanceof Refused) why = error;
      }
      clearTimeout(soon);
      document.removeEventListener("visibilitychange", hide);
      live.set(false);
      if (stop.signal.aborted) break;
      if (why) away.set({ why, since: away.value?.since ?? Date.now() });
      await new Promise((done) => setTimeout(done, PAUSE_MS[Math.min(tries, PAUSE_MS.length - 1)]));
    }
  };
  void run();
  return () => {
    stop.abort();
    away.set(undefined);
  };
}

/** When the page is looked at. A browser has few connections to one host: tabs that nobody sees take none. */
async function seen(): Promise<void> {
  while (document.hidden) {
    await new Promise((done) => document.addEventListener("visibilitychange", done, { once: true }));
  }
}

async function read(bearer: string | null, signal: AbortSignal, opened: () => void): Promise<void> {
  const answer = await fetch("/api/v1/events", {
    headers: { Authorization: `Bearer ${bearer}` },
    credentials: "omit",
    cache: "no-store",
    signal,
  }).catch((error: Error) => {
    throw signal.aborted ? error : new Refused("the engine does not answer", "see to it on its host: is it running, and what does its log end with?", 0);
  });
  if (answer.status === 401) ended(bearer);
  if (!answer.ok || !answer.body) throw refusalOf(answer.status, await answer.text());
  opened();
  live.set(true);
  away.set(undefined);
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    text += value;
    const parts = text.split("\n\n");
    text = parts.pop() ?? "";
    const events = parts.map(eventOf).filter((event): event is StreamEvent => event !== undefined);
    if (events.length > 0) takeAll(events);
  }
}

function eventOf(part: string): StreamEvent | undefined {
  const data = part.split("\n").filter((line) => line.startsWith("data:"));
  if (data.length === 0) return undefined;
  return JSON.parse(data.map((line) => line.slice(5)).join("\n")) as StreamEvent;
}
