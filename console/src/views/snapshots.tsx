import { useState } from "preact/hooks";
import { at, start, useAnswer } from "../api";
import { words } from "../format";
import { mayUse } from "../me";
import { time } from "../format";
import { link } from "../route";
import type { DsourceList, Snapshot, SnapshotList, VdbList } from "../schema";
import { Failure, Page, Search, State, Time } from "../ui/basics";
import { question } from "../ui/dialog";
import { Table } from "../ui/table";
import { begin } from "../ui/toasts";
import { askProvision } from "./provision";

export function Snapshots() {
  const { data, error } = useAnswer<SnapshotList>("snapshots");
  const dsources = useAnswer<DsourceList>("dsources");
  const vdbs = useAnswer<VdbList>("vdbs");
  const [filter, setFilter] = useState("");
  const rows = (data?.snapshots ?? []).filter((one) => one.id === filter || one.object.includes(filter)).reverse();
  const names = [...(dsources.data?.dsources ?? []), ...(vdbs.data?.vdbs ?? [])].map((one) => one.name);
  const actions = mayUse() && names.length > 0 && (
    <button type="button" class="primary" onClick={() => askTake(names)}>
      Take a snapshot
    </button>
  );
  return (
    <Page title="Snapshots" lead="Each is opened, recovered and checked before anybody depends on it." actions={actions}>
      <Failure of={error} />
      <Search value={filter} onInput={setFilter} label="Filter by object or id" />
      {data && <SnapshotTable snapshots={rows} withObject />}
    </Page>
  );
}

export function SnapshotTable({ snapshots, withObject = false }: { snapshots: Snapshot[]; withObject?: boolean }) {
  return (
    <Table<Snapshot>
      label="snapshots"
      rows={snapshots}
      rowKey={(one) => one.id}
      empty="there is no snapshot"
      columns={[
        { name: "Snapshot", cell: (one) => one.id },
        ...(withObject ? [{ name: "Of", cell: (one: Snapshot) => <a href={link(`${one.object_kind}s`, one.object)}>{one.object}</a> }] : []),
        { name: "Moment", cell: (one) => <Time at={one.time} /> },
        { name: "State", cell: (one) => <span title={one.error ?? undefined}><State of={one.state} /></span> },
        { name: "Taken", cell: (one) => words(one.kind), wide: true },
        { name: "Log position", cell: (one) => <code>{one.lsn ?? "–"}</code>, wide: true },
        { name: "Bookmarks", cell: (one) => one.bookmarks?.join(", "), wide: true },
        ...(mayUse() ? [{ name: "Actions", cell: (one: Snapshot) => <Actions of={one} /> }] : []),
      ]}
    />
  );
}

function Actions({ of }: { of: Snapshot }) {
  const picked = { moment: { kind: "snapshot" as const, id: of.id }, label: `${of.id}, ${time(of.time)}`, ms: Date.parse(of.time) };
  return (
    <span class="buttons">
      <button type="button" class="small" onClick={() => void askProvision(of.object, picked)} aria-label={`provision from ${of.id}`}>
        Provision
      </button>
      <button type="button" class="small danger" onClick={() => askDelete(of)} aria-label={`delete ${of.id}`}>
        Delete
      </button>
    </span>
  );
}

function askDelete(one: Snapshot): void {
  const marks = one.bookmarks ?? [];
  question({
    title: `Delete ${one.id}`,
    text: marks.length > 0 ? `Bookmarks name it (${marks.join(", ")}): delete them first.` : "What was made from it stays. Only blocks that nothing else reaches become free.",
    verb: "Delete",
    dangerous: true,
    done: () => begin(`delete ${one.id}`, start("DELETE", at("snapshots", one.id))),
  });
}

function askTake(names: string[]): void {
  question({
    title: "Take a snapshot",
    verb: "Take",
    fields: [{ name: "object", label: "Of", kind: "choice", choices: names.map((name) => [name, name]) }],
    done: ({ object }) => begin(`snapshot of ${object}`, start("POST", "snapshots", { object })),
  });
}
