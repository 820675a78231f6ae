// What was masked with what: the signed report of a masked dSource, to be read and to be saved.
import { at, get, useAnswer } from "../api";
import { count } from "../format";
import type { MaskReportColumn, SignedMaskReport } from "../schema";
import { save } from "../transfers";
import { Card, Facts, Failure, Time } from "../ui/basics";
import { Table } from "../ui/table";
import { attempt } from "../ui/toasts";

export function MaskReportCard({ name, onHide }: { name: string; onHide: () => void }) {
  const { data, error } = useAnswer<SignedMaskReport>(at("masks", name, "/report"));
  const keep = async () => {
    const { document } = await get<SignedMaskReport>(at("masks", name, "/report?format=html"));
    save(new Blob([document], { type: "text/html" }), `${name}-masking.html`);
  };
  const actions = (
    <span class="buttons">
      <button type="button" onClick={() => attempt(keep)} title="the document as it is signed">
        Save…
      </button>
      <button type="button" onClick={onHide}>
        Hide
      </button>
    </span>
  );
  return (
    <Card title={`Report of ${name}`} actions={actions}>
      <Failure of={error} />
      {data && <Said of={data} />}
    </Card>
  );
}

function Said({ of: { report } }: { of: SignedMaskReport }) {
  return (
    <>
      <Facts
        of={[
          ["image", report.snapshot],
          ["of the source at", <Time at={report.source_time} />],
          ["rules accepted by", report.accepted_by],
          ["digest of the rules", <code class="long">{report.rules_sha256}</code>],
          ["columns without a rule", count(report.columns_unmasked.length)],
        ]}
      />
      <Table<MaskReportColumn>
        label="what was masked with what"
        rows={report.columns}
        rowKey={(one) => `${one.table}.${one.column}`}
        empty="no column was masked"
        columns={[
          { name: "Table", cell: (one) => one.table },
          { name: "Column", cell: (one) => one.column },
          { name: "Masked with", cell: (one) => <code>{one.algorithm}</code> },
          { name: "Masks are", cell: (one) => one.uniqueness, wide: true },
          { name: "Who has them learns", cell: (one) => <div class="why">{one.learned}</div>, wide: true },
        ]}
      />
    </>
  );
}
