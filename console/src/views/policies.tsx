import { useState } from "preact/hooks";
import { ask, at, useAnswer } from "../api";
import { changed } from "../events";
import { asTyped, bytes, duration } from "../format";
import { mayOperate } from "../me";
import { link } from "../route";
import type { Policy, PolicyList, SetPolicy } from "../schema";
import { Failure, Page, Search } from "../ui/basics";
import { question } from "../ui/dialog";
import { Table } from "../ui/table";
import { say } from "../ui/toasts";
import { typedDuration, typedSize } from "./typed";

const kept = (ms: number): string => (ms === 0 ? "–" : duration(ms));

export function Policies() {
  const { data, error } = useAnswer<PolicyList>("policies");
  const [filter, setFilter] = useState("");
  const rows = (data?.policies ?? []).filter((one) => one.name.includes(filter));
  return (
    <Page title="Policies" lead="How often snapshots are taken, how long they and the log stay, and how much one may take.">
      <Failure of={error} />
      <Search value={filter} onInput={setFilter} label="Filter by name" />
      {data && (
        <Table<Policy>
          label="policies"
          rows={rows}
          rowKey={(one) => `${one.kind} ${one.name}`}
          empty="there is no policy"
          columns={[
            { name: "Of", cell: (one) => <a href={link(`${one.kind}s`, one.name)}>{one.name}</a> },
            { name: "Snapshot every", cell: (one) => (one.snapshot_every_ms === null ? "never" : duration(one.snapshot_every_ms)), figures: true },
            { name: "Log", cell: (one) => kept(one.log_ms), figures: true },
            { name: "All", cell: (one) => kept(one.keep_all_ms), figures: true },
            { name: "Hourly", cell: (one) => kept(one.hourly_ms), figures: true, wide: true },
            { name: "Daily", cell: (one) => kept(one.daily_ms), figures: true, wide: true },
            { name: "Weekly", cell: (one) => kept(one.weekly_ms), figures: true, wide: true },
            { name: "Quota", cell: (one) => (one.quota_bytes === null ? "–" : bytes(one.quota_bytes)), figures: true, wide: true },
            { name: "Warm", cell: (one) => one.warm || "–", figures: true, wide: true },
            ...(mayOperate()
              ? [
                  {
                    name: "Actions",
                    cell: (one: Policy) => (
                      <button type="button" class="small" onClick={() => askPolicy(one)} aria-label={`change the policy of ${one.name}`}>
                        Change
                      </button>
                    ),
                  },
                ]
              : []),
          ]}
        />
      )}
    </Page>
  );
}

const DURATIONS: [keyof Policy & keyof SetPolicy, string][] = [
  ["keep_all_ms", "Every snapshot stays for"],
  ["hourly_ms", "The first of each hour stays for"],
  ["daily_ms", "The first of each day stays for"],
  ["weekly_ms", "The first of each week stays for"],
  ["log_ms", "Log stays for"],
];

function askPolicy(policy: Policy): void {
  const durations = DURATIONS.filter(([name]) => name !== "log_ms" || policy.kind === "dsource");
  question({
    title: `Policy of ${policy.name}`,
    verb: "Set",
    text: "Durations as 10min, 36h or 7d; 0 keeps nothing.",
    fields: [
      { name: "snapshot_every_ms", label: "Snapshot every", value: policy.snapshot_every_ms === null ? "" : asTyped(policy.snapshot_every_ms), hint: "never where empty" },
      ...durations.map(([name, label]) => ({ name, label, value: asTyped(policy[name] as number), required: true })),
      { name: "quota_bytes", label: "Quota", value: policy.quota_bytes === null ? "" : bytes(policy.quota_bytes), hint: "as 20GiB; none where empty" },
      ...(policy.kind === "dsource" ? [{ name: "warm", label: "VDBs kept warm", kind: "number" as const, value: String(policy.warm ?? 0) }] : []),
    ],
    done: async (values) => {
      const body: Record<string, number | null> = {};
      const set = (name: string, value: number | null, before: number | null | undefined) => {
        if (value !== before) body[name] = value;
      };
      const every = values["snapshot_every_ms"];
      set("snapshot_every_ms", typedDuration(every) ?? null, policy.snapshot_every_ms);
      for (const [name] of durations) {
        // What was not touched is not rounded.
        if (values[name] !== asTyped(policy[name] as number)) set(name, typedDuration(values[name]) ?? 0, policy[name] as number);
      }
      const quota = values["quota_bytes"];
      if (quota !== (policy.quota_bytes === null ? "" : bytes(policy.quota_bytes))) set("quota_bytes", typedSize(quota) ?? null, policy.quota_bytes);
      if (values["warm"] !== undefined) set("warm", Number(values["warm"]), policy.warm);
      await ask<Policy>("POST", at("policies", policy.name), body);
      say(`the policy of ${policy.name} is set`, "good");
      changed();
    },
  });
}
