// What is asked for to compare two states.
import { get, start } from "../api";
import { latest, written, type Picked } from "../moment";
import { go } from "../route";
import type { CreateDiff, DiffedState, DiffState, DsourceList, VdbList } from "../schema";
import { question } from "../ui/dialog";
import { begin } from "../ui/toasts";
import { typedMoment } from "./typed";

export interface Chosen {
  object: string;
  picked: Picked;
}

/** Begins a comparison, and goes to where its result will be. */
export async function startDiff(body: CreateDiff): Promise<string> {
  const job = await start("POST", "diffs", body);
  go("diff", job);
  return job;
}

/** A state that was compared, to be compared again: a dSource's by its log, a VDB's by its snapshot, or as it is now. */
export async function stateOf({ object, moment: { lsn, snapshot } }: DiffedState): Promise<DiffState> {
  const { dsources } = await get<DsourceList>("dsources");
  if (lsn && dsources.some((one) => one.name === object)) return { object, moment: { kind: "lsn", lsn } };
  return { object, moment: snapshot ? { kind: "snapshot", id: snapshot } : { kind: "latest" } };
}

/** Asks for two states; one or both may have been chosen. */
export async function askDiff(left?: Chosen, right?: Chosen): Promise<void> {
  const [{ dsources }, { vdbs }] = await Promise.all([
    get<DsourceList>("dsources").catch(() => ({ dsources: [] }) as DsourceList),
    get<VdbList>("vdbs").catch(() => ({ vdbs: [] }) as VdbList),
  ]);
  const choices = [...dsources.map((one): [string, string] => [one.name, one.name]), ...vdbs.map((one): [string, string] => [one.name, `${one.name} (VDB)`])];
  const state = (name: string, label: string, chosen: Chosen | undefined) => [
    { name, label, kind: "choice" as const, choices, value: chosen?.object ?? "" },
    { name: `${name}_at`, label: `${label}: moment`, required: true, value: written(chosen?.picked ?? latest), hint: "latest, -1h, 14:03:27, a bookmark, snapshot-7; a VDB opens at snapshots, bookmarks and the latest" },
  ];
  question({
    title: "Compare two states",
    text: "What differs is told from the first to the second: a row is added if only the second has it.",
    verb: "Compare",
    fields: [
      ...state("left", "First", left),
      ...state("right", "Second", right ?? left),
      { name: "tables", label: "Tables", hint: "as orders, public.*; all where empty" },
      { name: "rows", label: "Rows to show of each table", kind: "number", value: "100" },
      { name: "sql", label: "Statements, too, that make the rows of the first what they are in the second", kind: "check" },
    ],
    done: async (values) => {
      const of = async (name: string): Promise<DiffState> => ({ object: values[name] as string, moment: (await typedMoment(values[`${name}_at`])).moment });
      const tables = (values["tables"] ?? "").split(",").map((one) => one.trim()).filter(Boolean);
      const [one, other] = [await of("left"), await of("right")];
      await begin("diff", startDiff({ left: one, right: other, tables, rows: Number(values["rows"] || 0), sql: values.on("sql") }));
    },
  });
}
