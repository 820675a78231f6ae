import { useMemo, useState } from "preact/hooks";
import { get, start, useAnswer } from "../api";
import { bytes, count, duration, percent } from "../format";
import { mayOperate, maySurvey } from "../me";
import { link } from "../route";
import type { Ledger, LedgerEntry, PoolStatus, ScrubReport } from "../schema";
import { Card, Empty, Facts, Failure, Meter, Page, State, Time } from "../ui/basics";
import { Table } from "../ui/table";
import { run, say } from "../ui/toasts";
import { Treemap } from "./treemap";

export function Pool() {
  const pool = useAnswer<PoolStatus>("pool", 5000);
  const ledger = useAnswer<Ledger>(maySurvey() ? "pool/ledger" : null);
  const scrub = useAnswer<ScrubReport>(maySurvey() ? "pool/scrub" : null, 5000);
  const now = pool.data;
  const actions = mayOperate() && (
    <span class="buttons">
      <button type="button" onClick={() => run("scrub", () => start("POST", "pool/scrub", {}))}>
        Scrub
      </button>
      <button type="button" onClick={() => run("reclaim", () => start("POST", "pool/reclaim"))}>
        Reclaim
      </button>
    </span>
  );
  return (
    <Page title="Pool" lead="Every identical block is stored once." actions={actions}>
      <Failure of={pool.error ?? ledger.error} />
      {now && (
        <div class="columns">
          <Card title="Space">
            <Fill of={now} />
          </Card>
          <Card title="Cache">
            <Meter part={now.cache.used_bytes} whole={now.cache.size_bytes} label="memory of the shared cache in use" />
            <Facts
              of={[
                ["holds", `${count(now.cache.blocks)} blocks, ${bytes(now.cache.used_bytes)} of ${bytes(now.cache.size_bytes)}`],
                ["hits", `${percent(now.cache.hit_ratio)}: ${count(now.cache.hits)}`],
                ["misses", count(now.cache.misses)],
              ]}
            />
          </Card>
          {scrub.data && <Scrub of={scrub.data} />}
        </div>
      )}
      {ledger.data && <LedgerCard of={ledger.data} />}
    </Page>
  );
}

/** How full the pool is, and how much of that only waits to be reclaimed. */
function Fill({ of }: { of: PoolStatus }) {
  const dead = Math.max(0, of.used_bytes - of.live_bytes);
  return (
    <>
      <Meter part={of.used_bytes} whole={of.capacity_bytes} scarce label="space of the pool in use" />
      <Facts
        of={[
          ["used", `${bytes(of.used_bytes)} of ${bytes(of.capacity_bytes)}`],
          ["free", bytes(of.free_bytes)],
          ["reachable", bytes(of.live_bytes)],
          ["fragmentation", `${percent(of.used_bytes > 0 ? dead / of.used_bytes : 0)}: ${bytes(dead)} to be reclaimed`],
          ["outside the pool", bytes(of.logical_bytes)],
          ["compression", `${of.compression_ratio.toFixed(2)} : 1`],
          ["deduplication", `${of.dedup_ratio.toFixed(2)} references to each block`],
          ["encrypted", of.encryption ? of.encryption.cipher : "no"],
        ]}
      />
      <Meter part={dead} whole={of.used_bytes} label="of what is used: to be reclaimed" kind="dead" />
      <p class="legend">
        of what is used: <span class="key dead" /> to be reclaimed <span class="key" /> reachable
      </p>
    </>
  );
}

function Scrub({ of: { scrub, damage } }: { of: ScrubReport }) {
  return (
    <Card title="Scrub">
      {!scrub && <Empty>nothing was scrubbed yet</Empty>}
      {scrub && (
        <Facts
          of={[
            ["state", <State of={scrub.state} />],
            ["began", <Time at={scrub.started_at} />],
            ["took", scrub.ended_at && duration(Date.parse(scrub.ended_at) - Date.parse(scrub.started_at))],
            ["verified", `${bytes(scrub.done_bytes)} of ${bytes(scrub.total_bytes)}, ${count(scrub.blocks)} blocks`],
            ["damaged", count(scrub.damaged_blocks)],
            ["healed", count(scrub.healed_blocks)],
          ]}
        />
      )}
      <ul class="plain">
        {damage.map((block) => (
          <li key={block.block} class="bad">
            {block.block}: {block.message}
            {block.holders && `; held by ${block.holders.map((one) => `${one.object}${one.path ? ` ${one.path}` : ""}`).join(", ")}`}
          </li>
        ))}
      </ul>
    </Card>
  );
}

/** What each object holds, and what deleting a choice of them would give back. */
function LedgerCard({ of }: { of: Ledger }) {
  const [chosen, setChosen] = useState<ReadonlySet<string>>(new Set());
  const objects = useMemo(() => of.objects.filter((one) => one.kind !== "snapshot"), [of]);
  const toggle = (name: string) => {
    const next = new Set(chosen);
    if (!next.delete(name)) next.add(name);
    setChosen(next);
  };
  const tell = () => {
    get<Ledger>(`pool/ledger?delete=${encodeURIComponent([...chosen].join(","))}`)
      .then((answer) => say(`deleting ${[...chosen].join(", ")} would free ${bytes(answer.freed_if_deleted_bytes)}`, "good"))
      .catch((error: Error) => say(error.message, "bad"));
  };
  return (
    <Card
      title="Ledger"
      actions={
        <button type="button" disabled={chosen.size === 0} onClick={tell}>
          What would deletion free?
        </button>
      }
    >
      <Treemap of={objects} />
      <Table<LedgerEntry>
        label="what objects hold of the pool"
        rows={objects}
        rowKey={(one) => `${one.kind} ${one.object}`}
        empty="the pool is empty"
        columns={[
          { name: "If deleted", cell: (one) => <input type="checkbox" checked={chosen.has(one.object)} onChange={() => toggle(one.object)} aria-label={`delete ${one.object}, as a question`} /> },
          { name: "Object", cell: (one) => <a href={link(`${one.kind}s`, one.object)}>{one.object}</a> },
          { name: "Reaches", cell: (one) => bytes(one.stored_bytes), figures: true, wide: true },
          { name: "Alone", cell: (one) => bytes(one.exclusive_bytes), figures: true, wide: true },
          { name: "Shared", cell: (one) => bytes(one.shared_bytes), figures: true, wide: true },
          { name: "Its past", cell: (one) => bytes(one.pinned_bytes), figures: true, wide: true },
          { name: "Deletion frees", cell: (one) => bytes(one.freed_if_deleted_bytes), figures: true },
          { name: "As of", cell: (one) => (one.current ? "now" : <Time at={one.as_of} />), wide: true },
        ]}
      />
    </Card>
  );
}
