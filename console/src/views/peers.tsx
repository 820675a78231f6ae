// The other engines: who sends here, and to whom this one sends.
import { useState } from "preact/hooks";
import { ask, at } from "../api";
import { changed } from "../events";
import { mayAdminister } from "../me";
import type { Peer, PeerInvitation, PeerKeyRotation } from "../schema";
import { Card, Links, Once, Time } from "../ui/basics";
import { question } from "../ui/dialog";
import { Table } from "../ui/table";
import { say } from "../ui/toasts";
import { typedDuration } from "./typed";

export function Peers({ of }: { of: Peer[] }) {
  const [invited, setInvited] = useState<PeerInvitation>();
  const actions = mayAdminister() && (
    <span class="buttons">
      <button type="button" onClick={() => askInvite(setInvited)}>
        Invite…
      </button>
      <button type="button" onClick={askAdd}>
        Add…
      </button>
      {of.length > 0 && (
        <button type="button" onClick={askRotate}>
          Another key…
        </button>
      )}
    </span>
  );
  return (
    <>
      {invited && <Once title={`Code for ${invited.name ?? "another engine"}, to add this one at ${invited.listen}`} text={invited.code} what="the code" onHide={() => setInvited(undefined)} />}
      <Card title="Peers" actions={actions}>
        <Table<Peer>
          label="peers"
          rows={of}
          rowKey={(one) => one.id}
          empty="no other engine is known; Invite lets one send here, Add uses a code of another one to send to it"
          columns={[
            { name: "Peer", cell: (one) => one.name },
            { name: "Sends here", cell: (one) => (one.taken_over_at ? <Taken of={one} /> : one.may_send ? "yes" : "no") },
            { name: "Is sent to", cell: (one) => (one.address ? <code>{one.address}</code> : "no") },
            { name: "By", cell: (one) => <Links place="replication" of={one.profiles} />, wide: true },
            { name: "Last connection", cell: (one) => <Time at={one.last_seen_at} />, wide: true },
            { name: "Key", cell: (one) => <Key of={one} />, wide: true },
            ...(mayAdminister() ? [{ name: "Actions", cell: (one: Peer) => <Remove of={one} /> }] : []),
          ]}
        />
      </Card>
    </>
  );
}

function Taken({ of }: { of: Peer }) {
  return (
    <>
      taken over <Time at={of.taken_over_at} />
    </>
  );
}

function Key({ of }: { of: Peer }) {
  return (
    <>
      <code title={of.fingerprint}>{of.fingerprint.slice(0, 19)}…</code>
      {of.rotation_pending && " (knows this engine by its key before)"}
    </>
  );
}

function Remove({ of: { name, profiles } }: { of: Peer }) {
  const remove = () =>
    question({
      title: `Remove the peer ${name}`,
      text: `What it has sent stays; what had come in part goes.${profiles.length > 0 ? ` First delete what is sent to it: ${profiles.join(", ")}.` : ""}`,
      verb: "Remove",
      dangerous: true,
      done: async () => {
        await ask<Peer>("DELETE", at("peers", name));
        say(`${name} is removed`, "good");
        changed();
      },
    });
  return (
    <button type="button" class="small danger" onClick={remove} aria-label={`remove ${name}`}>
      Remove
    </button>
  );
}

function askInvite(then: (invited: PeerInvitation) => void): void {
  question({
    title: "Let another engine send here",
    text: "A code lets it in, once. It may then send into the namespace of its name, and nothing else. This engine must listen by TLS.",
    verb: "Invite",
    fields: [
      { name: "name", label: "Its name here", hint: "one of its id where empty" },
      { name: "life", label: "Good for", value: "15min", required: true },
    ],
    done: async ({ name, life }) => then(await ask<PeerInvitation>("POST", "peer-invitations", { name: name || null, expires_in_ms: typedDuration(life) })),
  });
}

function askAdd(): void {
  question({
    title: "Add an engine to send to",
    text: "There, an administrator makes a code: by Invite, or by offshoot peer invite.",
    verb: "Add",
    fields: [
      { name: "name", label: "Name", required: true, hint: "a-z, 0-9, _ and -, beginning with a letter" },
      { name: "address", label: "Address", required: true, hint: "as east.example:7640" },
      { name: "code", label: "Code", kind: "password", required: true },
    ],
    done: async ({ name, address, code }) => {
      await ask<Peer>("POST", "peers", { name, address, code });
      say(`${name} is added`, "good");
      changed();
    },
  });
}

function askRotate(): void {
  question({
    title: "Another key for peers",
    text: "Each peer is told by the next connection. Codes that were not used yet are no good any more.",
    verb: "Make",
    done: async () => {
      const { pending } = await ask<PeerKeyRotation>("POST", "peer-key/rotate");
      say(pending.length > 0 ? `still to be told: ${pending.join(", ")}` : "all peers know it", "good");
      changed();
    },
  });
}
