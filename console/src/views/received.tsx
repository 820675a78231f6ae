// What other engines have sent here, and going on without them.
import { start, useAnswer } from "../api";
import { ago } from "../format";
import { mayAdminister } from "../me";
import { link } from "../route";
import type { Dsource, DsourceList, Peer } from "../schema";
import { Card, Time } from "../ui/basics";
import { question } from "../ui/dialog";
import { Table } from "../ui/table";
import { begin } from "../ui/toasts";
import { typedPairs } from "./typed";
import { wrong } from "./wrong";

/** Whether a dSource is a copy that another engine has sent: only these are in a namespace. */
export const isCopy = ({ name }: Dsource): boolean => name.includes("/");
/** The engine that a copy is of, by the way that it took: `west` of `west/shop`. */
const namespaceOf = (name: string): string => name.slice(0, name.lastIndexOf("/"));

export function Received({ peers }: { peers: Peer[] }) {
  const { data } = useAnswer<DsourceList>("dsources", 5000);
  const copies = (data?.dsources ?? []).filter(isCopy);
  // Copies of VDBs stay when all is taken over that can be.
  const taken = peers.filter((one) => one.taken_over_at !== null).map((one) => one.name);
  const namespaces = [...new Set(copies.map((one) => namespaceOf(one.name)))].filter((name) => !taken.includes(name));
  const actions = mayAdminister() && (
    <span class="buttons">
      {namespaces.map((name) => (
        <button key={name} type="button" onClick={() => askFailover(name, copies, peers.find((one) => one.name === name))}>
          Take over {name}…
        </button>
      ))}
    </span>
  );
  return (
    <Card title="Received" actions={actions}>
      <Table<Dsource>
        label="received"
        rows={copies}
        rowKey={(one) => one.id}
        empty="no other engine has sent anything here"
        columns={[
          { name: "Name", cell: (one) => <a href={link("dsources", one.name)}>{one.name}</a> },
          { name: "Newest moment", cell: (one) => <Time at={one.synced_to?.time ?? one.snapshots[one.snapshots.length - 1]?.time} /> },
          { name: "Snapshots", cell: (one) => one.snapshots.length, figures: true, wide: true },
          { name: "Version", cell: (one) => one.server_version, wide: true },
        ]}
      />
    </Card>
  );
}

function askFailover(name: string, copies: Dsource[], peer: Peer | undefined): void {
  const own = copies.filter((one) => namespaceOf(one.name) === name).map((one) => one.name.slice(name.length + 1));
  question({
    title: `Take over ${name}`,
    dangerous: true,
    verb: "Take over",
    text: (
      <ul class="goes">
        <li>This engine goes on without {name}. What is received of it becomes this engine's own: {own.join(", ")}.</li>
        <li>Nothing that {name} sends is taken any more.</li>
        {peer && <li>It was last heard {ago(peer.last_seen_at)}.</li>}
        <li>What it has not sent is lost, unless it stops first.</li>
      </ul>
    ),
    fields: [
      { name: "planned", label: "It still runs: have it stop first and send the last of what it has", kind: "check" },
      { name: "force", label: "Do it although it seems to live", kind: "check" },
      { name: "rename", label: "Other names", kind: "lines", rows: 3, hint: "where names are taken here: one a line, as shop=shop-west" },
    ],
    done: async (values) => {
      const [planned, force] = [values.on("planned"), values.on("force")];
      if (planned && force) throw wrong("an engine that is to stop first is asked, not passed over", "choose one of both");
      await begin(`take over ${name}`, start("POST", "replication/failovers", { name, planned, force, rename: typedPairs(values["rename"], "other name", "shop=shop-west") }));
    },
  });
}
