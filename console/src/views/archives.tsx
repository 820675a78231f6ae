// dSources and VDBs as archives: to a file of the browser's host, and from there.
import { get } from "../api";
import { useCell } from "../cell";
import { bytes, percent } from "../format";
import { mayAdminister } from "../me";
import { go, link } from "../route";
import type { DsourceList, VdbList } from "../schema";
import { Card, Failure, State } from "../ui/basics";
import { question } from "../ui/dialog";
import { Table } from "../ui/table";
import { attempt } from "../ui/toasts";
import { exportArchives, importArchive, isOnItsWay, type Transfer, transfers } from "../transfers";
import { isCopy } from "./received";
import { wrong } from "./wrong";

export function Archives() {
  const all = useCell(transfers);
  if (!mayAdminister()) return null;
  const actions = (
    <span class="buttons">
      <button type="button" onClick={() => attempt(() => askExport())}>
        Export…
      </button>
      <button type="button" onClick={askImport}>
        Import…
      </button>
    </span>
  );
  return (
    <Card title="Archives" actions={actions}>
      <p>To carry what there is to another engine without a connection. The page has to stay open meanwhile.</p>
      {all.map((one) => one.error && <Failure key={one.key} of={one.error} />)}
      {all.length > 0 && (
        <Table<Transfer>
          label="archives on their way"
          rows={all}
          rowKey={(one) => String(one.key)}
          empty=""
          columns={[
            { name: "What", cell: (one) => one.what },
            { name: "State", cell: (one) => <State of={one.state} /> },
            { name: "How far", cell: howFar },
            { name: "Job", cell: (one) => one.job && <a href={link("jobs", one.job)}>{one.job}</a> },
            { name: "Actions", cell: (one) => isOnItsWay(one) && <Cancel of={one} /> },
          ]}
        />
      )}
    </Card>
  );
}

function Cancel({ of }: { of: Transfer }) {
  return (
    <button type="button" class="small" onClick={of.stop} aria-label={`cancel the ${of.what}`}>
      Cancel
    </button>
  );
}

const howFar = ({ bytes: gone, total }: Transfer): string => (total ? `${bytes(gone)} of ${bytes(total)}, ${percent(gone / total)}` : bytes(gone));

/** Asks for what is to be exported; `chosen` is ticked already, null: all of this engine's own. */
export async function askExport(chosen: string[] | null = []): Promise<void> {
  const [{ dsources }, { vdbs }] = await Promise.all([get<DsourceList>("dsources"), get<VdbList>("vdbs")]);
  const objects = [...dsources.map((one): [string, string] => [one.name, `${one.name}, a dSource`]), ...vdbs.map((one): [string, string] => [one.name, `${one.name}, a VDB: its snapshots that are ready`])];
  const own = [...dsources.filter((one) => !isCopy(one)), ...vdbs].map((one) => one.name);
  question({
    title: "Export archives",
    text: "An archive of each; the browser saves it when it is whole, one after the other. Whoever can read one can read the database; passwords that the engine keeps are not in them.",
    verb: "Export",
    fields: [
      { name: "names", label: "What", kind: "choices", required: true, choices: objects, value: (chosen ?? own).join(",") },
      { name: "plain", label: "Also from an encrypted pool: the archive is not encrypted", kind: "check" },
    ],
    done: async (values) => {
      void exportArchives((values["names"] as string).split(","), values.on("plain"));
      go("replication");
    },
  });
}

function askImport(): void {
  question({
    title: "Import an archive",
    text: "What it holds becomes a dSource PREFIX/NAME, read only, or renews it. Nothing of it appears before all of it has come.",
    verb: "Import",
    fields: [
      { name: "file", label: "Archive", kind: "file", required: true, hint: "as an export has written it" },
      { name: "as", label: "Prefix", required: true, value: "imported", hint: "what names get before them; the name of a peer, if that is to go on with it" },
    ],
    done: async (values) => {
      const file = values.file("file");
      if (!file) throw wrong("no file is chosen", "choose an archive");
      importArchive(file, values["as"] as string);
    },
  });
}
