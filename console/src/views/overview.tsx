import { useAnswer } from "../api";
import { useCell } from "../cell";
import { isFinal, jobs, status } from "../events";
import { ago, bytes, count, duration, percent, time, words } from "../format";
import { maySurvey } from "../me";
import { link } from "../route";
import type { Dsource, DsourceList, Ledger, ReplicationList, Status, VdbList } from "../schema";
import { Card, Empty, Facts, Failure, Figure, Meter, Page, State, Time } from "../ui/basics";
import { CacheChart } from "./cache-chart";
import { Progress } from "./jobs";

export function Overview() {
  const { data, error } = useAnswer<Status>("status");
  const now = useCell(status) ?? data;
  const dsources = useAnswer<DsourceList>("dsources", 5000);
  return (
    <Page title="Overview" lead={now && `engine ${now.engine_version}, since ${duration(Date.now() - Date.parse(now.started_at))}${now.pool && `, on ${now.pool}`}`}>
      <Failure of={error ?? dsources.error} />
      {now && (
        <>
          <Health of={now} dsources={dsources.data?.dsources ?? []} />
          <Figures of={now} dsources={dsources.data?.dsources} />
          <div class="columns">
            <Space of={now} />
            <Card title="Cache">
              <Meter part={now.cache.used_bytes} whole={now.cache.size_bytes} label="memory of the shared cache in use" />
              <Facts
                of={[
                  ["holds", `${count(now.cache.blocks)} blocks, ${bytes(now.cache.used_bytes)} of ${bytes(now.cache.size_bytes)}`],
                  ["hits", `${percent(now.cache.hit_ratio)} of ${count(now.cache.hits + now.cache.misses)} reads`],
                ]}
              />
              <CacheChart />
            </Card>
            {maySurvey() && <Objects />}
            <Lag of={dsources.data?.dsources ?? []} />
            <Work />
          </div>
        </>
      )}
    </Page>
  );
}

/** The page of what is wrong: a fault names its object, not what that is. */
function useSubjects(some: boolean, dsources: Dsource[]): (name: string) => string | undefined {
  const vdbs = useAnswer<VdbList>(some ? "vdbs" : null).data?.vdbs ?? [];
  const profiles = useAnswer<ReplicationList>(some && maySurvey() ? "replication/profiles" : null).data?.replications ?? [];
  return (name) => {
    const has = (list: { name: string }[]) => list.some((one) => one.name === name);
    if (name === "pool") return link("pool");
    const place = has(dsources) ? "dsources" : has(vdbs) ? "vdbs" : has(profiles) ? "replication" : undefined;
    return place && link(place, name);
  };
}

function Health({ of, dsources }: { of: Status; dsources: Dsource[] }) {
  const faults = of.faults;
  const warnings = of.warnings ?? [];
  const placeOf = useSubjects(faults.length + warnings.length > 0, dsources);
  const subject = (name: string) => {
    const place = placeOf(name);
    return place ? <a href={place}>{name}</a> : name;
  };
  if (faults.length === 0 && warnings.length === 0) {
    return (
      <p class="health good" role="status">
        Nothing is wrong.
      </p>
    );
  }
  return (
    <ul class="health" aria-label="faults and warnings">
      {faults.map((fault) => (
        <li key={fault.object + fault.message} class="bad">
          <strong>{subject(fault.object)}</strong>: {fault.message}
          <div>
            <b>Fix:</b> {fault.hint}
          </div>
          <small>
            since <Time at={fault.time} />
          </small>
        </li>
      ))}
      {warnings.map((warning) => (
        <li key={warning.object + warning.message} class="warn">
          <strong>{subject(warning.object)}</strong>: {warning.message}
          <div>
            <b>Fix:</b> {warning.hint}
          </div>
        </li>
      ))}
    </ul>
  );
}

