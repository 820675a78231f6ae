// Which commit changed the answer to a query.
import { start } from "../api";
import { count, duration, time } from "../format";
import { mayUse } from "../me";
import { atLsn, latest, written, type Picked } from "../moment";
import { go, link } from "../route";
import type { Answer, Bisection, ChangedRelation, ChangingCommit } from "../schema";
import { Card, Empty, Facts, Page, State, Time } from "../ui/basics";
import { question } from "../ui/dialog";
import { Table } from "../ui/table";
import { begin } from "../ui/toasts";
import { JobTable, useJobsOf } from "./jobs";
import { askProvision } from "./provision";
import { useResult, Working } from "./result";
import { typedDuration, typedMoment } from "./typed";
import { wrong } from "./wrong";

export function Bisections() {
  return (
    <Page title="Bisect" lead="Which commit changed the answer to a query. A search begins at a dSource: Bisect… at its time line.">
      <JobTable rows={useJobsOf("bisect")} place="bisect" empty={<>nothing was searched yet; begin at one of the <a href={link("dsources")}>dSources</a></>} />
    </Page>
  );
}

export function BisectionView({ id }: { id: string }) {
  const { data, ...under } = useResult<Bisection>(id, "bisections");
  return (
    <Page title={`Bisect, ${id}`} lead={under.job && <State of={under.job.state} />}>
      <Working {...under} />
      {data && (
        <>
          {data.change ? <Commit of={data.change} object={data.object} /> : <Empty>The answers at both ends do not differ in what was searched: there is no such commit.</Empty>}
          <Card title="Search">
            <Facts
              of={[
                ["dSource", <a href={link("dsources", data.object)}>{data.object}</a>],
                ["query", <code class="long">{data.query}</code>],
                ["database", data.database],
                ["until it is", data.until],
                ["until it is no longer", data.expect],
                ["from", <End time={data.from.time} answer={data.from.answer} />],
                ["to", <End time={data.to.time} answer={data.to.answer} />],
                ["commits between", count(data.commits)],
                ["moments opened", count(data.moments_opened)],
                ["took", duration(data.took_ms)],
              ]}
            />
          </Card>
        </>
      )}
    </Page>
  );
}

function End({ time, answer }: { time: string; answer: Answer }) {
  return (
    <>
      <Time at={time} />: <Said of={answer} />
    </>
  );
}

function Said({ of: { kind, text } }: { of: Answer }) {
  if (kind === "value") return <code class="long">{text}</code>;
  return <>{{ null: "NULL", no_row: "no row", error: `refused: ${text}` }[kind]}</>;
}

function Commit({ of, object }: { of: ChangingCommit; object: string }) {
  const provision = mayUse() && (
    <button type="button" onClick={() => void askProvision(object, { ...atLsn(of.lsn), label: `${time(of.time)}, right after transaction ${of.xid}` })}>
      Provision…
    </button>
  );
  return (
    <Card title="The commit" actions={provision}>
      <Facts
        of={[
          ["time", <Time at={of.time} />],
          ["transaction", of.xid],
          ["log position", <code>{of.lsn}</code>],
          ["answer before", <Said of={of.before} />],
          ["answer after", <Said of={of.after} />],
        ]}
      />
      <Table<ChangedRelation>
        label="what it changed"
        rows={of.changes}
        rowKey={(one) => `${one.database} ${one.relation}`}
        empty="its log names no row that it changed"
        columns={[
          { name: "Relation", cell: (one) => one.relation },
          { name: "Database", cell: (one) => one.database, wide: true },
          { name: "Inserted", cell: (one) => count(one.inserted), figures: true },
          { name: "Updated", cell: (one) => count(one.updated), figures: true },
          { name: "Deleted", cell: (one) => count(one.deleted), figures: true },
          { name: "File", cell: (one) => (one.rewritten ? "new" : "the same"), wide: true },
        ]}
      />
      {!of.changes_whole && <p class="warn">It began long before its commit, and may have changed more.</p>}
    </Card>
  );
}

/** Asks for what is needed to search a dSource's history from a moment on. */
export function askBisect(object: string, picked: Picked): void {
  question({
    title: `Bisect ${object}`,
    text: "The answer is the first column of the query's first row. Both ends are asked first, and must differ.",
    verb: "Search",
    fields: [
      { name: "query", label: "Query", kind: "lines", rows: 4, required: true, hint: "one query, which only reads" },
      { name: "from", label: "From", required: true, value: picked === latest ? "-1h" : written(picked), hint: "as -1h, 2026-11-21 14:03, 0/3A2B1C0" },
      { name: "to", label: "To", required: true, value: "latest" },
      { name: "until", label: "Until the answer is", hint: "NULL is SQL's; where both are empty: until it is another one" },
      { name: "expect", label: "Until the answer is no longer" },
      { name: "database", label: "Database", hint: "that of the source's URI where empty" },
      { name: "limit", label: "An answer may take", value: "10s" },
      { name: "errors", label: "A refusal is an answer, too: a table that is not there yet", kind: "check" },
    ],
    done: async (values) => {
      const { query, from, to, until, expect, database, limit } = values;
      if (until && expect) throw wrong("a search is until one answer, or until another one no longer is", "leave one of them empty");
      const body = {
        object,
        query,
        from: (await typedMoment(from)).moment,
        to: (await typedMoment(to)).moment,
        until: until || null,
        expect: expect || null,
        database: database || null,
        time_limit_ms: typedDuration(limit) ?? null,
        errors_are_answers: values.on("errors"),
      };
      go("bisect", await begin(`bisect ${object}`, start("POST", "bisections", body)));
    },
  });
}
