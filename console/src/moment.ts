// What somebody types to name a moment: a time, a relative time, a transaction, a log position, a bookmark.
import { time } from "./format";
import type { Moment } from "./schema";

const UNITS: Record<string, number> = { s: 1000, sec: 1000, second: 1000, m: 60_000, min: 60_000, minute: 60_000, h: 3_600_000, hour: 3_600_000, d: 86_400_000, day: 86_400_000, w: 604_800_000, week: 604_800_000 };

export const MOMENT_FORMS = "14:03:27 · yesterday 14:03 · 2026-11-21 14:03:27.5 · -10min · 2h ago · 0/3A2B1C0 · xid 742 · latest";

/** A VDB keeps no log of its own: it opens at what was kept of it. */
export const MARK_FORMS = "snapshot-12 · the name of a bookmark · latest";

export interface Picked {
  moment: Moment;
  /** As people read it. */
  label: string;
  /** Where it is on a time line; null: only the engine knows. */
  ms: number | null;
}

export const latest: Picked = { moment: { kind: "latest" }, label: "the latest moment", ms: null };

export function atTime(ms: number): Picked {
  const label = `${time(ms)}${ms % 1000 ? `.${String(ms % 1000).padStart(3, "0")}` : ""}`;
  return { moment: { kind: "at", time: new Date(ms).toISOString() }, label, ms };
}

/** A moment as `parseMoment` reads it. */
export function written({ moment }: Picked): string {
  switch (moment.kind) {
    case "at":
      return moment.time;
    case "lsn":
      return moment.lsn;
    case "xid":
      return `xid ${moment.xid}`;
    case "snapshot":
      return moment.id;
    case "bookmark":
      return moment.name;
    case "latest":
      return "latest";
  }
}

/** Right after what ends at a position of the log. */
export const atLsn = (lsn: string): Picked => ({ moment: { kind: "lsn", lsn }, label: `log position ${lsn}`, ms: null });

/** A moment by what was typed; undefined: it is none. Times without a zone are by this browser's clock. */
export function parseMoment(text: string, bookmarks: string[], now = Date.now()): Picked | undefined {
  const typed = text.trim();
  if (/^(latest|now)$/i.test(typed)) return latest;
  if (/^[0-9a-f]+\/[0-9a-f]+$/i.test(typed)) {
    return atLsn(typed.toUpperCase());
  }
  const xid = /^(?:xid|tx|transaction)\s*[:=]?\s*(\d{1,10})$/i.exec(typed);
  if (xid) return { moment: { kind: "xid", xid: Number(xid[1]) }, label: `transaction ${xid[1]}`, ms: null };
  const snapshot = /^snapshot-\d+$/.exec(typed);
  if (snapshot) return { moment: { kind: "snapshot", id: typed }, label: typed, ms: null };
  if (bookmarks.includes(typed)) return { moment: { kind: "bookmark", name: typed }, label: `bookmark ${typed}`, ms: null };
  const ms = relative(typed, now) ?? clock(typed, now) ?? absolute(typed);
  return ms === undefined ? undefined : atTime(ms);
}

function relative(typed: string, now: number): number | undefined {
  const part = /^-\s*([\d.]+)\s*([a-z]+?)s?$/i.exec(typed) ?? /^([\d.]+)\s*([a-z]+?)s?\s+ago$/i.exec(typed);
  const unit = part && UNITS[(part[2] as string).toLowerCase()];
  return part && unit ? Math.round(now - Number(part[1]) * unit) : undefined;
}

function clock(typed: string, now: number): number | undefined {
  const part = /^(?:(today|yesterday)\s+)?(\d{1,2}):(\d{2})(?::(\d{2}(?:\.\d{1,6})?))?$/i.exec(typed);
  if (!part) return undefined;
  const date = new Date(now);
  if (part[1]?.toLowerCase() === "yesterday") date.setDate(date.getDate() - 1);
  const seconds = Number(part[4] ?? 0);
  date.setHours(Number(part[2]), Number(part[3]), Math.floor(seconds), Math.round((seconds % 1) * 1000));
  return date.getTime();
}

function absolute(typed: string): number | undefined {
  const part = /^(\d{4}-\d{2}-\d{2})(?:[ T](\d{2}:\d{2}(?::\d{2}(?:\.\d+)?)?)\s*(Z|[+-]\d{2}(?::?\d{2})?)?)?$/i.exec(typed);
  if (!part) return undefined;
  let zone = part[3] ?? "";
  if (/^[+-]\d{2}$/.test(zone)) zone += ":00";
  const ms = Date.parse(`${part[1]}T${part[2] ?? "00:00"}${zone.toUpperCase()}`);
  return Number.isNaN(ms) ? undefined : ms;
}