function Figures({ of, dsources }: { of: Status; dsources: Dsource[] | undefined }) {
  const lags = (dsources ?? []).map((one) => one.lag_ms).filter((lag): lag is number => lag !== null);
  const worst = lags.length > 0 ? Math.max(...lags) : undefined;
  return (
    <div class="figures">
      <Figure name="dSources" value={count(of.dsources)} href={link("dsources")} more={worst !== undefined && `at most ${duration(worst)} behind`} />
      <Figure name="VDBs" value={count(of.vdbs)} href={link("vdbs")} more={`${count(of.vdbs_running)} running`} />
      <Figure name="Jobs at work" value={count(of.jobs_active)} href={link("jobs")} />
      <Figure name="Faults" value={count(of.faults.length)} more={some((of.warnings ?? []).length, "warning")} />
      <Figure name="Pool" value={bytes(of.pool_status.used_bytes)} href={link("pool")} more={`${bytes(of.pool_status.free_bytes)} free`} />
    </div>
  );
}

function Space({ of }: { of: Status }) {
  const pool = of.pool_status;
  return (
    <Card title="Space">
      <Meter part={pool.used_bytes} whole={pool.capacity_bytes} scarce label="space of the pool in use" />
      <Facts
        of={[
          ["used", `${bytes(pool.used_bytes)} of ${bytes(pool.capacity_bytes)}`],
          ["free", bytes(pool.free_bytes)],
          ["outside the pool", bytes(pool.logical_bytes)],
          ["compression", `${pool.compression_ratio.toFixed(2)} : 1`],
          ["deduplication", `${pool.dedup_ratio.toFixed(2)} references to each block`],
          ["saved by leaving out zeros", bytes(pool.zero_saved_bytes)],
        ]}
      />
    </Card>
  );
}

const some = (many: number, what: string): string => `${count(many)} ${what}${many === 1 ? "" : "s"}`;
const OBJECTS_SHOWN = 6;

/** What gives most back when it is deleted. */
function Objects() {
  const { data, error } = useAnswer<Ledger>("pool/ledger", 30_000);
  const freed = (data?.objects ?? []).filter((one) => one.kind !== "snapshot").sort((a, b) => (b.freed_if_deleted_bytes ?? 0) - (a.freed_if_deleted_bytes ?? 0));
  return (
    <Card title="Space by object">
      <Failure of={error} />
      {data && freed.length === 0 && <Empty>the pool is empty</Empty>}
      <ul class="plain">
        {freed.slice(0, OBJECTS_SHOWN).map((one) => (
          <li key={`${one.kind} ${one.object}`}>
            <a href={link(`${one.kind}s`, one.object)}>{one.object}</a>
            <span class="right">{one.freed_if_deleted_bytes === null ? "–" : `deletion frees ${bytes(one.freed_if_deleted_bytes)}`}</span>
          </li>
        ))}
      </ul>
      {freed.length > 0 && <a href={link("pool")}>all of the ledger</a>}
    </Card>
  );
}

function Lag({ of }: { of: Dsource[] }) {
  return (
    <Card title="How far dSources are">
      {of.length === 0 && <Empty>there is no dSource</Empty>}
      <ul class="plain">
        {of.slice(0, 12).map((one) => (
          <li key={one.name}>
            <a href={link("dsources", one.name)}>{one.name}</a> <State of={one.state} />
            <span class="right">{one.lag_ms === null ? "–" : `${duration(one.lag_ms)}, ${bytes(one.lag_bytes)} behind`}</span>
          </li>
        ))}
      </ul>
      {of.length > 12 && <a href={link("dsources")}>{of.length - 12} more</a>}
    </Card>
  );
}

function Work() {
  const all = [...useCell(jobs).values()].sort((a, b) => (b.started_at ?? "").localeCompare(a.started_at ?? ""));
  const active = all.filter((job) => !isFinal(job));
  const shown = [...active, ...all.filter(isFinal)].slice(0, 8);
  return (
    <Card title="Jobs">
      {shown.length === 0 && <Empty>no job has run yet</Empty>}
      <ul class="plain">
        {shown.map((job) => (
          <li key={job.id}>
            <a href={link("jobs", job.id)}>
              {words(job.kind)} of {job.object}
            </a>{" "}
            <State of={job.state} />
            <span class="right">{isFinal(job) ? <span title={time(job.ended_at)}>{ago(job.ended_at)}</span> : <Progress of={job} />}</span>
          </li>
        ))}
      </ul>
    </Card>
  );
}
