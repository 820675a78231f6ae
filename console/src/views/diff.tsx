// What differs between two states: dSources and VDBs at moments.
import { useState } from "preact/hooks";
import { count, duration } from "../format";
import { mayUse } from "../me";
import type { Diff, DiffedState, DiffObject, DiffRow, DiffTable } from "../schema";
import { Card, Copy, Facts, Page, State, Time } from "../ui/basics";
import { Rows, type Change } from "../ui/rows";
import { Table } from "../ui/table";
import { run } from "../ui/toasts";
import { askDiff, startDiff, stateOf } from "./diff-ask";
import { JobTable, useJobsOf } from "./jobs";
import { useResult, Working } from "./result";

export function Diffs() {
  const actions = mayUse() && (
    <button type="button" class="primary" onClick={() => void askDiff()}>
      Compare…
    </button>
  );
  return (
    <Page title="Diff" lead="What differs between two states. The last eight are kept, as long as the engine runs." actions={actions}>
      <JobTable rows={useJobsOf("diff")} place="diff" empty="nothing was compared yet" />
    </Page>
  );
}

export function DiffView({ id }: { id: string }) {
  const { data, ...under } = useResult<Diff>(id, "diffs");
  return (
    <Page title={`Diff, ${id}`} lead={under.job && <State of={under.job.state} />} actions={data && mayUse() && <Again of={data} />}>
      <Working {...under} />
      {data && (
        <>
          <Card title="Compared">
            <Facts
              of={[
                ["from", <Compared of={data.left} />],
                ["to", <Compared of={data.right} />],
                ["took", duration(data.took_ms)],
                ["notes", data.notes.join("; ")],
              ]}
            />
          </Card>
          {data.sql !== null && <Statements sql={data.sql} />}
          <Tables of={data.tables} />
          <Schema of={data.schema} />
        </>
      )}
    </Page>
  );
}

function Compared({ of: { object, moment } }: { of: DiffedState }) {
  return (
    <>
      <strong>{object}</strong> {moment.time && <Time at={moment.time} />} {moment.snapshot} {moment.lsn && <code>{moment.lsn}</code>}
    </>
  );
}

/** The same diff with rows, which who asked by the command line may have left out; and from the other side, with statements: what makes the second state the first again. */
function Again({ of }: { of: Diff }) {
  const changed = of.tables.filter(differs);
  const ask = async (left: DiffedState, right: DiffedState, sql: boolean) =>
    startDiff({ left: await stateOf(left), right: await stateOf(right), tables: changed.map((one) => one.table), rows: 100, sql });
  const again = () => ask(of.left, of.right, false);
  const back = () => ask(of.right, of.left, true);
  return (
    <span class="buttons">
      {changed.length > 0 && changed.every((one) => one.rows.length === 0) && (
        <button type="button" onClick={() => run("diff", again)} title="compares the tables that differ once more, with their first rows">
          Show the rows
        </button>
      )}
      <button type="button" disabled={changed.length === 0} onClick={() => run("diff", back)} title={`statements that give ${of.right.object} the rows of ${of.left.object}`}>
        {of.sql === null ? "SQL that brings these rows back" : "SQL the other way round"}
      </button>
    </span>
  );
}

function Statements({ sql }: { sql: string }) {
  return (
    <Card title="Statements" actions={<Copy of={sql} what="the statements" />}>
      <p>Where the first of these states is, they give its tables the rows of the second. They change rows only, in one transaction for each database.</p>
      <pre tabIndex={0} aria-label="statements">
        {sql}
      </pre>
    </Card>
  );
}

const differs = (one: DiffTable): boolean => one.added + one.removed + one.changed > 0;

function Tables({ of }: { of: DiffTable[] }) {
  const [all, showAll] = useState(false);
  const [shown, show] = useState<DiffTable>();
  const same = of.filter((one) => !differs(one)).length;
  const actions = same > 0 && (
    <button type="button" class="small" aria-pressed={all} onClick={() => showAll(!all)}>
      {all ? "Only those that differ" : `${count(same)} that do not differ`}
    </button>
  );
  const rows = (one: DiffTable) =>
    one.rows.length > 0 && (
      <button type="button" class="small" aria-pressed={one === shown} onClick={() => show(one)} aria-label={`rows of ${one.table}`}>
        Rows
      </button>
    );
  return (
    <>
      <Card title="Tables" actions={actions}>
        <Table<DiffTable>
          label="tables"
          rows={all ? of : of.filter(differs)}
          rowKey={keyOf}
          empty="no row differs"
          columns={[
            { name: "Table", cell: (one) => one.table },
            { name: "Database", cell: (one) => one.database, wide: true },
            { name: "Added", cell: (one) => count(one.added), figures: true },
            { name: "Changed", cell: (one) => (one.key.length > 0 ? count(one.changed) : "–"), figures: true },
            { name: "Removed", cell: (one) => count(one.removed), figures: true },
            { name: "Read", cell: (one) => <span title={one.why ?? undefined}>{one.read === "pages" ? `${count(one.pages_read)} of ${count(one.pages)} pages` : one.read}</span>, wide: true },
            { name: "Actions", cell: rows },
          ]}
        />
      </Card>
      {shown && <ChangedRows key={keyOf(shown)} of={shown} />}
    </>
  );
}

const keyOf = (one: DiffTable): string => `${one.database} ${one.table}`;

function ChangedRows({ of }: { of: DiffTable }) {
  const total = of.added + of.removed + of.changed;
  return (
    <Card title={`Rows of ${of.table}`}>
      {of.rows.length < total && (
        <p>
          The first {count(of.rows.length)} of {count(total)}.
        </p>
      )}
      <Rows
        label={`rows of ${of.table}`}
        columns={[["What", ""], ...of.columns.map((name): [string, string] => [name, of.key.includes(name) ? "key" : ""])]}
        rows={of.rows.map((row) => [{ after: kindOf(row) }, ...cellsOf(row, of.columns.length)])}
      />
    </Card>
  );
}

const kindOf = ({ before, after }: DiffRow): string => (before === null ? "added" : after === null ? "removed" : "changed");

function cellsOf({ before, after }: DiffRow, columns: number): Change[] {
  return Array.from({ length: columns }, (_, place) => {
    const [was, is] = [before?.[place], after?.[place]];
    return was === is ? { after: is } : { before: was, after: is };
  });
}

function Schema({ of }: { of: DiffObject[] }) {
  return (
    <Card title="Schema">
      <Table<DiffObject>
        label="schema"
        rows={of}
        rowKey={(one) => `${one.database} ${one.kind} ${one.name}`}
        empty="nothing of it differs"
        columns={[
          { name: "What", cell: (one) => `${one.kind} ${one.name}` },
          { name: "Database", cell: (one) => one.database, wide: true },
          { name: "Before", cell: (one) => (one.before === null ? "–" : <code class="long">{one.before}</code>) },
          { name: "After", cell: (one) => (one.after === null ? "–" : <code class="long">{one.after}</code>) },
        ]}
      />
    </Card>
  );
}
