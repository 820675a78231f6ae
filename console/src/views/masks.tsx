import { useState } from "preact/hooks";
import { start, useAnswer } from "../api";
import { count, duration } from "../format";
import { mayAdminister, mayOperate } from "../me";
import { go, link } from "../route";
import type { Discovery, DsourceList, FoundColumn, Mask, MaskList, MaskPreview, MaskTable } from "../schema";
import { Card, Empty, Facts, Failure, Page, State, Time } from "../ui/basics";
import { question } from "../ui/dialog";
import { Rows } from "../ui/rows";
import { Table } from "../ui/table";
import { begin } from "../ui/toasts";
import { MaskReportCard } from "./mask-report";
import { useResult, Working } from "./result";
import { typedDuration } from "./typed";

export function Masks() {
  const { data, error } = useAnswer<MaskList>("masks", 3000);
  const dsources = useAnswer<DsourceList>("dsources");
  const [looking, setLooking] = useState<{ job: string; from: string }>();
  const [preview, setPreview] = useState<string>();
  const [rules, setRules] = useState("");
  const [reported, setReported] = useState<string>();
  const names = (dsources.data?.dsources ?? []).filter((one) => one.state !== "masked").map((one) => one.name);
  const actions = mayOperate() && names.length > 0 && (
    <span class="buttons">
      <button type="button" onClick={() => askDiscover(names, (job, from) => setLooking({ job, from }))}>
        Discover…
      </button>
      <button type="button" onClick={() => askPreview(names, rules, setRules, setPreview)}>
        Preview…
      </button>
      <button type="button" onClick={() => askCheck(names, rules, setRules)}>
        Check…
      </button>
      <button type="button" class="primary" onClick={() => askApply(names, rules, setRules)}>
        Mask…
      </button>
    </span>
  );
  return (
    <Page title="Masking" lead="dSources that hold no real person: VDBs of them may be given away." actions={actions}>
      <Failure of={error} />
      {looking && <Findings key={looking.job} {...looking} onRules={setRules} />}
      {preview && <Preview key={preview} job={preview} />}
      {data?.masks.length === 0 && <Empty>nothing is masked; Discover looks for what should be</Empty>}
      {reported && <MaskReportCard key={reported} name={reported} onHide={() => setReported(undefined)} />}
      {data?.masks.map((mask) => <MaskCard key={mask.name} of={mask} onReport={() => setReported(mask.name)} />)}
    </Page>
  );
}

function MaskCard({ of, onReport }: { of: Mask; onReport: () => void }) {
  const report = of.snapshot !== null && (
    <button type="button" onClick={onReport} aria-label={`report of ${of.name}`}>
      Report
    </button>
  );
  return (
    <Card title={of.name} actions={report}>
      <div class="columns">
        <Facts
          of={[
            ["state", <State of={of.state} />],
            ["masked from", <a href={link("dsources", of.source)}>{of.source}</a>],
            ["newest image", of.snapshot],
            ["made at", of.masked_at && <Time at={of.masked_at} />],
            ["run", `${of.mode}, ${duration(of.took_ms)}`],
            ["rows", `${count(of.rows_masked)}, ${count(of.rows_per_second)} a second`],
            ["values replaced", count(of.values_masked)],
            ["renewed", of.every_ms === null ? "when somebody asks" : `every ${duration(of.every_ms)}`],
            ["key", of.key],
          ]}
        />
        <div>
          <Failure of={of.error} />
          <Reminder title="Columns that look as if they had to be masked and have no rule" lines={of.columns_without_rule} />
          <Reminder title="Rules that met no table or column" lines={of.idle_rules} />
        </div>
      </div>
      <Table<MaskTable>
        label={`tables of ${of.name}`}
        rows={of.tables}
        rowKey={(one) => one.name}
        columns={[
          { name: "Table", cell: (one) => one.name },
          { name: "State", cell: (one) => <State of={one.state} /> },
          { name: "Rows", cell: (one) => `${count(one.rows)} of ${count(one.rows_total)}`, figures: true },
        ]}
      />
    </Card>
  );
}

function Reminder({ title, lines }: { title: string; lines: string[] }) {
  if (lines.length === 0) return null;
  return (
    <div class="warn">
      <strong>{title}</strong>
      <ul>
        {lines.map((line) => (
          <li key={line}>{line}</li>
        ))}
      </ul>
    </div>
  );
}

