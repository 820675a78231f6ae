// What becomes of a VDB's connections when its server goes away.
import { at, start } from "../api";
import { asTyped, duration } from "../format";
import { mayUse } from "../me";
import type { Vdb } from "../schema";
import { Card, Facts } from "../ui/basics";
import { question } from "../ui/dialog";
import { begin } from "../ui/toasts";
import { typedDuration } from "./typed";
import { wrong } from "./wrong";

export function GatewayCard({ of }: { of: Vdb }) {
  const { gateway } = of;
  const idle = gateway?.stop_when_idle_ms ?? null;
  const actions = mayUse() && (
    <button type="button" onClick={() => ask(of)}>
      Change…
    </button>
  );
  return (
    <Card title="Connections" actions={actions}>
      <Facts
        of={[
          ["gateway", gateway ? "yes" : "none"],
          ["connections", gateway ? "stay open over refresh, rewind and restart" : "end with refresh, rewind and restart"],
          ["stopped", idle === null ? "when somebody stops it" : `when nobody has used it for ${duration(idle)}`],
          ["now", gateway?.asleep && "asleep: whoever connects starts it"],
        ]}
      />
    </Card>
  );
}

function ask({ name, gateway }: Vdb): void {
  const before = gateway?.stop_when_idle_ms ?? null;
  question({
    title: `Connections of ${name}`,
    text: "A gateway keeps them open, and costs some speed. Giving it or taking it away restarts the server.",
    verb: "Set",
    fields: [
      { name: "gateway", label: "Keep connections open over refresh, rewind and restart", kind: "check", value: gateway !== null },
      { name: "idle", label: "Stop when idle for", value: before === null ? "" : asTyped(before), hint: "as 30min; never where empty. It takes a gateway: whoever connects starts the server" },
    ],
    done: async (values) => {
      const idle = values["idle"] ?? "";
      const wanted = values.on("gateway");
      if (idle && !wanted) throw wrong("only a VDB with a gateway can be stopped when idle", "keep connections open, or leave the time empty");
      // What was not touched is not rounded.
      const stop = before !== null && idle === asTyped(before) ? before : (typedDuration(idle) ?? null);
      await begin(`connections of ${name}`, start("POST", at("vdbs", name), { gateway: wanted, stop_when_idle_ms: stop }));
    },
  });
}
