// Addresses that are told of events and faults.
import { useState } from "preact/hooks";
import { ask, at, useAnswer } from "../api";
import { changed } from "../events";
import { count } from "../format";
import type { AddedWebhook, AddWebhook, SetWebhook, Webhook, WebhookList, WebhookTest } from "../schema";
import { Failure, Once, Page, State, Time } from "../ui/basics";
import { question } from "../ui/dialog";
import { Table } from "../ui/table";
import { attempt, say } from "../ui/toasts";

export function Webhooks() {
  const { data, error } = useAnswer<WebhookList>("webhooks", 4000);
  const [made, setMade] = useState<AddedWebhook>();
  const actions = (
    <button type="button" class="primary" onClick={() => askWebhook(setMade)}>
      Add a webhook
    </button>
  );
  return (
    <Page title="Webhooks" lead="Addresses that are told of events and faults, by signed messages." actions={actions}>
      <Failure of={error} />
      {made?.secret && <Once title={`Secret of ${made.name}`} text={made.secret} what="the secret" onHide={() => setMade(undefined)} />}
      {data && (
        <Table<Webhook>
          label="webhooks"
          rows={data.webhooks}
          rowKey={(one) => one.id}
          empty="nobody is told of anything"
          columns={[
            { name: "Name", cell: (one) => one.name },
            { name: "To", cell: (one) => <code class="long">{one.url}</code> },
            { name: "Events", cell: (one) => one.events.join(", ") || "all", wide: true },
            { name: "State", cell: (one) => <Health of={one} /> },
            { name: "Told", cell: (one) => <Time at={one.delivered_at} />, wide: true },
            { name: "Waiting", cell: (one) => count(one.waiting), figures: true, wide: true },
            { name: "Missed", cell: (one) => count(one.missed), figures: true, wide: true },
            { name: "Actions", cell: (one) => <Actions of={one} then={setMade} /> },
          ]}
        />
      )}
    </Page>
  );
}

function Health({ of }: { of: Webhook }) {
  return (
    <>
      <State of={of.state} />
      {of.failures > 0 && (
        <div class="why">
          {count(of.failures)} failures since <Time at={of.failing_since} />
          {of.error && `: ${of.error}`}
        </div>
      )}
    </>
  );
}

function Actions({ of, then }: { of: Webhook; then: (made: AddedWebhook) => void }) {
  const { name } = of;
  const test = async () => {
    const answer = await ask<WebhookTest>("POST", at("webhooks", name, "/test"));
    if (answer.delivered) say(`${name} took it in ${answer.took_ms} ms`, "good");
    else say(`${name} did not take it: ${answer.error ?? `status ${answer.status}`}`, "bad");
    changed();
  };
  const remove = () =>
    question({
      title: `Remove the webhook ${name}`,
      text: "What it was not told of is not told any more. Its secret goes, too.",
      verb: "Remove",
      dangerous: true,
      done: async () => {
        await ask<Webhook>("DELETE", at("webhooks", name));
        say(`${name} is removed`, "good");
        changed();
      },
    });
  return (
    <span class="buttons">
      <button type="button" class="small" onClick={() => attempt(test)} aria-label={`test ${name}`}>
        Test
      </button>
      <button type="button" class="small" onClick={() => askChange(of, then)} aria-label={`change ${name}`}>
        Change
      </button>
      <button type="button" class="small danger" onClick={remove} aria-label={`remove ${name}`}>
        Remove
      </button>
    </span>
  );
}

function askWebhook(then: (made: AddedWebhook) => void): void {
  question({
    title: "Add a webhook",
    text: "It is told of what happens from now on.",
    verb: "Add",
    fields: [
      { name: "name", label: "Name", required: true, hint: "a-z, 0-9, _ and -, beginning with a letter" },
      { name: "url", label: "Address", required: true, hint: "https, or http on this host" },
      { name: "events", label: "Events", hint: "patterns as fault.*, job.*.failed; all where empty" },
      { name: "secret", label: "Secret", kind: "password", hint: "whsec_ and base64; one is made and shown where empty" },
      { name: "insecure", label: "Allow plain http to another host: anybody on the way can read it", kind: "check" },
    ],
    done: async (values) => {
      const events = patterns(values["events"]);
      const body: AddWebhook = { name: values["name"] as string, url: values["url"] as string, secret: values["secret"] || null, insecure: values.on("insecure"), ...(events.length > 0 && { events }) };
      then(await ask<AddedWebhook>("POST", "webhooks", body));
      say(`${body.name} is added`, "good");
      changed();
    },
  });
}

const patterns = (text = ""): string[] => text.split(",").map((one) => one.trim()).filter(Boolean);

function askChange({ name, url, events, insecure }: Webhook, then: (made: AddedWebhook) => void): void {
  question({
    title: `Change the webhook ${name}`,
    text: "What waits is told as it is then. After another secret, messages are signed with the one of before, too, for 24 hours.",
    verb: "Change",
    fields: [
      { name: "name", label: "Name", required: true, value: name, hint: "a-z, 0-9, _ and -, beginning with a letter" },
      { name: "url", label: "Address", required: true, value: url, hint: "https, or http on this host" },
      { name: "events", label: "Events", value: events.join(", "), hint: "patterns as fault.*, job.*.failed; all where empty" },
      { name: "rotate", label: "Make another secret, and show it", kind: "check" },
      { name: "secret", label: "Another secret", kind: "password", hint: "whsec_ and base64; it stays where empty" },
      { name: "insecure", label: "Allow plain http to another host: anybody on the way can read it", kind: "check", value: insecure },
    ],
    done: async (values) => {
      const typed = patterns(values["events"]);
      const body: SetWebhook = {
        insecure: values.on("insecure"),
        rotate_secret: values.on("rotate"),
        ...(values["name"] !== name && { name: values["name"] as string }),
        ...(values["url"] !== url && { url: values["url"] as string }),
        ...(typed.join() !== events.join() && { events: typed }),
        ...(values["secret"] && { secret: values["secret"] }),
      };
      then(await ask<AddedWebhook>("POST", at("webhooks", name), body));
      say(`${name} is changed`, "good");
      changed();
    },
  });
}
