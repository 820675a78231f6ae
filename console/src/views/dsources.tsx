import { useState } from "preact/hooks";
import { start, useAnswer } from "../api";
import { bytes, duration, parseDuration } from "../format";
import { mayAdminister } from "../me";
import { link } from "../route";
import type { Dsource, DsourceList } from "../schema";
import { Failure, Page, Search, State } from "../ui/basics";
import { question } from "../ui/dialog";
import { Table } from "../ui/table";
import { begin } from "../ui/toasts";
import { wrong } from "./wrong";

export function Dsources() {
  const { data, error } = useAnswer<DsourceList>("dsources", 5000);
  const [filter, setFilter] = useState("");
  const rows = (data?.dsources ?? []).filter((one) => one.name.includes(filter));
  const actions = mayAdminister() && (
    <button type="button" class="primary" onClick={askLink}>
      Link a source
    </button>
  );
  return (
    <Page title="dSources" lead="Synchronised copies of source databases. Any moment of their history opens." actions={actions}>
      <Failure of={error} />
      <Search value={filter} onInput={setFilter} label="Filter by name" />
      {data && (
        <Table<Dsource>
          label="dSources"
          rows={rows}
          rowKey={(one) => one.id}
          empty={filter ? "no name has this in it" : "there is no dSource; Link a source copies a database and follows it"}
          columns={[
            { name: "Name", cell: (one) => <a href={link("dsources", one.name)}>{one.name}</a> },
            { name: "State", cell: (one) => <State of={one.state} /> },
            { name: "Behind", cell: (one) => (one.lag_ms === null ? "–" : duration(one.lag_ms)), figures: true },
            { name: "Snapshots", cell: (one) => one.snapshots.length, figures: true, wide: true },
            { name: "Stored", cell: (one) => bytes(one.stored_bytes), figures: true },
            { name: "Outside the pool", cell: (one) => bytes(one.logical_bytes), figures: true, wide: true },
            { name: "Source", cell: (one) => <code>{one.source}</code>, wide: true },
          ]}
        />
      )}
    </Page>
  );
}

function askLink(): void {
  question({
    title: "Link a source",
    verb: "Link",
    text: "The engine copies the database, then follows its log. What is missing on the source is said before anything is copied.",
    fields: [
      { name: "name", label: "Name", required: true, hint: "a-z, 0-9, _ and -, beginning with a letter" },
      { name: "source", label: "Source", required: true, value: "postgresql://replicator@host:5432/postgres" },
      { name: "password", label: "Password", kind: "password", hint: "kept sealed and never shown" },
      { name: "every", label: "Snapshot every", value: "10min", hint: "as 10min or 1h; only while there are changes" },
    ],
    done: async ({ name = "", source = "", password, every }) => {
      const ms = every ? parseDuration(every) : undefined;
      if (every && ms === undefined) throw wrong(`'${every}' is no duration`, "write it as 10min or 1h");
      const body = { name, connector: "postgres", source, ...(password && { password }), ...(ms && { snapshot_every_ms: ms }) };
      await begin(`link ${name}`, start("POST", "dsources", body));
    },
  });
}
