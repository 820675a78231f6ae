import { useState } from "preact/hooks";
import { at, start, useAnswer } from "../api";
import { bytes, duration } from "../format";
import { mayAdminister, mayOperate, mayUse } from "../me";
import { latest, type Picked } from "../moment";
import { go, link } from "../route";
import type { BookmarkList, Dsource, TimeflowList, VdbList } from "../schema";
import { Card, Facts, Failure, Links, Page, State, Time, Warnings } from "../ui/basics";
import { question } from "../ui/dialog";
import { attempt, begin, run } from "../ui/toasts";
import { askExport } from "./archives";
import { askBisect } from "./bisect";
import { askDiff } from "./diff-ask";
import { askBookmark, askProvision } from "./provision";
import { askRemoval } from "./removal";
import { SnapshotTable } from "./snapshots";
import { Timeline } from "./timeline";

export function DsourceView({ name }: { name: string }) {
  const dsource = useAnswer<Dsource>(at("dsources", name), 4000);
  const flows = useAnswer<TimeflowList>(at("timeflows", name), 4000);
  const bookmarks = useAnswer<BookmarkList>("bookmarks");
  const vdbs = useAnswer<VdbList>("vdbs");
  const [picked, setPicked] = useState<Picked>(latest);
  const one = dsource.data;
  const own = (bookmarks.data?.bookmarks ?? []).filter((mark) => mark.object === name);
  const children = (vdbs.data?.vdbs ?? []).filter((vdb) => vdb.parent === name && vdb.parent_kind === "dsource");
  return (
    <Page title={name} lead={one && <State of={one.state} />} actions={one && <Actions of={one} />}>
      <Failure of={dsource.error ?? flows.error} />
      <Failure of={one?.error} />
      {!one && dsource.error && (
        <p>
          <a href={link("dsources")}>All dSources</a>
        </p>
      )}
      {one && (
        <Card
          title="Time line"
          actions={
            mayUse() && (
              <span class="buttons">
                <button type="button" onClick={() => askBookmark(name, picked)}>
                  Bookmark
                </button>
                {one.state !== "masked" && (
                  <button type="button" onClick={() => askBisect(name, picked)} title="finds the commit that changed the answer to a query">
                    Bisect…
                  </button>
                )}
                <button type="button" onClick={() => void askDiff({ object: name, picked }, { object: name, picked: latest })} title="shows what differs between two states">
                  Compare…
                </button>
                <button type="button" class="primary" onClick={() => void askProvision(name, picked)}>
                  Provision…
                </button>
              </span>
            )
          }
        >
          {flows.data && <Timeline flows={flows.data} bookmarks={own} picked={picked} onPick={setPicked} />}
        </Card>
      )}
      {one && (
        <div class="columns">
          <Card title="Source">
            <Facts
              of={[
                ["source", one.source && <code>{one.source}</code>],
                ["version", one.server_version],
                ["synced to", one.synced_to && <Time at={one.synced_to.time} />],
                ["log position", one.synced_to && <code>{one.synced_to.lsn}</code>],
                ["behind", one.lag_ms === null ? null : `${duration(one.lag_ms)}, ${bytes(one.lag_bytes)}`],
                ["snapshot every", one.snapshot_every_ms === null ? "never" : duration(one.snapshot_every_ms)],
                ["linked at", <Time at={one.created_at} />],
              ]}
            />
          </Card>
          <Card title="Space and use">
            <Facts
              of={[
                ["stored", bytes(one.stored_bytes)],
                ["outside the pool", bytes(one.logical_bytes)],
                ["snapshots", one.snapshots.length],
                ["VDBs", children.length === 0 ? "none" : <Links place="vdbs" of={children.slice(0, 20).map((vdb) => vdb.name)} />],
              ]}
            />
            <Warnings of={one.warnings} />
          </Card>
        </div>
      )}
      {one && (
        <Card title="Snapshots">
          <SnapshotTable snapshots={[...one.snapshots].reverse()} />
        </Card>
      )}
    </Page>
  );
}

function Actions({ of }: { of: Dsource }) {
  const { name, state } = of;
  const path = (verb: string) => at("dsources", name, `/${verb}`);
  if (state === "masked" || state === "replica") return mayAdminister() ? <Administer name={name} /> : null;
  return (
    <span class="buttons">
      {mayOperate() && (
        <>
          <button type="button" onClick={() => run(`sync ${name}`, () => start("POST", path("sync")))}>
            Sync
          </button>
          {state === "paused" || state === "failed" ? (
            <button type="button" onClick={() => run(`resume ${name}`, () => start("POST", path("resume")))}>
              Resume
            </button>
          ) : (
            <button type="button" onClick={() => run(`pause ${name}`, () => start("POST", path("pause")))}>
              Pause
            </button>
          )}
        </>
      )}
      {mayAdminister() && (
        <>
          <button type="button" onClick={() => askSet(of)}>
            Set source…
          </button>
          <Administer name={name} />
        </>
      )}
    </span>
  );
}

function Administer({ name }: { name: string }) {
  return (
    <span class="buttons">
      <button type="button" onClick={() => attempt(() => askExport([name]))} title="as an archive, to be kept or carried to another engine">
        Export…
      </button>
      <Unlink name={name} />
    </span>
  );
}

function Unlink({ name }: { name: string }) {
  return (
    <button type="button" class="danger" onClick={() => void askRemoval("dsource", name, () => go("dsources"))}>
      Unlink…
    </button>
  );
}

function askSet({ name, source }: Dsource): void {
  question({
    title: `Source of ${name}`,
    text: "Another address, role or sslmode of the same database, or another password.",
    verb: "Set",
    fields: [
      { name: "source", label: "Source", value: source },
      { name: "password", label: "Password", kind: "password", hint: "stays as it is where empty" },
    ],
    done: (values) => {
      const uri = values["source"];
      const password = values["password"];
      return begin(`set ${name}`, start("POST", at("dsources", name), { ...(uri && uri !== source && { source: uri }), ...(password && { password }) }));
    },
  });
}