function Findings({ job, from, onRules }: { job: string; from: string; onRules: (rules: string) => void }) {
  const { data, ...under } = useResult<Discovery>(job, "mask-discoveries");
  return (
    <Card
      title={`Found in ${from}`}
      actions={
        data && (
          <button type="button" onClick={() => onRules(data.rules)}>
            Use the proposed rules
          </button>
        )
      }
    >
      <Working {...under} />
      {data && (
        <Table<FoundColumn>
          label="columns that should be masked"
          rows={data.findings}
          rowKey={(one) => `${one.table}.${one.column}`}
          empty="nothing that looks like a person's"
          columns={[
            { name: "Table", cell: (one) => one.table },
            { name: "Column", cell: (one) => one.column },
            { name: "Seems to be", cell: (one) => one.kind },
            { name: "Proposed rule", cell: (one) => <code>{one.algorithm}</code> },
            { name: "Sure", cell: (one) => `${Math.round(one.confidence * 100)} %`, figures: true },
            { name: "Why", cell: (one) => one.why, wide: true },
          ]}
        />
      )}
      {data && (
        <details>
          <summary>Proposed rules</summary>
          <pre tabIndex={0}>{data.rules}</pre>
        </details>
      )}
    </Card>
  );
}

function Preview({ job }: { job: string }) {
  const { data, ...under } = useResult<MaskPreview>(job, "mask-previews");
  return (
    <Card title={`Preview${data ? ` of ${data.table}` : ""}`}>
      <Working {...under} />
      {data && (
        <Rows
          label="rows before and after"
          columns={data.columns.map((column) => [column.name, column.algorithm])}
          rows={data.rows.map((row) => row.map(({ before, after }) => (before === after ? { after } : { before, after })))}
        />
      )}
    </Card>
  );
}

const from = (names: string[]) => ({ name: "from", label: "dSource", kind: "choice" as const, choices: names.map((name): [string, string] => [name, name]) });
const rulesField = (value: string) => ({ name: "rules", label: "Rules", kind: "lines" as const, value, required: true, hint: "YAML; Discover proposes some. The engine does not tell those of earlier runs" });

function askDiscover(names: string[], then: (job: string, from: string) => void): void {
  question({
    title: "Discover what should be masked",
    text: "Names of columns and a sample of their values are looked at; no value is shown or kept.",
    verb: "Discover",
    fields: [from(names), { name: "sample", label: "Values of each column", kind: "number", value: "1000" }],
    done: async (values) => {
      const dsource = values["from"] as string;
      const job = await begin(`discovery in ${dsource}`, start("POST", "mask-discoveries", { from: dsource, sample: Number(values["sample"] || 1000) }));
      then(job, dsource);
    },
  });
}

function askPreview(names: string[], rules: string, keep: (rules: string) => void, then: (job: string) => void): void {
  question({
    title: "Preview masked rows",
    verb: "Preview",
    fields: [
      from(names),
      { name: "table", label: "Table", required: true, value: "public." },
      { name: "rows", label: "Rows", kind: "number", value: "10" },
      rulesField(rules),
      ...(mayAdminister() ? [{ name: "originals", label: "Show the values of production, too", kind: "check" as const }] : []),
    ],
    done: async (values) => {
      keep(values["rules"] ?? "");
      const body = { from: values["from"], rules: values["rules"], table: values["table"], rows: Number(values["rows"] || 10), originals: values.on("originals") };
      then(await begin(`preview of ${values["table"]}`, start("POST", "mask-previews", body)));
    },
  });
}

function askCheck(names: string[], rules: string, keep: (rules: string) => void): void {
  question({
    title: "Check rules",
    text: "Whether they can be applied, which rules meet no column, and which columns look as if they had to be masked and have none. Nothing is masked.",
    verb: "Check",
    fields: [from(names), rulesField(rules)],
    done: async (values) => {
      keep(values["rules"] ?? "");
      go("jobs", await begin(`check of rules for ${values["from"]}`, start("POST", "masks/check", { from: values["from"], rules: values["rules"] })));
    },
  });
}

function askApply(names: string[], rules: string, keep: (rules: string) => void): void {
  question({
    title: "Make or renew a masked dSource",
    verb: "Mask",
    fields: [from(names), { name: "as", label: "Name", hint: "the dSource's with -masked where empty" }, { name: "every", label: "Renew every", hint: "as 1d; when somebody asks where empty" }, rulesField(rules)],
    done: async (values) => {
      keep(values["rules"] ?? "");
      const every = typedDuration(values["every"]);
      const body = { from: values["from"], rules: values["rules"], ...(values["as"] && { as: values["as"] }), ...(every && { every_ms: every }) };
      await begin(`mask ${values["from"]}`, start("POST", "masks", body));
    },
  });
}
