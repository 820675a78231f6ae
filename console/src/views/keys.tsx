// The keys that passwords, masks and the pool are under: names and places, never a key.
import { ask, at, start, useAnswer } from "../api";
import { changed } from "../events";
import { count } from "../format";
import { mayAdminister } from "../me";
import type { MaskKey, MaskKeyList, PoolStatus, Secrets } from "../schema";
import { Card, Facts, Failure, Links, Page, Time } from "../ui/basics";
import { question } from "../ui/dialog";
import { Table } from "../ui/table";
import { begin, say } from "../ui/toasts";

export function Keys() {
  const secrets = useAnswer<Secrets>("secrets");
  const pool = useAnswer<PoolStatus>("pool");
  const masks = useAnswer<MaskKeyList>("mask-keys");
  return (
    <Page title="Keys" lead="What passwords, masks and the pool are under. No key is shown.">
      <Failure of={secrets.error ?? pool.error ?? masks.error} />
      {secrets.data && <Passwords of={secrets.data} />}
      {pool.data && (
        <Card title="Pool">
          <Facts
            of={[
              ["encrypted", pool.data.encryption ? pool.data.encryption.cipher : "no"],
              ["key", pool.data.encryption?.key_id],
            ]}
          />
        </Card>
      )}
      {masks.data && <MaskKeys of={masks.data.keys} />}
    </Page>
  );
}

function Passwords({ of }: { of: Secrets }) {
  const [first, ...older] = of.keys;
  const actions = mayAdminister() && of.changeable && (
    <button type="button" onClick={askRotate}>
      Another key…
    </button>
  );
  return (
    <Card title="Passwords" actions={actions}>
      <Facts
        of={[
          ["passwords and secrets", count(of.sealed)],
          ["sealed with", first && <code>{first}</code>],
          ["older keys", older.join(", ")],
          ["kept in", <code class="long">{of.place}</code>],
          ["changed", !of.changeable && "by the system, which hands the key to the engine"],
        ]}
      />
    </Card>
  );
}

function askRotate(): void {
  question({
    title: "Another key for passwords",
    text: "All passwords are sealed with a new key. The passwords themselves stay. The old key stays beside it, as copies of the pool from before need it.",
    verb: "Make",
    fields: [{ name: "forget", label: "Remove the old keys: passwords in older copies of the pool can then not be read any more", kind: "check" }],
    done: (values) => begin("another key", start("POST", "secrets/rotate", { forget_old: values.on("forget") })),
  });
}

function MaskKeys({ of }: { of: MaskKey[] }) {
  return (
    <Card title="Masks">
      <Table<MaskKey>
        label="keys of masks"
        rows={of}
        rowKey={(one) => one.name}
        empty="nothing was masked yet"
        columns={[
          { name: "Key", cell: (one) => one.name },
          { name: "Version", cell: (one) => one.version, figures: true },
          { name: "Made", cell: (one) => <Time at={one.made_at} />, wide: true },
          { name: "Used by", cell: (one) => <Links place="dsources" of={one.used_by} /> },
          { name: "Actions", cell: (one) => mayAdminister() && <RotateMask of={one} /> },
        ]}
      />
    </Card>
  );
}

function RotateMask({ of: { name } }: { of: MaskKey }) {
  const rotate = () =>
    question({
      title: `Another key ${name} for masks`,
      text: "The one before is forgotten. What is masked from then on has other masks: it does not join what was masked before, and tokens from before cannot be turned back.",
      verb: "Make",
      dangerous: true,
      done: async () => {
        await ask<MaskKey>("POST", at("mask-keys", name, "/rotate"));
        say(`the key ${name} is another one`, "good");
        changed();
      },
    });
  return (
    <button type="button" class="small danger" onClick={rotate} aria-label={`another key ${name}`}>
      Another…
    </button>
  );
}
