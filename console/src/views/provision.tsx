// Making a VDB of a picked moment.
import { at, get, start } from "../api";
import type { Picked } from "../moment";
import { go } from "../route";
import type { ProvisionVdb, VdbList } from "../schema";
import { question } from "../ui/dialog";
import { begin } from "../ui/toasts";
import { typedMoment } from "./typed";
import { wishesOf, wishFields } from "./wishes";

/** A free name, so that one click is enough. */
async function freeName(from: string): Promise<string> {
  const { vdbs } = await get<VdbList>("vdbs");
  const taken = new Set(vdbs.map((vdb) => vdb.name));
  const base = from.slice(0, 56);
  for (let number = 1; ; number++) {
    const name = `${base}-${number}`;
    if (!taken.has(name)) return name;
  }
}

/** Asks for what is needed to provision, with everything filled in. */
export async function askProvision(from: string, picked: Picked): Promise<void> {
  const free = await freeName(from).catch(() => "");
  question({
    title: `Provision from ${from}`,
    text: <>The VDB opens at {picked.label}.</>,
    verb: "Provision",
    fields: [
      { name: "name", label: "Name", required: true, value: free, hint: "a-z, 0-9, _ and -, beginning with a letter" },
      { name: "port", label: "Port", kind: "number", hint: "a free one where empty" },
      ...wishFields(),
    ],
    done: async (values) => {
      const { name = "", port } = values;
      const body: ProvisionVdb = { ...wishesOf(values), name, from, moment: picked.moment, ...(port && { port: Number(port) }) };
      await begin(`provision ${name}`, start("POST", "vdbs", body));
      go("vdbs", name);
    },
  });
}

/** Asks for a bookmark on a moment. */
export function askBookmark(on: string, picked: Picked): void {
  question({
    title: `Bookmark on ${on}`,
    text: <>It names {picked.label}, which then stays openable.</>,
    verb: "Create",
    fields: [{ name: "name", label: "Name", required: true, hint: "a-z, 0-9, _ and -, beginning with a letter" }],
    done: ({ name }) => begin(`bookmark ${name}`, start("POST", "bookmarks", { name, on, moment: picked.moment })),
  });
}

/** A moment of the parent, as somebody writes it. */
export function askRefresh(name: string, parent: string): void {
  question({
    title: `Refresh ${name}`,
    text: <>It opens at another moment of {parent}, under the same name, port and password. What it holds now stays and can be gone back to.</>,
    verb: "Refresh",
    fields: [{ name: "moment", label: "Moment", required: true, value: "latest", hint: "as 14:03:27, -10min, 2026-11-21 14:03, 0/3A2B1C0, xid 742, a bookmark" }],
    done: async (values) => {
      const { moment } = await typedMoment(values["moment"]);
      await begin(`refresh ${name}`, start("POST", at("vdbs", name, "/refresh"), { moment }));
    },
  });
}
