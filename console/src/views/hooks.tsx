// SQL and programs that run before and after things are done to a VDB.
import { useState } from "preact/hooks";
import { at, get, start } from "../api";
import { asTyped, bytes, duration } from "../format";
import { mayUse, ownsSecrets } from "../me";
import type { HookEvent, HookText, Vdb, VdbHook, VdbHooks } from "../schema";
import { Card } from "../ui/basics";
import { question } from "../ui/dialog";
import { Table } from "../ui/table";
import { attempt, begin } from "../ui/toasts";
import { typedDuration } from "./typed";
import { EVENTS, textOrProgram } from "./wishes";

const textOf = async (name: string, event: string): Promise<HookText | undefined> =>
  (await get<VdbHooks>(at("vdbs", name, "/hooks"))).hooks.find((hook) => hook.event === event);

export function HooksCard({ of }: { of: Vdb }) {
  const [shown, show] = useState<HookText>();
  const open = (event: string) => attempt(async () => show(await textOf(of.name, event)));
  const actions = mayUse() && (
    <button type="button" onClick={() => askHook(of, undefined, () => show(undefined))}>
      Set a hook…
    </button>
  );
  return (
    <Card title="Hooks" actions={actions}>
      <Table<VdbHook>
        label={`hooks of ${of.name}`}
        rows={of.hooks ?? []}
        rowKey={(hook) => hook.event}
        empty="nothing runs in it by itself"
        columns={[
          { name: "Event", cell: (hook) => <span title={EVENTS[hook.event]}>{hook.event}</span> },
          { name: "Database", cell: (hook) => hook.database ?? "that of the URI", wide: true },
          { name: "At most", cell: (hook) => duration(hook.time_limit_ms), figures: true, wide: true },
          { name: "Runs", cell: (hook) => `${hook.kind === "sql" ? "SQL" : "a program"}, ${bytes(hook.bytes)}` },
          { name: "Actions", cell: (hook) => mayUse() && <HookActions of={of} event={hook.event} onShow={() => open(hook.event)} onChange={() => show(undefined)} /> },
        ]}
      />
      {shown && (
        <div>
          <p class="buttons">
            <strong>{shown.event}</strong>
            <button type="button" class="small" onClick={() => show(undefined)}>
              Hide
            </button>
          </p>
          <pre tabIndex={0} aria-label={`text of ${shown.event}`}>
            {shown.sql ?? shown.program ?? "it went with a lost key"}
          </pre>
        </div>
      )}
    </Card>
  );
}

function HookActions({ of, event, onShow, onChange }: { of: Vdb; event: HookEvent; onShow: () => void; onChange: () => void }) {
  const remove = () =>
    question({
      title: `Remove the hook ${event} of ${of.name}`,
      text: "What it did in the VDB stays.",
      verb: "Remove",
      dangerous: true,
      done: async () => {
        await set(of.name, { remove_hooks: [event] });
        onChange();
      },
    });
  return (
    <span class="buttons">
      {ownsSecrets(of.owner) && (
        <>
          <button type="button" class="small" onClick={onShow} aria-label={`show the text of ${event}`}>
            Show
          </button>
          <button type="button" class="small" onClick={() => attempt(async () => askHook(of, await textOf(of.name, event), onChange))} aria-label={`change ${event}`}>
            Change
          </button>
        </>
      )}
      <button type="button" class="small danger" onClick={remove} aria-label={`remove ${event}`}>
        Remove
      </button>
    </span>
  );
}

const set = (name: string, body: unknown) => begin(`hooks of ${name}`, start("POST", at("vdbs", name), body));

function askHook({ name }: Vdb, before: HookText | undefined, then: () => void): void {
  question({
    title: before ? `Change the hook ${before.event} of ${name}` : `Set a hook of ${name}`,
    text: "SQL runs as the VDB's user, as one transaction; a program runs confined, as a client of the VDB. It replaces what ran at that event.",
    verb: "Set",
    fields: [
      ...(before ? [] : [{ name: "event", label: "Event", kind: "choice" as const, choices: Object.entries(EVENTS).map(([event, when]): [string, string] => [event, `${event}: ${when}`]) }]),
      { name: "text", label: "SQL, or a program", kind: "lines", required: true, value: before?.sql ?? before?.program ?? "", hint: "a program begins with #!/bin/sh, for example" },
      { name: "database", label: "Database", value: before?.database ?? "", hint: "the one that the URI opens where empty" },
      { name: "limit", label: "Time limit", value: asTyped(before?.time_limit_ms ?? 600_000) },
    ],
    done: async ({ event = before?.event, text = "", database, limit }) => {
      const time_limit_ms = typedDuration(limit) ?? null;
      await set(name, { hooks: [{ event, ...textOrProgram(text), database: database || null, time_limit_ms }] });
      then();
    },
  });
}
