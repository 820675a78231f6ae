// What a time line shows, apart from how it is drawn.
import type { Bookmark, Snapshot, Timeflow, TimeflowList } from "../schema";

export type MarkKind = "snapshot" | "recovery" | "bookmark";

export interface Mark {
  kind: MarkKind;
  at: number;
  /** A snapshot's id or a bookmark's name. */
  name: string;
  ready: boolean;
  /** The position in the log, if it is known. */
  lsn?: string;
}

export interface Stretch {
  from: number;
  to: number;
}

export interface History {
  /** By time. */
  marks: Mark[];
  ranges: Stretch[];
  gaps: Stretch[];
  /** Rewinds, refreshes and new copies. */
  starts: number[];
  /** What it takes to open the moments of the newest range, in milliseconds; absent where there is none. */
  opening?: { typical: number; longest: number };
  from: number;
  to: number;
}

const ms = (time: string): number => Date.parse(time);

export function historyOf({ timeflows }: TimeflowList, bookmarks: Bookmark[]): History {
  const marks: Mark[] = [];
  const add = (kind: MarkKind) => (one: Snapshot) => {
    // The snapshot of a bookmark goes with it, and is shown as it.
    if (one.kind !== "bookmark") marks.push({ kind, at: ms(one.time), name: one.id, ready: one.ready, ...(one.lsn && { lsn: one.lsn }) });
  };
  for (const flow of timeflows) {
    flow.snapshots.forEach(add("snapshot"));
    flow.recovery_points.forEach(add("recovery"));
  }
  for (const one of bookmarks) marks.push({ kind: "bookmark", at: ms(one.time), name: one.name, ready: true });
  marks.sort((a, b) => a.at - b.at);
  const stretches = (list: "ranges" | "gaps") =>
    timeflows.flatMap((flow) => flow[list].map(({ from, to }) => ({ from: ms(from.time), to: ms(to.time) })));
  const ranges = stretches("ranges");
  const ends = [...ranges.flatMap((one) => [one.from, one.to]), ...marks.map((mark) => mark.at)];
  const from = ends.length > 0 ? Math.min(...minmax(ends)) : Date.now() - 3_600_000;
  const to = ends.length > 0 ? Math.max(...minmax(ends)) : Date.now();
  const starts = timeflows.slice(1).map((flow) => ms(flow.started_at));
  return { marks, ranges, gaps: stretches("gaps"), starts, from, to: Math.max(to, from + 1000), ...openingOf(timeflows) };
}

function openingOf(timeflows: Timeflow[]): Pick<History, "opening"> {
  const newest = timeflows[timeflows.length - 1]?.ranges.slice(-1)[0];
  const { typical_open_ms: typical, longest_open_ms: longest } = newest ?? {};
  return typeof typical === "number" && typeof longest === "number" ? { opening: { typical, longest } } : {};
}

/** The least and the greatest, of any number of values. */
function minmax(values: number[]): [number, number] {
  let low = Infinity;
  let high = -Infinity;
  for (const value of values) {
    low = Math.min(low, value);
    high = Math.max(high, value);
  }
  return [low, high];
}

/** The index of the first mark not before a time. */
export function firstFrom(marks: Mark[], at: number): number {
  let low = 0;
  let high = marks.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((marks[middle] as Mark).at < at) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** The mark that is nearest to a time, of those within `reach` of it; bookmarks before snapshots before recovery points. */
export function nearest(marks: Mark[], at: number, reach: number, kinds: MarkKind[] = ["bookmark", "snapshot"]): Mark | undefined {
  let best: Mark | undefined;
  for (let index = firstFrom(marks, at - reach); index < marks.length; index++) {
    const mark = marks[index] as Mark;
    if (mark.at > at + reach) break;
    if (!kinds.includes(mark.kind)) continue;
    const better = !best || Math.abs(mark.at - at) < Math.abs(best.at - at) || (mark.kind === "bookmark" && mark.at === best.at);
    if (better) best = mark;
  }
  return best;
}

/** Whether every moment opens there. */
export const opens = (history: History, at: number): boolean => history.ranges.some(({ from, to }) => from <= at && at <= to);

const STEPS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 21600, 43200, 86400, 172800, 604800, 2592000].map((s) => s * 1000);

/** Times to write below the line: round ones by this browser's clock. */
export function ticks(from: number, to: number, most: number): { at: number; text: string }[] {
  const step = STEPS.find((one) => (to - from) / one <= most) ?? (STEPS[STEPS.length - 1] as number);
  const zone = new Date(from).getTimezoneOffset() * 60_000;
  const all: { at: number; text: string }[] = [];
  for (let at = Math.ceil((from - zone) / step) * step + zone; at <= to; at += step) {
    const date = new Date(at);
    const [hours, minutes, seconds] = [date.getHours(), date.getMinutes(), date.getSeconds()].map((n) => String(n).padStart(2, "0"));
    const day = `${String(date.getMonth() + 1).padStart(2, "0")}-${String(date.getDate()).padStart(2, "0")}`;
    const midnight = hours === "00" && minutes === "00" && seconds === "00";
    all.push({ at, text: step >= 86_400_000 || midnight ? day : step < 60_000 ? `${hours}:${minutes}:${seconds}` : `${hours}:${minutes}` });
  }
  return all;
}
