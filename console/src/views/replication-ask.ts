// What is asked for to send dSources and VDBs to another engine.
import { ask, get } from "../api";
import { changed } from "../events";
import { go } from "../route";
import type { CreateReplication, DsourceList, Peer, Replication, VdbList } from "../schema";
import { question, type Values } from "../ui/dialog";
import { say } from "../ui/toasts";
import { isCopy } from "./received";
import { typedDuration, typedSize } from "./typed";

export async function askReplication(peers: Peer[]): Promise<void> {
  const [{ dsources }, { vdbs }] = await Promise.all([get<DsourceList>("dsources"), get<VdbList>("vdbs")]);
  const own = dsources.filter((one) => !isCopy(one));
  const objects = [...own.map((one) => `dsource:${one.name}`), ...vdbs.map((one) => `vdb:${one.name}`)];
  question({
    title: "Send to another engine",
    text: "It runs when somebody runs it, unless it is said when below.",
    verb: "Make",
    fields: [
      { name: "name", label: "Name", required: true, hint: "a-z, 0-9, _ and -, beginning with a letter" },
      { name: "to", label: "To", kind: "choice", choices: peers.map((one) => [one.name, one.name]) },
      { name: "include", label: "What", kind: "choices", choices: objects.map((one) => [one, one]), hint: "all, also what is made later, where none is chosen" },
      { name: "continuous", label: "Always: what is new as it comes", kind: "check" },
      { name: "every", label: "Every", hint: "as 5min" },
      { name: "crontab", label: "At times", hint: "as crontab writes them: 30 2 * * * Europe/Berlin" },
      { name: "rpo", label: "A fault if further behind than", hint: "as 1min; never where empty" },
      { name: "limit", label: "At most, a second", hint: "as 50MB; as much as it can where empty" },
      { name: "masked_only", label: "Only what is masked", kind: "check" },
      { name: "replicas", label: "Copies of other engines, too", kind: "check" },
      { name: "with_secrets", label: "With passwords: whoever rules the other engine can use them", kind: "check" },
    ],
    done: async (values) => {
      const body = bodyOf(values);
      await ask<Replication>("POST", "replication/profiles", body);
      say(`${body.name} is made`, "good");
      changed();
      go("replication", body.name);
    },
  });
}

function bodyOf(values: Values): CreateReplication {
  const { name = "", to = "", include, every, crontab, rpo, limit } = values;
  return {
    name,
    to,
    include: include ? include.split(",") : null,
    continuous: values.on("continuous"),
    every_ms: typedDuration(every) ?? null,
    crontab: crontab || null,
    rpo_ms: typedDuration(rpo) ?? null,
    bytes_per_second_max: typedSize(limit) ?? null,
    masked_only: values.on("masked_only"),
    replicas: values.on("replicas"),
    with_secrets: values.on("with_secrets"),
  };
}
