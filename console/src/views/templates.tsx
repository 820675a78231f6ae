// What VDBs are to be like, said once.
import { ask, at, get, start, useAnswer } from "../api";
import { changed } from "../events";
import { asTyped, bytes, duration, pairs } from "../format";
import { mayOperate, mayUse } from "../me";
import { go, link } from "../route";
import type { DsourceList, ProvisionVdb, Template, TemplateList } from "../schema";
import { Failure, Page, Time } from "../ui/basics";
import { question } from "../ui/dialog";
import { Table } from "../ui/table";
import { begin, say } from "../ui/toasts";
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
      ...wishFields(asTyped(86_400_000)),
    ],
    done: async (values) => {
      const { name = "", from } = values;
      await ask<Template>("POST", "templates", { ...wishesOf(values), name, ...(from && { from }) } satisfies ProvisionVdb);
      say(`${name} is there`, "good");
      changed();
    },
  });
}
