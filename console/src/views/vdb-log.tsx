// What a VDB's server has written lately.
import { useState } from "preact/hooks";
import { at, get } from "../api";
import type { Vdb, VdbLog } from "../schema";
import { Card } from "../ui/basics";
import { attempt } from "../ui/toasts";

export function LogCard({ of }: { of: Vdb }) {
  const [text, show] = useState<string>();
  const read = () => attempt(async () => show((await get<VdbLog>(at("vdbs", of.name, "/log"))).text));
  const actions = (
    <span class="buttons">
      <button type="button" onClick={read}>
        {text === undefined ? "Show the log" : "Read it again"}
      </button>
      {text !== undefined && (
        <button type="button" onClick={() => show(undefined)}>
          Hide
        </button>
      )}
    </span>
  );
  return (
    <Card title="Log of the server" actions={actions}>
      {text === undefined ? (
        <p class="empty">the last lines, when they are asked for</p>
      ) : (
        <pre tabIndex={0} aria-label={`log of ${of.name}`}>
          {text || "it is empty"}
        </pre>
      )}
    </Card>
  );
}
