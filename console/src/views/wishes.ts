// What a VDB is to be like, as it is asked for: of one that is made, and of a template.
import { asTyped, bytes } from "../format";
import { mayOperate } from "../me";
import type { HookEvent, Kept, NewHook, ProvisionVdb } from "../schema";
import type { Field, Values } from "../ui/dialog";
import { typedDuration, typedPairs, typedSize } from "./typed";
import { wrong } from "./wrong";

/** When hooks run, as people read it. */
export const EVENTS: Record<HookEvent, string> = {
  "before-provision": "when its data is ready; a program only",
  "after-provision": "when it was provisioned",
  "before-refresh": "while the data before is there",
  "after-refresh": "after each refresh",
  "before-rewind": "while the data before is there",
  "after-rewind": "after each rewind",
  "before-stop": "before its user stops it",
  "after-stop": "when its user stopped it; a program only",
};

const KEPT: [Kept, string][] = [
  ["roles", "A refresh keeps roles, with their passwords"],
  ["settings", "A refresh keeps settings of databases, roles and ALTER SYSTEM"],
];

/** What a refresh keeps, to be chosen. */
export const keptFields = (now: Kept[] = []): Field[] => KEPT.map(([kept, label]) => ({ name: `kept_${kept}`, label, kind: "check", value: now.includes(kept) }));
export const keptOf = (values: Values): Kept[] => KEPT.map(([kept]) => kept).filter((kept) => values.on(`kept_${kept}`));

/** A hook's text, which is a program where it begins as one: no SQL begins so. */
export const textOrProgram = (text: string): { sql: string } | { program: string } => (text.startsWith("#!") ? { program: text } : { sql: text });

/** A size and pairs, as they are typed. */
export const typedSizeOf = (count: number | null | undefined): string => (count ? bytes(count).replace(" ", "") : "");
export const linesOf = (of: Record<string, string> | undefined): string => Object.entries(of ?? {}).map(([key, value]) => `${key}=${value}`).join("\n");

/** Everything that may be said of a VDB but its name and where it comes from, with what is said of it already. */
export function wishFields(now: Partial<ProvisionVdb> = {}): Field[] {
  const ms = (count: number | null | undefined) => (count ? asTyped(count) : "");
  const rights: Field[] = [
    { name: "superuser", label: "Its user is a superuser, and may run programs in the server's cell", kind: "check", value: now.superuser ?? false, fold: "Rights" },
    { name: "keep_source_logins", label: "Logins of the source work, with their passwords", kind: "check", value: now.keep_source_logins ?? false, fold: "Rights" },
    { name: "keep_foreign_servers", label: "Foreign servers keep their addresses and passwords", kind: "check", value: now.keep_foreign_servers ?? false, fold: "Rights" },
    { name: "allow_network", label: "It may connect to", kind: "lines", rows: 2, value: (now.allow_network ?? []).join("\n"), hint: "one a line, as db.example.com:5432; nothing where empty", fold: "Rights" },
    { name: "listen", label: "It listens on", value: (now.listen ?? []).join(", "), hint: "addresses of the engine's host, as 10.1.0.5: by TLS alone", fold: "Rights" },
    { name: "allow", label: "Who may connect from elsewhere", value: (now.allow ?? []).join(", "), hint: "networks, as 10.1.0.0/16", fold: "Rights" },
  ];
  const hooks: Field[] = Object.entries(EVENTS).map(([event, when]) => ({ name: event, label: event, kind: "lines", rows: 2, hint: when, fold: "Hooks" }));
  return [
    { name: "memory", label: "Memory limit", value: typedSizeOf(now.memory_bytes), hint: "as 512MiB; none where empty" },
    { name: "settings", label: "Settings", kind: "lines", rows: 3, value: linesOf(now.settings), hint: "one a line, as work_mem=64MB" },
    { name: "expires", label: "Expires after", value: ms(now.expires_in_ms), hint: "as 3d; never where empty" },
    { name: "description", label: "Description", value: now.description ?? "", fold: "What is said of it" },
    { name: "labels", label: "Labels", kind: "lines", rows: 3, value: linesOf(now.labels), hint: "one a line, as team=checkout", fold: "What is said of it" },
    { name: "protected", label: "Neither deleted nor replaced by a refresh or rewind", kind: "check", value: now.protected ?? false, fold: "What is said of it" },
    ...keptFields(now.refresh_keeps).map((field) => ({ ...field, fold: "Refresh and connections" })),
    { name: "gateway", label: "Keep connections open over refresh, rewind and restart", kind: "check", value: now.gateway ?? false, fold: "Refresh and connections" },
    { name: "idle", label: "Stop when idle for", value: ms(now.stop_when_idle_ms), hint: "as 30min; never where empty. Whoever connects starts it", fold: "Refresh and connections" },
    ...(mayOperate() ? rights : []),
    ...hooks,
    { name: "hook_database", label: "Database of hooks", hint: "the one that the URI opens where empty", fold: "Hooks" },
    { name: "hook_limit", label: "Time limit of each", hint: "as 2min; 10min where empty", fold: "Hooks" },
  ];
}

/** What was said of it; what was not is absent. */
export function wishesOf(values: Values): Partial<ProvisionVdb> {
  const memory = typedSize(values["memory"]);
  const expires = typedDuration(values["expires"]);
  const idle = typedDuration(values["idle"]);
  if (values.on("protected") && expires !== undefined) throw wrong("what is protected does not expire", "leave the time empty, or do not protect it");
  return {
    settings: typedPairs(values["settings"]),
    labels: typedPairs(values["labels"], "label", "team=checkout"),
    refresh_keeps: keptOf(values),
    hooks: hooksOf(values),
    allow_network: list(values["allow_network"]),
    listen: list(values["listen"]),
    allow: list(values["allow"]),
    protected: values.on("protected"),
    gateway: values.on("gateway"),
    superuser: values.on("superuser"),
    keep_source_logins: values.on("keep_source_logins"),
    keep_foreign_servers: values.on("keep_foreign_servers"),
    ...(memory !== undefined && { memory_bytes: memory }),
    ...(expires !== undefined && { expires_in_ms: expires }),
    ...(idle !== undefined && { stop_when_idle_ms: idle }),
    ...(values["description"] && { description: values["description"] }),
  };
}

function hooksOf(values: Values): NewHook[] {
  const database = values["hook_database"] || null;
  const time_limit_ms = typedDuration(values["hook_limit"]) ?? null;
  return (Object.keys(EVENTS) as HookEvent[])
    .filter((event) => values[event])
    .map((event) => ({ event, ...textOrProgram(values[event] as string), database, time_limit_ms }));
}

const list = (text: string | undefined): string[] => (text ?? "").split(/[\s,]+/).filter(Boolean);
