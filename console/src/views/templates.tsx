// What VDBs are to be like, said once.
import { ask, at, get, start, useAnswer } from "../api";
import { changed } from "../events";
import { bytes, duration, pairs } from "../format";
import { mayOperate, mayUse } from "../me";
import { go, link } from "../route";
import type { DsourceList, ProvisionVdb, SetTemplate, Template, TemplateList } from "../schema";
import { Failure, Page, Time } from "../ui/basics";
import { type Field, question, type Values } from "../ui/dialog";
import { Table } from "../ui/table";
import { begin, say } from "../ui/toasts";
import { changedPairs } from "./vdb-set";
import { wishesOf, wishFields } from "./wishes";

/** What of a request stands out, in a few words. */
function inShort({ request, hooks }: Template): string {
  return [
    pairs(request.settings),
    request.memory_bytes ? `${bytes(request.memory_bytes)} of memory` : "",
    request.superuser ? "superuser" : "",
    request.keep_source_logins ? "logins of the source" : "",
    request.keep_foreign_servers ? "foreign servers of the source" : "",
    request.allow_network?.length ? `connects to ${request.allow_network.join(", ")}` : "",
    request.listen?.length ? `listens on ${request.listen.join(", ")} for ${(request.allow ?? []).join(", ")}` : "",
    request.protected ? "protected" : "",
    request.refresh_keeps?.length ? `a refresh keeps ${request.refresh_keeps.join(" and ")}` : "",
    request.gateway && !request.stop_when_idle_ms ? "a gateway" : "",
    request.stop_when_idle_ms ? `stopped when idle for ${duration(request.stop_when_idle_ms)}` : "",
    hooks.length > 0 ? `hooks: ${hooks.map((hook) => hook.event).join(", ")}` : "",
  ]
    .filter(Boolean)
    .join("; ");
}

export function Templates() {
  const { data, error } = useAnswer<TemplateList>("templates");
  const actions = mayOperate() && (
    <button type="button" class="primary" onClick={() => void askTemplate()}>
      Create a template
    </button>
  );
  return (
    <Page title="Templates" lead="What VDBs are to be like, said once." actions={actions}>
      <Failure of={error} />
      {data && (
        <Table<Template>
          label="templates"
          rows={data.templates}
          rowKey={(one) => one.id}
          empty="there is no template"
          columns={[
            { name: "Template", cell: (one) => one.name },
            { name: "From", cell: (one) => (one.request.from ? <a href={link("dsources", one.request.from)}>{one.request.from}</a> : "as asked") },
            { name: "Expires after", cell: (one) => (one.request.expires_in_ms ? duration(one.request.expires_in_ms) : "–"), figures: true },
            { name: "Has", cell: inShort, wide: true },
            { name: "Description", cell: (one) => one.request.description ?? "", wide: true },
            { name: "Created", cell: (one) => <Time at={one.created_at} />, wide: true },
            { name: "Actions", cell: (one) => <Actions of={one} /> },
          ]}
        />
      )}
    </Page>
  );
}

function Actions({ of }: { of: Template }) {
  return (
    <span class="buttons">
      {mayUse() && (
        <button type="button" class="small" onClick={() => askVdb(of)} aria-label={`provision by ${of.name}`}>
          Provision
        </button>
      )}
      {mayOperate() && (
        <button type="button" class="small" onClick={() => void askChange(of)} aria-label={`change ${of.name}`}>
          Change
        </button>
      )}
      {mayOperate() && (
        <button type="button" class="small danger" onClick={() => askDelete(of)} aria-label={`delete ${of.name}`}>
          Delete
        </button>
      )}
    </span>
  );
}

function askVdb({ name: template, request }: Template): void {
  question({
    title: `Provision by ${template}`,
    verb: "Provision",
    fields: [
      { name: "name", label: "Name", required: true, hint: "a-z, 0-9, _ and -, beginning with a letter" },
      ...(request.from ? [] : [{ name: "from", label: "From", required: true, hint: "a dSource or VDB" }]),
    ],
    done: async ({ name = "", from }) => {
      await begin(`provision ${name}`, start("POST", "vdbs", { name, template, ...(from && { from }) }));
      go("vdbs", name);
    },
  });
}

function askDelete({ name }: Template): void {
  question({
    title: `Delete the template ${name}`,
    text: "VDBs that were made by it stay.",
    verb: "Delete",
    dangerous: true,
    done: async () => {
      await ask<Template>("DELETE", at("templates", name));
      say(`${name} is deleted`, "good");
      changed();
    },
  });
}

/** What VDBs may come from: a dSource, what is named already, or what whoever provisions says. */
async function fromField(now?: string): Promise<Field> {
  const { dsources } = await get<DsourceList>("dsources");
  const names = dsources.map((one) => one.name);
  if (now && !names.includes(now)) names.push(now);
  const choices = names.map((name): [string, string] => [name, name]);
  return { name: "from", label: "From", kind: "choice", choices: [...choices, ["", "whoever provisions says it"]], ...(now !== undefined && { value: now }) };
}

async function askTemplate(): Promise<void> {
  const from = await fromField();
  question({
    title: "Create a template",
    verb: "Create",
    fields: [
      { name: "name", label: "Name", required: true, hint: "a-z, 0-9, _ and -, beginning with a letter" },
      from,
      ...wishFields({ expires_in_ms: 86_400_000 }),
    ],
    done: async (values) => {
      const { name = "", from } = values;
      await ask<Template>("POST", "templates", { ...wishesOf(values), name, ...(from && { from }) } satisfies ProvisionVdb);
      say(`${name} is there`, "good");
      changed();
    },
  });
}

async function askChange(of: Template): Promise<void> {
  const from = await fromField(of.request.from ?? "");
  const events = of.hooks.map((hook): string => hook.event);
  const wishes = wishFields(of.request).map((field) => (events.includes(field.name) ? { ...field, hint: "in place of what runs now; that stays where empty" } : field));
  const removals = events.map((event): Field => ({ name: `remove_${event}`, label: `Remove ${event}`, kind: "check", fold: "Hooks" }));
  const name: Field = { name: "name", label: "Name", required: true, value: of.name, hint: "a-z, 0-9, _ and -, beginning with a letter" };
  const fields = [name, from, ...wishes, ...removals];
  question({
    title: `Change the template ${of.name}`,
    text: "VDBs that were made by it stay as they are.",
    verb: "Change",
    fields,
    done: async (values) => {
      await ask<Template>("POST", at("templates", of.name), changesOf(of, fields, values));
      say(`${values["name"]} is changed`, "good");
      changed();
    },
  });
}

/** What is left as it is shown is not said: a size may be shown shorter than it is. */
function changesOf({ request, hooks }: Template, fields: Field[], values: Values): SetTemplate {
  const { settings = {}, labels = {}, memory_bytes = null, expires_in_ms = null, stop_when_idle_ms = null, description = null, ...others } = wishesOf(values);
  const typed = (name: string) => values[name] !== (fields.find((field) => field.name === name)?.value ?? "");
  return {
    ...others,
    name: values["name"] as string,
    from: values["from"] || null,
    settings: changedPairs(request.settings ?? {}, settings),
    labels: changedPairs(request.labels ?? {}, labels),
    remove_hooks: hooks.map((hook) => hook.event).filter((event) => values.on(`remove_${event}`)),
    ...(typed("memory") && { memory_bytes }),
    ...(typed("expires") && { expires_in_ms }),
    ...(typed("idle") && { stop_when_idle_ms }),
    ...(typed("description") && { description }),
  };
}
