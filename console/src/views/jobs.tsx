import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { ask, at, useAnswer } from "../api";
import { useCell } from "../cell";
import { changed, isFinal, jobNumber, jobs } from "../events";
import { bytes, count, duration, words } from "../format";
import { mayUse } from "../me";
import { link } from "../route";
import type { Job, JobStep } from "../schema";
import { Card, Facts, Failure, Page, Search, State, Time } from "../ui/basics";
import { Table } from "../ui/table";
import { attempt, say } from "../ui/toasts";

const amount = (value: number, unit: string): string => (unit === "bytes" ? bytes(value) : `${count(value)} ${unit}`);
const took = (job: Job): number | null => (job.started_at ? (job.ended_at ? Date.parse(job.ended_at) : Date.now()) - Date.parse(job.started_at) : null);

/** How much of a job is done, and how fast it goes. */
export function Progress({ of }: { of: Job }) {
  const { done, total, unit } = of.progress;
  const rate = useRate(of);
  const step = of.steps.find((one) => one.state === "running");
  const share = total ? Math.min(1, done / total) : undefined;
  return (
    <span class="progress">
      {share !== undefined && <progress value={share} max={1} aria-label={`progress of ${of.id}`} />}
      <span>
        {step && words(step.name)} {total ? `${amount(done, unit)} of ${amount(total, unit)}` : done > 0 ? amount(done, unit) : ""}
        {rate !== undefined && rate > 0 && `, ${amount(Math.round(rate), unit)}/s`}
      </span>
    </span>
  );
}

/** Of each second, since the progress was last told. */
function useRate({ progress, state }: Job): number | undefined {
  const last = useRef<{ done: number; at: number; rate?: number } | undefined>(undefined);
  const now = performance.now();
  if (state !== "running") return undefined;
  const before = last.current;
  if (!before || progress.done < before.done) last.current = { done: progress.done, at: now };
  else if (progress.done !== before.done && now - before.at > 500) {
    last.current = { done: progress.done, at: now, rate: ((progress.done - before.done) * 1000) / (now - before.at) };
  }
  return last.current?.rate;
}

export function Jobs() {
  const all = byNumber(useCell(jobs));
  const [filter, setFilter] = useState("");
  const rows = all.filter((job) => job.id === filter || job.object.includes(filter) || words(job.kind).includes(filter) || job.state === filter);
  return (
    <Page title="Jobs" lead="Whatever changes something is a job. It goes on without this page.">
      <Search value={filter} onInput={setFilter} label="Filter by object, kind or state" />
      <JobTable rows={rows} />
    </Page>
  );
}

const byNumber = (known: ReadonlyMap<string, Job>): Job[] => [...known.values()].sort((a, b) => jobNumber(b.id) - jobNumber(a.id));

/** Jobs of one kind, newest first. */
export const useJobsOf = (kind: string): Job[] => byNumber(useCell(jobs)).filter((job) => job.kind === kind);

/** Jobs, each with a link to what it found, or to itself. */
export function JobTable({ rows, place = "jobs", empty = "there is no job" }: { rows: Job[]; place?: string; empty?: ComponentChildren }) {
  return (
    <Table<Job>
      label="jobs"
      rows={rows}
      rowKey={(job) => job.id}
      empty={empty}
      columns={[
        { name: "Job", cell: (job) => <a href={link(place, job.id)}>{job.id}</a> },
        { name: "State", cell: (job) => <State of={job.state} /> },
        { name: "What", cell: (job) => words(job.kind) },
        { name: "Of", cell: (job) => job.object },
        { name: "Progress", cell: (job) => (isFinal(job) ? (job.error?.message ?? job.result) : <Progress of={job} />), wide: true },
        { name: "Began", cell: (job) => <Time at={job.started_at} />, wide: true },
        { name: "Took", cell: (job) => duration(took(job)), figures: true },
        ...(mayUse() ? [{ name: "Actions", cell: (job: Job) => <Cancel of={job} /> }] : []),
      ]}
    />
  );
}

export function Cancel({ of }: { of: Job }) {
  if (!mayUse() || isFinal(of) || of.state === "undoing") return null;
  const cancel = () =>
    attempt(async () => {
      await ask<Job>("POST", at("jobs", of.id, "/cancel"));
      say(`${of.id} stops and undoes what it did`, "quiet", of.id);
      changed();
    });
  return (
    <button type="button" class="small danger" onClick={cancel} aria-label={`cancel ${of.id}`}>
      Cancel
    </button>
  );
}

/** A job as the stream tells it, or, before it does, as the engine answers. */
export function useJob(id: string) {
  const streamed = useCell(jobs).get(id);
  const asked = useAnswer<Job>(streamed ? null : at("jobs", id));
  return { job: streamed ?? asked.data, error: asked.error };
}

export function JobView({ id }: { id: string }) {
  const { job, error } = useJob(id);
  const [, draw] = useState(0);
  useEffect(() => {
    const timer = setInterval(() => draw((n) => n + 1), 1000);
    return () => clearInterval(timer);
  }, []);
  return (
    <Page title={id} lead={job && <State of={job.state} />} actions={job && <Cancel of={job} />}>
      {!job && <Failure of={error} />}
      <Failure of={job?.error} />
      {job && (
        <div class="columns">
          <Card title="Job">
            <Facts
              of={[
                ["what", words(job.kind)],
                ["of", job.object],
                ["began", <Time at={job.started_at} />],
                ["ended", job.ended_at && <Time at={job.ended_at} />],
                ["took", duration(took(job))],
                ["result", job.result],
                ["notes", job.notes?.join("; ")],
                ["progress", !isFinal(job) && <Progress of={job} />],
              ]}
            />
          </Card>
          <Card title="Steps">
            <ol class="steps">
              {job.steps.map((step) => (
                <Step key={step.name} of={step} />
              ))}
            </ol>
          </Card>
        </div>
      )}
    </Page>
  );
}

function Step({ of }: { of: JobStep }) {
  const from = of.started_at ? Date.parse(of.started_at) : undefined;
  const to = of.ended_at ? Date.parse(of.ended_at) : of.state === "running" ? Date.now() : undefined;
  return (
    <li>
      <span>{words(of.name)}</span> <State of={of.state} />
      <span class="right">{from !== undefined && to !== undefined ? duration(Math.max(0, to - from)) : ""}</span>
    </li>
  );
}
