// Changing a VDB: its name and port, what is said of it, what a refresh keeps, its server's memory and settings.
import { at, start } from "../api";
import { go } from "../route";
import type { SetVdb, Vdb } from "../schema";
import { question, type Values } from "../ui/dialog";
import { begin } from "../ui/toasts";
import { typedDuration, typedPairs, typedSize } from "./typed";
import { keptFields, keptOf, linesOf, typedSizeOf } from "./wishes";
import { wrong } from "./wrong";

export function askSet(of: Vdb): void {
  question({
    title: `Change ${of.name}`,
    text: "Another port, limit of memory or setting restarts its server. Under another name its clients stay.",
    verb: "Change",
    fields: [
      { name: "name", label: "Name", required: true, value: of.name, hint: "a-z, 0-9, _ and -, beginning with a letter" },
      { name: "port", label: "Port", kind: "number", required: true, value: String(of.port) },
      ...keptFields(of.refresh_keeps),
      { name: "memory", label: "Memory limit", value: typedSizeOf(of.memory_bytes), hint: "as 512MiB; the engine's default where empty" },
      { name: "settings", label: "Settings", kind: "lines", rows: 3, value: linesOf(of.settings), hint: "one a line, as work_mem=64MB" },
      { name: "description", label: "Description", value: of.description ?? "" },
      { name: "labels", label: "Labels", kind: "lines", rows: 3, value: linesOf(of.labels), hint: "one a line, as team=checkout" },
      { name: "expires", label: "Expires in", hint: "as 3d, from now on; never: not at all; it stays as it is where empty" },
      { name: "protected", label: "Neither deleted nor replaced by a refresh or rewind", kind: "check", value: of.protected ?? false },
    ],
    done: async (values) => {
      const body = changesOf(of, values);
      if (Object.keys(body).length === 0) throw wrong("nothing is changed", "change something, or cancel");
      await begin(`change of ${of.name}`, start("POST", at("vdbs", of.name), body));
      if (body.name) go("vdbs", body.name);
    },
  });
}

/** What is to be another than it was: the rest is left out, so that nothing restarts for it. */
function changesOf(of: Vdb, values: Values): SetVdb {
  const { name, port, memory = "", description = "", expires } = values;
  const kept = keptOf(values);
  const settings = changedPairs(of.settings, typedPairs(values["settings"]));
  const labels = changedPairs(of.labels ?? {}, typedPairs(values["labels"], "label", "team=checkout"));
  return {
    ...(name && name !== of.name && { name }),
    ...(port && Number(port) !== of.port && { port: Number(port) }),
    ...(memory !== typedSizeOf(of.memory_bytes) && { memory_bytes: typedSize(memory) ?? null }),
    ...(description !== (of.description ?? "") && { description }),
    ...(expires && { expires_in_ms: expires === "never" ? null : (typedDuration(expires) as number) }),
    ...(values.on("protected") !== (of.protected ?? false) && { protected: values.on("protected") }),
    ...(String(kept) !== String([...(of.refresh_keeps ?? [])].sort()) && { refresh_keeps: kept }),
    ...(Object.keys(settings).length > 0 && { settings }),
    ...(Object.keys(labels).length > 0 && { labels }),
  };
}

/** Null for what is no longer there. */
export function changedPairs(before: Record<string, string>, after: Record<string, string>): Record<string, string | null> {
  const gone = Object.keys(before).filter((key) => !(key in after)).map((key): [string, null] => [key, null]);
  return Object.fromEntries([...Object.entries(after).filter(([key, value]) => before[key] !== value), ...gone]);
}
