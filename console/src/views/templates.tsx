// What VDBs are to be like, said once.
import { ask, at, get, start, useAnswer } from "../api";
import { changed } from "../events";
import { asTyped, bytes, duration } from "../format";
import { mayOperate, mayUse } from "../me";
import { go, link } from "../route";
import type { DsourceList, Template, TemplateList } from "../schema";
import { Failure, Page, Time } from "../ui/basics";
import { question } from "../ui/dialog";
import { Table } from "../ui/table";
import { begin, say } from "../ui/toasts";
import { settingsOf } from "./provision";
import { typedDuration, typedSize } from "./typed";

const pairs = (of: Record<string, string> | undefined): string => Object.entries(of ?? {}).map(([key, value]) => `${key}=${value}`).join(", ");

/** What of a request stands out, in a few words. */
function inShort({ request, hooks }: Template): string {
  return [
    pairs(request.settings),
    request.memory_bytes ? `${bytes(request.memory_bytes)} of memory` : "",
    request.superuser ? "superuser" : "",
    request.stop_when_idle_ms ? `stopped when idle for ${duration(request.stop_when_idle_ms)}` : "",
    hooks.map((hook) => hook.event).join(", "),
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
    <Page title="Templates" lead="What VDBs are to be like, said once. Hooks and rights of a template are set by the command line." actions={actions}>
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

async function askTemplate(): Promise<void> {
  const { dsources } = await get<DsourceList>("dsources");
  const sources = dsources.map((one): [string, string] => [one.name, one.name]);
  question({
    title: "Create a template",
    verb: "Create",
    fields: [
      { name: "name", label: "Name", required: true, hint: "a-z, 0-9, _ and -, beginning with a letter" },
      { name: "from", label: "From", kind: "choice", choices: [...sources, ["", "whoever provisions says it"]] },
      { name: "description", label: "Description" },
      { name: "expires", label: "Expires after", value: asTyped(86_400_000), hint: "never where empty" },
      { name: "memory", label: "Memory limit", hint: "as 512MiB; none where empty" },
      { name: "settings", label: "Settings", kind: "lines", hint: "one a line, as work_mem=64MB" },
      { name: "labels", label: "Labels", kind: "lines", hint: "one a line, as team=checkout" },
    ],
    done: async ({ name, from, description, expires, memory, settings, labels }) => {
      await ask<Template>("POST", "templates", {
        name,
        ...(from && { from }),
        description: description || null,
        expires_in_ms: typedDuration(expires) ?? null,
        memory_bytes: typedSize(memory) ?? null,
        settings: settingsOf(settings ?? ""),
        labels: settingsOf(labels ?? "", "label", "team=checkout"),
      });
      say(`${name} is there`, "good");
      changed();
    },
  });
}
