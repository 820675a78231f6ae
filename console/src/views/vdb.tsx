import { useState } from "preact/hooks";
import { at, get, start, useAnswer } from "../api";
import { bytes, duration } from "../format";
import { mayOperate, mayUse } from "../me";
import { latest, type Picked } from "../moment";
import { go, link } from "../route";
import type { BookmarkList, DsourceList, TimeflowList, Vdb, VdbGateway, VdbList } from "../schema";
import { Card, Copy, Facts, Failure, Page, State, Time } from "../ui/basics";
import { question } from "../ui/dialog";
import { begin, run } from "../ui/toasts";
import { askBookmark, askProvision, askRefresh } from "./provision";
import { askRemoval } from "./removal";
import { Timeline } from "./timeline";
import { connectString } from "./vdbs";

export function VdbView({ name }: { name: string }) {
  // From the list, which shows no password: one that is not asked for is not shown.
  const vdbs = useAnswer<VdbList>("vdbs", 5000);
  const one = vdbs.data?.vdbs.find((vdb) => vdb.name === name);
  const flows = useAnswer<TimeflowList>(one ? at("timeflows", name) : null);
  const bookmarks = useAnswer<BookmarkList>("bookmarks");
  const [picked, setPicked] = useState<Picked>(latest);
  const own = (bookmarks.data?.bookmarks ?? []).filter((mark) => mark.object === name);
  const children = (vdbs.data?.vdbs ?? []).filter((vdb) => vdb.parent === name && vdb.parent_kind === "vdb");
  return (
    <Page title={name} lead={one && <State of={one.state} />} actions={one && mayUse() && <Actions of={one} />}>
      <Failure of={vdbs.error ?? flows.error} />
      {vdbs.data && !one && <p class="empty">There is no VDB of this name. A job that makes it may be under way: see Jobs.</p>}
      {one?.error && (
        <div class="failure" role="alert">
          <strong>{one.error.message}</strong>
          <div>{one.error.hint}</div>
        </div>
      )}
      {one && (
        <div class="columns">
          <Card title="Connect">
            <Facts
              of={[
                ["URI", <code class="long">{one.uri}</code>],
                ["host and port", `${one.host}:${one.port}`],
                ["user", one.user],
              ]}
            />
            <p class="buttons">
              <Copy of={connectString(name)} what="the connect string with the password">
                Copy URI
              </Copy>
              <Copy of={() => connectString(name)().then((uri) => `psql '${uri}'`)} what="the psql command">
                Copy psql command
              </Copy>
              <Copy of={() => connectString(name)().then(environment)} what="the environment variables">
                Copy environment
              </Copy>
            </p>
          </Card>
          <Card title="State">
            <Facts
              of={[
                ["parent", <a href={link(`${one.parent_kind}s`, one.parent)}>{one.parent}</a>],
                ["opened at", <Time at={one.moment.time} />],
                ["log position", one.moment.lsn && <code>{one.moment.lsn}</code>],
                ["snapshot", one.moment.snapshot],
                ["version", one.server_version],
                ["owner", one.owner ?? "administrators"],
                ["own space", `${bytes(one.unique_bytes)} of ${bytes(one.logical_bytes)}`],
                ["memory limit", one.memory_bytes === null ? null : bytes(one.memory_bytes)],
                ["settings", Object.entries(one.settings).map(([key, value]) => `${key}=${value}`).join(", ")],
                ["connections", one.gateway && connections(one.gateway)],
                ["made in", `${duration(one.timings.total_ms)}: clone ${one.timings.clone_ms}, mount ${one.timings.mount_ms}, recover ${one.timings.recover_ms}, start ${one.timings.start_ms} ms`],
                ["branches", children.length === 0 ? null : children.map((vdb) => <a href={link("vdbs", vdb.name)}>{vdb.name} </a>)],
              ]}
            />
          </Card>
        </div>
      )}
      {one && flows.data && (
        <Card title="Its own history" actions={mayUse() && <HistoryActions of={one} picked={picked} />}>
          <Timeline flows={flows.data} bookmarks={own} picked={picked} onPick={setPicked} />
        </Card>
      )}
    </Page>
  );
}

