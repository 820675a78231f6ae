// VDBs as a tree: what was made from what.
import { useMemo, useState } from "preact/hooks";
import { at, get, start, useAnswer } from "../api";
import { bytes } from "../format";
import { mayUse } from "../me";
import { latest } from "../moment";
import { link } from "../route";
import type { Dsource, DsourceList, Vdb, VdbList } from "../schema";
import { Copy, Failure, Page, Search, State, Time } from "../ui/basics";
import { Table } from "../ui/table";
import { run } from "../ui/toasts";
import { askProvision } from "./provision";

interface Row {
  key: string;
  name: string;
  depth: number;
  children: number;
  vdb?: Vdb;
  dsource?: Dsource;
  gone?: boolean;
}

/** The tree as rows; what is closed leaves out what is below it. */
export function treeOf(dsources: Dsource[], vdbs: Vdb[], closed: ReadonlySet<string>, filter: string): Row[] {
  const below = new Map<string, Vdb[]>();
  for (const vdb of vdbs) {
    const key = `${vdb.parent_kind} ${vdb.parent}`;
    const list = below.get(key);
    if (list) list.push(vdb);
    else below.set(key, [vdb]);
  }
  const rows: Row[] = [];
  const seen = new Set<string>();
  const matches = (name: string) => !filter || name.includes(filter);
  const add = (row: Omit<Row, "children">, kind: string): boolean => {
    if (seen.has(row.key)) return false;
    seen.add(row.key);
    const children = below.get(`${kind} ${row.name}`) ?? [];
    const place = rows.length;
    rows.push({ ...row, children: children.length });
    let some = matches(row.name);
    if (filter || !closed.has(row.key)) {
      for (const vdb of children) some = add({ key: vdb.id, name: vdb.name, depth: row.depth + 1, vdb }, "vdb") || some;
    } else {
      const hide = (list: Vdb[]): void => list.forEach((vdb) => seen.has(vdb.id) || (seen.add(vdb.id), hide(below.get(`vdb ${vdb.name}`) ?? [])));
      hide(children);
    }
    if (!some) rows.length = place;
    return some;
  };
  for (const dsource of dsources) add({ key: dsource.id, name: dsource.name, depth: 0, dsource }, "dsource");
  // Parents that were deleted still are the roots of what was made from them.
  const names = new Set(vdbs.map((vdb) => vdb.name));
  for (const vdb of vdbs) {
    const known = vdb.parent_kind === "vdb" && names.has(vdb.parent);
    if (!known && !seen.has(vdb.id)) add({ key: `gone ${vdb.parent_kind} ${vdb.parent}`, name: vdb.parent, depth: 0, gone: true }, vdb.parent_kind);
  }
  for (const vdb of vdbs) if (!seen.has(vdb.id)) add({ key: vdb.id, name: vdb.name, depth: 0, vdb }, "vdb");
  return rows;
}

export const connectString = (name: string) => (): Promise<string> => get<Vdb>(at("vdbs", name)).then((vdb) => vdb.uri);

export function Vdbs() {
  const vdbs = useAnswer<VdbList>("vdbs");
  const dsources = useAnswer<DsourceList>("dsources");
  const [filter, setFilter] = useState("");
  const [closed, setClosed] = useState<ReadonlySet<string>>(new Set());
  const rows = useMemo(
    () => treeOf(dsources.data?.dsources ?? [], vdbs.data?.vdbs ?? [], closed, filter),
    [dsources.data, vdbs.data, closed, filter],
  );
  const toggle = (key: string) => {
    const next = new Set(closed);
    if (!next.delete(key)) next.add(key);
    setClosed(next);
  };
  return (
    <Page title="VDBs" lead="Virtual databases, below what they were made from.">
      <Failure of={vdbs.error ?? dsources.error} />
      <Search value={filter} onInput={setFilter} label="Filter by name" />
      {vdbs.data && dsources.data && (
        <Table<Row>
          label="VDBs by parent"
          rows={rows}
          rowKey={(row) => row.key}
          empty={filter ? "no name has this in it" : <>there is no VDB; link a source under <a href={link("dsources")}>dSources</a>, then provision from it</>}
          columns={[
            { name: "Name", cell: (row) => <Name of={row} isClosed={closed.has(row.key)} onToggle={() => toggle(row.key)} /> },
            { name: "State", cell: (row) => (row.vdb || row.dsource ? <State of={(row.vdb ?? row.dsource)!.state} /> : "deleted") },
            { name: "Moment", cell: (row) => row.vdb && <Time at={row.vdb.moment.time} />, wide: true },
            { name: "Own space", cell: (row) => row.vdb && bytes(row.vdb.unique_bytes), figures: true, wide: true },
            { name: "Owner", cell: (row) => row.vdb && (row.vdb.owner ?? "administrators"), wide: true },
            { name: "Port", cell: (row) => row.vdb?.port, figures: true, wide: true },
            { name: "Actions", cell: (row) => <Actions of={row} /> },
          ]}
        />
      )}
    </Page>
  );
}

function Name({ of, isClosed, onToggle }: { of: Row; isClosed: boolean; onToggle: () => void }) {
  return (
    <span class="tree" style={{ paddingLeft: `${of.depth * 18}px` }}>
      {of.children > 0 ? (
        <button type="button" class="twist" aria-expanded={!isClosed} aria-label={`what was made from ${of.name}`} onClick={onToggle}>
          {isClosed ? "▸" : "▾"}
        </button>
      ) : (
        <span class="twist" />
      )}
      {of.gone ? <s>{of.name}</s> : <a href={link(of.vdb ? "vdbs" : "dsources", of.name)}>{of.name}</a>}
      {of.dsource && <small>dSource</small>}
    </span>
  );
}

function Actions({ of }: { of: Row }) {
  const { name, vdb, dsource } = of;
  if (dsource) {
    return mayUse() ? (
      <button type="button" class="small" onClick={() => void askProvision(name, latest)} aria-label={`provision from ${name}`}>
        Provision
      </button>
    ) : null;
  }
  if (!vdb) return null;
  const change = (verb: "start" | "stop") => run(`${verb} ${name}`, () => start("POST", at("vdbs", name, `/${verb}`)));
  return (
    <span class="buttons">
      <Copy of={connectString(name)} what={`the connect string of ${name}`}>
        Copy URI
      </Copy>
      {mayUse() && vdb.state === "running" && (
        <button type="button" class="small" onClick={() => change("stop")} aria-label={`stop ${name}`}>
          Stop
        </button>
      )}
      {mayUse() && vdb.state === "stopped" && (
        <button type="button" class="small" onClick={() => change("start")} aria-label={`start ${name}`}>
          Start
        </button>
      )}
    </span>
  );
}
