// What is sent to another engine by one profile, and its runs.
import { ask, at, start, useAnswer } from "../api";
import { changed } from "../events";
import { bytes, count, duration } from "../format";
import { mayAdminister, mayOperate } from "../me";
import { go, link } from "../route";
import type { Replication, ReplicationHistory, ReplicationRun } from "../schema";
import { Card, Facts, Failure, Page, State, Time } from "../ui/basics";
import { question } from "../ui/dialog";
import { Table } from "../ui/table";
import { attempt, run, say } from "../ui/toasts";
import { askExport } from "./archives";

const path = (name: string, rest = ""): string => at("replication/profiles", name, rest);

/** When it runs by itself. */
export function whenOf(one: Replication): string {
  if (one.continuous) return "always";
  if (one.every_ms !== null) return `every ${duration(one.every_ms)}`;
  return one.crontab ?? "when somebody runs it";
}

export function ReplicationView({ name }: { name: string }) {
  const profile = useAnswer<Replication>(path(name), 2000);
  const history = useAnswer<ReplicationHistory>(path(name, "/history"));
  const one = profile.data;
  return (
    <Page title={name} lead={one && <State of={one.state} />} actions={one && <Actions of={one} />}>
      <Failure of={profile.error ?? history.error ?? one?.error} />
      {one && (
        <div class="columns">
          <What of={one} />
          <How of={one} />
        </div>
      )}
      {history.data && (
        <Card title="Runs">
          <Runs of={history.data.runs} />
        </Card>
      )}
    </Page>
  );
}

function What({ of }: { of: Replication }) {
  return (
    <Card title="What is sent">
      <Facts
        of={[
          ["to", of.peer],
          ["what", of.include?.join(", ") ?? "all of this engine's own"],
          ["copies of others, too", of.replicas && "yes"],
          ["only what is masked", of.masked_only && "yes"],
          ["passwords, too", of.with_secrets && "yes"],
          ["runs", whenOf(of)],
          ["next", of.next_run_at && <Time at={of.next_run_at} />],
          ["at most", of.bytes_per_second_max === null ? null : `${bytes(of.bytes_per_second_max)}/s`],
          ["connections", of.connections],
        ]}
      />
    </Card>
  );
}

function How({ of }: { of: Replication }) {
  return (
    <Card title="How far it is">
      <Facts
        of={[
          ["behind", of.lag_ms === null ? "the peer has nothing yet" : duration(of.lag_ms)],
          ["log that it lacks", bytes(of.lag_bytes)],
          ["a fault from", of.rpo_ms === null ? null : duration(of.rpo_ms)],
          ["last success", <Time at={of.last_success_at} />],
          ["running", of.job && <a href={link("jobs", of.job)}>{of.job}</a>],
          ["sent by the last run", `${bytes(of.sent_bytes)}, ${bytes(of.bytes_per_second)}/s`],
          ["what the peer lacked", bytes(of.changed_unique_bytes)],
          ["what it had", bytes(of.saved_bytes)],
        ]}
      />
    </Card>
  );
}

function Runs({ of }: { of: ReplicationRun[] }) {
  return (
    <Table<ReplicationRun>
      label="runs"
      rows={of}
      rowKey={(one) => one.job}
      empty="none has ended yet"
      columns={[
        { name: "Began", cell: (one) => <Time at={one.started_at} /> },
        { name: "Took", cell: (one) => duration(Date.parse(one.ended_at) - Date.parse(one.started_at)), figures: true },
        { name: "Outcome", cell: (one) => one.error ? <a href={link("jobs", one.job)}>{one.error.message}</a> : (one.resumed ? "done, after it was cut" : "done") },
        { name: "Objects", cell: (one) => count(one.objects), figures: true, wide: true },
        { name: "Sent", cell: (one) => bytes(one.sent_bytes), figures: true },
        { name: "Lacked", cell: (one) => bytes(one.changed_unique_bytes), figures: true, wide: true },
        { name: "Job", cell: (one) => <a href={link("jobs", one.job)}>{one.job}</a>, wide: true },
      ]}
    />
  );
}

function Actions({ of: { name, peer, state, include } }: { of: Replication }) {
  const turn = (verb: "pause" | "resume") =>
    attempt(async () => {
      await ask<Replication>("POST", path(name, `/${verb}`));
      say(`${name}: ${verb === "pause" ? "it does not run by itself" : "it runs by itself again"}`, "good");
      changed();
    });
  const remove = () =>
    question({
      title: `Delete ${name}`,
      text: `Nothing is sent to ${peer} by it any more. What it has sent stays there.`,
      verb: "Delete",
      dangerous: true,
      done: async () => {
        await ask<Replication>("DELETE", path(name));
        say(`${name} is deleted`, "good");
        changed();
        go("replication");
      },
    });
  return (
    <span class="buttons">
      {mayOperate() && (
        <>
          {state !== "running" && (
            <button type="button" class="primary" onClick={() => run(`run ${name}`, () => start("POST", path(name, "/run")))}>
              Run
            </button>
          )}
          {state === "paused" ? (
            <button type="button" onClick={() => turn("resume")}>
              Resume
            </button>
          ) : (
            <button type="button" onClick={() => turn("pause")}>
              Pause
            </button>
          )}
        </>
      )}
      {mayAdminister() && (
        <>
          <button type="button" onClick={() => attempt(() => askExport(include ?? null))} title="as archives, to be carried there">
            Export…
          </button>
          <button type="button" class="danger" onClick={remove}>
            Delete…
          </button>
        </>
      )}
    </span>
  );
}
