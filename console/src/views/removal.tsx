// Deleting something: what goes with it, what stays, and what it gives back, before anything is done.
import { at, get, start } from "../api";
import { bytes } from "../format";
import type { Bookmark, BookmarkList, Ledger, SnapshotList, VdbList } from "../schema";
import { question } from "../ui/dialog";
import { begin } from "../ui/toasts";

/** Asks whether a dSource or VDB is to be removed. */
export async function askRemoval(kind: "dsource" | "vdb", name: string, then: () => void): Promise<void> {
  const [vdbs, snapshots, bookmarks, ledger] = await Promise.all([
    get<VdbList>("vdbs").catch(() => ({ vdbs: [] }) as VdbList),
    get<SnapshotList>(`snapshots?object=${encodeURIComponent(name)}`).catch(() => ({ snapshots: [] }) as SnapshotList),
    get<BookmarkList>("bookmarks").catch(() => ({ bookmarks: [] as Bookmark[] })),
    get<Ledger>(`pool/ledger?delete=${encodeURIComponent(name)}`).catch(() => undefined),
  ]);
  const children = vdbs.vdbs.filter((vdb) => vdb.parent === name && vdb.parent_kind === kind).map((vdb) => vdb.name);
  const marks = bookmarks.bookmarks.filter((one) => one.object === name).map((one) => one.name);
  const verb = kind === "vdb" ? "Delete" : "Unlink";
  question({
    title: `${verb} ${name}`,
    dangerous: true,
    verb,
    text: (
      <ul class="goes">
        <li>
          {snapshots.snapshots.length} snapshots of it go{kind === "dsource" ? ", and the log that was received" : ""}.
        </li>
        {marks.length > 0 && <li>Bookmarks on it go: {list(marks)}.</li>}
        {children.length > 0 && <li>What was made from it stays: {list(children)}.</li>}
        {ledger?.freed_if_deleted_bytes != null && <li>{bytes(ledger.freed_if_deleted_bytes)} of the pool become free.</li>}
        {kind === "dsource" && <li>The source itself is not touched, but for the slot that the engine made there.</li>}
      </ul>
    ),
    done: async () => {
      await begin(`${verb.toLowerCase()} ${name}`, start("DELETE", at(kind === "vdb" ? "vdbs" : "dsources", name)));
      then();
    },
  });
}

const list = (names: string[]): string => (names.length > 6 ? `${names.slice(0, 6).join(", ")} and ${names.length - 6} more` : names.join(", "));
