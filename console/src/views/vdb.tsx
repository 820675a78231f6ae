import { useState } from "preact/hooks";
import { at, get, start, useAnswer } from "../api";
import { bytes, duration, pairs } from "../format";
import { mayOperate, mayUse } from "../me";
import { atLsn, latest, type Picked } from "../moment";
import { go, link } from "../route";
import type { BookmarkList, DsourceList, TimeflowList, Vdb, VdbList } from "../schema";
import { Card, Copy, Facts, Failure, Links, Page, State, Time, Warnings } from "../ui/basics";
import { question } from "../ui/dialog";
import { begin, run } from "../ui/toasts";
import { askDiff } from "./diff-ask";
import { GatewayCard } from "./gateway";
import { HooksCard } from "./hooks";
import { askBookmark, askProvision, askRefresh } from "./provision";
import { askRemoval } from "./removal";
import { Timeline } from "./timeline";
import { askSet } from "./vdb-set";
import { LogCard } from "./vdb-log";
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
      {vdbs.data && !one && <NoVdb />}
      <Failure of={one?.error} />
      <Warnings of={one?.warnings} />
      {one && (
        <div class="columns">
          <div>
            <ConnectCard of={one} />
            <GatewayCard of={one} />
          </div>
          <StateCard of={one} branches={children} />
        </div>
      )}
      {one && <HooksCard of={one} />}
      {one && mayUse() && <LogCard of={one} />}
      {one && flows.data && (
        <Card title="Its own history" actions={mayUse() && <HistoryActions of={one} picked={picked} />}>
          <Timeline flows={flows.data} bookmarks={own} picked={picked} onPick={setPicked} />
        </Card>
      )}
    </Page>
  );
}

function NoVdb() {
  return (
    <p class="empty">
      There is no VDB of this name. A job that makes it may be under way: see <a href={link("jobs")}>jobs</a>, or <a href={link("vdbs")}>all VDBs</a>.
    </p>
  );
}

function ConnectCard({ of }: { of: Vdb }) {
  return (
    <Card title="Connect">
      <Facts
        of={[
          ["URI", <code class="long">{of.uri}</code>],
          ["host and port", `${of.host}:${of.port}`],
          ["user", of.user],
        ]}
      />
      <p class="buttons">
        <Copy of={connectString(of.name)} what="the connect string with the password">
          Copy URI
        </Copy>
        <Copy of={() => connectString(of.name)().then((uri) => `psql '${uri}'`)} what="the psql command">
          Copy psql command
        </Copy>
        <Copy of={() => connectString(of.name)().then(environment)} what="the environment variables">
          Copy environment
        </Copy>
      </p>
    </Card>
  );
}

function StateCard({ of, branches }: { of: Vdb; branches: Vdb[] }) {
  return (
    <Card title="State" actions={mayUse() && <Change of={of} />}>
      <Facts
        of={[
          ["parent", <a href={link(`${of.parent_kind}s`, of.parent)}>{of.parent}</a>],
          ["opened at", <Time at={of.moment.time} />],
          ["log position", of.moment.lsn && <code>{of.moment.lsn}</code>],
          ["snapshot", of.moment.snapshot],
          ["version", of.server_version],
          ["owner", of.owner ?? "administrators"],
          ["own space", `${bytes(of.unique_bytes)} of ${bytes(of.logical_bytes)}`],
          ["description", of.description],
          ["labels", pairs(of.labels)],
          ["protected", of.protected && "neither deleted nor replaced by a refresh or rewind"],
          ["expires", of.expires_at && <Time at={of.expires_at} />],
          ["a refresh keeps", of.refresh_keeps?.join(" and ")],
          ["memory limit", of.memory_bytes === null ? null : bytes(of.memory_bytes)],
          ["settings", pairs(of.settings)],
          ["made in", `${duration(of.timings.total_ms)}: clone ${of.timings.clone_ms}, mount ${of.timings.mount_ms}, recover ${of.timings.recover_ms}, start ${of.timings.start_ms} ms`],
          ["log replayed", of.timings.log_bytes > 0 && `${bytes(of.timings.log_bytes)} in ${duration(of.timings.replay_ms)}`],
          ["branches", branches.length === 0 ? null : <Links place="vdbs" of={branches.map((vdb) => vdb.name)} />],
        ]}
      />
    </Card>
  );
}

function Change({ of }: { of: Vdb }) {
  return (
    <button type="button" onClick={() => askSet(of)} aria-label={`change ${of.name}`}>
      Change…
    </button>
  );
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
      <button type="button" onClick={() => void askDiff({ object: of.parent, picked: openedAt(of) }, { object: name, picked: latest })} title="shows what was done in it">
        Compare…
      </button>
      <button type="button" onClick={() => askRefresh(name, of.parent)}>
        Refresh…
      </button>
      <button type="button" onClick={() => askUndo(name)} title="goes back to before the last rewind or refresh">
        Undo…
      </button>
      {state === "running" && (
        <button type="button" onClick={() => askPassword(name)}>
          New password…
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

function askUndo(name: string): void {
  question({
    title: `Undo on ${name}`,
    text: "It holds again what it held before its last rewind or refresh, under the same name, port and password.",
    verb: "Undo",
    done: () => begin(`undo of ${name}`, start("POST", at("vdbs", name, "/rewind"), { to: { kind: "undo" } })),
  });
}

function askPassword(name: string): void {
  question({
    title: `New password for ${name}`,
    text: "Connect strings that were copied before are no good any more; copy them again. Sessions that are open go on.",
    verb: "Make",
    done: () => begin(`new password of ${name}`, start("POST", at("vdbs", name, "/reset-password"))),
  });
}

/** The moment of the parent that it was made of. */
function openedAt({ moment: { lsn, snapshot }, parent_kind }: Vdb): Picked {
  if (parent_kind === "dsource" && lsn) return atLsn(lsn);
  return snapshot ? { moment: { kind: "snapshot", id: snapshot }, label: snapshot, ms: null } : latest;
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
