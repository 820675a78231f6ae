// What is sent to other engines, what they have sent here, and who they are.
import { useAnswer } from "../api";
import { bytes, duration } from "../format";
import { mayAdminister } from "../me";
import { link } from "../route";
import type { Peer, PeerList, Replication, ReplicationList, Topology } from "../schema";
import { Card, Failure, Page, State, Time } from "../ui/basics";
import { Table } from "../ui/table";
import { Archives } from "./archives";
import { Peers } from "./peers";
import { Received } from "./received";
import { askReplication } from "./replication-ask";
import { whenOf } from "./replication-profile";
import { TopologyCard } from "./topology";

export function Replications() {
  const profiles = useAnswer<ReplicationList>("replication/profiles", 3000);
  const peers = useAnswer<PeerList>("peers", 5000);
  const topology = useAnswer<Topology>("topology", 10_000);
  return (
    <Page title="Replication" lead="What is sent to other engines, and what they have sent here.">
      <Failure of={profiles.error ?? peers.error ?? topology.error} />
      {topology.data && <TopologyCard of={topology.data} />}
      {profiles.data && <Profiles of={profiles.data.replications} peers={(peers.data?.peers ?? []).filter((one) => one.address !== null)} />}
      {peers.data && <Received peers={peers.data.peers} />}
      {peers.data && <Peers of={peers.data.peers} />}
      <Archives />
    </Page>
  );
}

function Profiles({ of, peers }: { of: Replication[]; peers: Peer[] }) {
  const actions = mayAdminister() && peers.length > 0 && (
    <button type="button" class="primary" onClick={() => void askReplication(peers)}>
      Send…
    </button>
  );
  return (
    <Card title="Sent" actions={actions}>
      <Table<Replication>
        label="what is sent"
        rows={of}
        rowKey={(one) => one.id}
        empty="nothing is sent to another engine"
        columns={[
          { name: "Profile", cell: (one) => <a href={link("replication", one.name)}>{one.name}</a> },
          { name: "To", cell: (one) => one.peer },
          { name: "State", cell: (one) => <State of={one.state} /> },
          { name: "Behind", cell: behind, figures: true },
          { name: "Runs", cell: whenOf, wide: true },
          { name: "Last success", cell: (one) => <Time at={one.last_success_at} />, wide: true },
        ]}
      />
    </Card>
  );
}

const behind = (one: Replication): string => (one.lag_ms === null ? "it has nothing yet" : `${duration(one.lag_ms)}, ${bytes(one.lag_bytes)}`);