function connections(gateway: VdbGateway): string {
  if (gateway.asleep) return "asleep: whoever connects starts it";
  const stops = gateway.stop_when_idle_ms === null ? "" : `; it is stopped when nobody has used it for ${duration(gateway.stop_when_idle_ms)}`;
  return `stay open over refresh, rewind and restart${stops}`;
}

/** What libpq reads in place of a URI. */
function environment(uri: string): string {
  const url = new URL(uri);
  const values = { PGHOST: url.hostname, PGPORT: url.port, PGUSER: url.username, PGPASSWORD: url.password, PGDATABASE: url.pathname.slice(1) };
  return Object.entries(values)
    .map(([name, value]) => `export ${name}='${decodeURIComponent(value)}'`)
    .join("\n");
}

function HistoryActions({ of, picked }: { of: Vdb; picked: Picked }) {
  const { moment } = picked;
  const fixed = moment.kind === "snapshot" || moment.kind === "bookmark";
  const rewind = () =>
    question({
      title: `Rewind ${of.name}`,
      text: <>It goes back to {picked.label}. What it holds now stays, and the rewind can be undone.</>,
      verb: "Rewind",
      done: () => begin(`rewind ${of.name}`, start("POST", at("vdbs", of.name, "/rewind"), { to: moment })),
    });
  return (
    <span class="buttons">
      <button type="button" onClick={() => run(`snapshot of ${of.name}`, () => start("POST", "snapshots", { object: of.name }))}>
        Take a snapshot
      </button>
      <button type="button" onClick={() => askBookmark(of.name, picked)}>
        Bookmark
      </button>
      <button type="button" disabled={!fixed} title={fixed ? undefined : "pick a snapshot or bookmark below"} onClick={rewind}>
        Rewind…
      </button>
      <button type="button" class="primary" onClick={() => void askProvision(of.name, picked)}>
        Branch…
      </button>
    </span>
  );
}

function Actions({ of }: { of: Vdb }) {
  const { name, state } = of;
  const post = (verb: string, body?: unknown) => () => start("POST", at("vdbs", name, `/${verb}`), body);
  return (
    <span class="buttons">
      {state === "running" && (
        <button type="button" onClick={() => run(`stop ${name}`, post("stop"))}>
          Stop
        </button>
      )}
      {(state === "stopped" || state === "failed") && (
        <button type="button" onClick={() => run(`start ${name}`, post("start"))}>
          Start
        </button>
      )}
      <button type="button" onClick={() => askRefresh(name, of.parent)}>
        Refresh…
      </button>
      <button type="button" onClick={() => run(`undo of ${name}`, post("rewind", { to: { kind: "undo" } }))} title="goes back to before the last rewind or refresh">
        Undo
      </button>
      {state === "running" && (
        <button type="button" onClick={() => run(`new password of ${name}`, post("reset-password"))}>
          New password
        </button>
      )}
      {mayOperate() && (
        <button type="button" onClick={() => void askParent(of)}>
          Other parent…
        </button>
      )}
      <button type="button" class="danger" onClick={() => void askRemoval("vdb", name, () => go("vdbs"))}>
        Delete…
      </button>
    </span>
  );
}

async function askParent({ name, parent }: Vdb): Promise<void> {
  const { dsources } = await get<DsourceList>("dsources").catch(() => ({ dsources: [] }) as DsourceList);
  question({
    title: `Another parent for ${name}`,
    text: "What it holds stays until it is refreshed.",
    verb: "Set",
    fields: [{ name: "to", label: "dSource", kind: "choice", value: parent, choices: dsources.map((one) => [one.name, one.name]) }],
    done: ({ to }) => begin(`parent of ${name}`, start("POST", at("vdbs", name, "/parent"), { to })),
  });
}
