import { useState } from "preact/hooks";
import { at, start, useAnswer } from "../api";
import { time } from "../format";
import { mayUse } from "../me";
import { link } from "../route";
import type { Bookmark, BookmarkList } from "../schema";
import { Failure, Page, Search, Time } from "../ui/basics";
import { question } from "../ui/dialog";
import { Table } from "../ui/table";
import { begin } from "../ui/toasts";
import { askProvision } from "./provision";

export function Bookmarks() {
  const { data, error } = useAnswer<BookmarkList>("bookmarks");
  const [filter, setFilter] = useState("");
  const rows = (data?.bookmarks ?? []).filter((one) => one.name.includes(filter) || one.object.includes(filter));
  return (
    <Page title="Bookmarks" lead="Names for moments. They are set on the time line of a dSource or VDB, and stay openable.">
      <Failure of={error} />
      <Search value={filter} onInput={setFilter} label="Filter by name or object" />
      {data && (
        <Table<Bookmark>
          label="bookmarks"
          rows={rows}
          rowKey={(one) => one.id}
          empty="there is no bookmark"
          columns={[
            { name: "Name", cell: (one) => one.name },
            { name: "On", cell: (one) => <a href={link(`${one.object_kind}s`, one.object)}>{one.object}</a> },
            { name: "Moment", cell: (one) => <Time at={one.time} /> },
            { name: "Log position", cell: (one) => <code>{one.lsn}</code>, wide: true },
            { name: "Set at", cell: (one) => <Time at={one.created_at} />, wide: true },
            ...(mayUse() ? [{ name: "Actions", cell: (one: Bookmark) => <Actions of={one} /> }] : []),
          ]}
        />
      )}
    </Page>
  );
}

function Actions({ of }: { of: Bookmark }) {
  const picked = { moment: { kind: "bookmark" as const, name: of.name }, label: `bookmark ${of.name}, ${time(of.time)}`, ms: Date.parse(of.time) };
  const remove = () =>
    question({
      title: `Delete the bookmark ${of.name}`,
      text: "What was made from it stays. A snapshot that was taken for it alone goes with it.",
      verb: "Delete",
      dangerous: true,
      done: () => begin(`delete ${of.name}`, start("DELETE", at("bookmarks", of.name))),
    });
  return (
    <span class="buttons">
      <button type="button" class="small" onClick={() => void askProvision(of.object, picked)} aria-label={`provision from ${of.name}`}>
        Provision
      </button>
      <button type="button" class="small danger" onClick={remove} aria-label={`delete ${of.name}`}>
        Delete
      </button>
    </span>
  );
}
