// What is typed in dialogs, as the engine takes it; what cannot be taken is said with its forms.
import { get } from "../api";
import { parseDuration, parseSize } from "../format";
import { MARK_FORMS, MOMENT_FORMS, parseMoment, type Picked } from "../moment";
import type { BookmarkList } from "../schema";
import { wrong } from "./wrong";

/** A duration in ms; undefined where nothing is typed. */
export function typedDuration(text: string | undefined): number | undefined {
  if (!text) return undefined;
  const ms = parseDuration(text);
  if (ms === undefined) throw wrong(`'${text}' is no duration`, "write it as 10min, 36h or 7d");
  return ms;
}

/** A size in bytes; undefined where nothing is typed. */
export function typedSize(text: string | undefined): number | undefined {
  if (!text) return undefined;
  const size = parseSize(text);
  if (size === undefined) throw wrong(`'${text}' is no size`, "write it as 512MiB, 50MB or 20GiB");
  return size;
}

/** Names and values, one pair a line. */
export function typedPairs(text: string | undefined, what = "setting", as = "work_mem=64MB"): Record<string, string> {
  const pairs: Record<string, string> = {};
  for (const line of (text ?? "").split("\n").map((one) => one.trim()).filter(Boolean)) {
    const [name = "", ...rest] = line.split("=");
    if (rest.length === 0) throw wrong(`'${line}' is no ${what}`, `write it as ${as}`);
    pairs[name.trim()] = rest.join("=").trim();
  }
  return pairs;
}

/** A moment; bookmarks are known by their names. */
export function momentOf(text: string, bookmarks: string[]): Picked {
  const picked = parseMoment(text, bookmarks);
  if (!picked) throw wrong(`'${text}' names no moment`, `write it as one of: ${MOMENT_FORMS}`);
  return picked;
}

/** A moment of a VDB's own history. */
export function markOf(text: string, bookmarks: string[]): Picked {
  const picked = parseMoment(text, bookmarks);
  if (!picked || !["snapshot", "bookmark", "latest"].includes(picked.moment.kind)) throw wrong("a VDB opens at its snapshots and bookmarks alone", `write one of: ${MARK_FORMS}`);
  return picked;
}

/** A moment, by the bookmarks that there are. */
export async function typedMoment(text: string | undefined): Promise<Picked> {
  const { bookmarks } = await get<BookmarkList>("bookmarks");
  return momentOf(text ?? "", bookmarks.map((one) => one.name));
}
