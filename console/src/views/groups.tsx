import { ask, at, get, start, useAnswer } from "../api";
import { changed } from "../events";
import { duration } from "../format";
import { mayOperate, mayUse } from "../me";
import { parseMoment } from "../moment";
import { link } from "../route";
import type { DsourceList, Group, GroupList, VdbGroup, VdbGroupList } from "../schema";
import { Card, Empty, Facts, Failure, Page, State, Time, Warnings } from "../ui/basics";
import { question } from "../ui/dialog";
import { begin, run, say } from "../ui/toasts";
import { wrong } from "./wrong";

const MOMENT_HINT = "as 14:03:27, -10min or 2026-11-21 14:03; the latest that all have where empty";

export function Groups() {
  const groups = useAnswer<GroupList>("groups", 5000);
  const made = useAnswer<VdbGroupList>("vdb-groups");
  const actions = mayOperate() && (
    <button type="button" class="primary" onClick={() => void askCreate()}>
      Make a group
    </button>
  );
  return (
    <Page title="Groups" lead="dSources that belong together, and VDBs made of all of them at one moment." actions={actions}>
      <Failure of={groups.error ?? made.error} />
      {groups.data?.groups.length === 0 && <Empty>there is no group</Empty>}
      <div class="columns">{groups.data?.groups.map((one) => <GroupCard key={one.id} of={one} />)}</div>
      {(made.data?.vdb_groups.length ?? 0) > 0 && <h2>VDB groups</h2>}
      <div class="columns">{made.data?.vdb_groups.map((one) => <VdbGroupCard key={one.id} of={one} />)}</div>
    </Page>
  );
}

function GroupCard({ of }: { of: Group }) {
  return (
    <Card
      title={of.name}
      actions={
        <span class="buttons">
          {mayOperate() && (
            <button type="button" class="small danger" onClick={() => askDelete(of)}>
              Delete…
            </button>
          )}
          {mayUse() && (
            <button type="button" class="small primary" onClick={() => askProvision(of)}>
              Provision…
            </button>
          )}
        </span>
      }
    >
      <Facts of={[["latest moment of all", of.latest && <Time at={of.latest} />]]} />
      <ul class="plain">
        {of.members.map((member) => (
          <li key={member.id}>
            <a href={link("dsources", member.name)}>{member.name}</a> <State of={member.state} />
            <span class="right">{member.clock_skew_ms ? `its clock is ${duration(Math.abs(member.clock_skew_ms))} ${member.clock_skew_ms > 0 ? "ahead" : "behind"}` : ""}</span>
          </li>
        ))}
      </ul>
      <Warnings of={of.warnings} />
    </Card>
  );
}

function VdbGroupCard({ of }: { of: VdbGroup }) {
  const post = (verb: string, body?: unknown) => () => start("POST", at("vdb-groups", of.name, `/${verb}`), body);
  const some = (state: string) => of.vdbs.some((vdb) => vdb.state === state);
  return (
    <Card title={of.name}>
      <Facts
        of={[
          ["group", of.group],
          ["opened at", of.moment && <Time at={of.moment} />],
        ]}
      />
      <ul class="plain">
        {of.vdbs.map((vdb) => (
          <li key={vdb.id}>
            <a href={link("vdbs", vdb.name)}>{vdb.name}</a> <State of={vdb.state} />
          </li>
        ))}
      </ul>
      {mayUse() && (
        <p class="buttons">
          {some("running") && (
            <button type="button" class="small" onClick={() => run(`stop ${of.name}`, post("stop"))}>
              Stop
            </button>
          )}
          {some("stopped") && (
            <button type="button" class="small" onClick={() => run(`start ${of.name}`, post("start"))}>
              Start
            </button>
          )}
          <button type="button" class="small" onClick={() => askWord(of, "bookmark")}>
            Bookmark…
          </button>
          <button type="button" class="small" onClick={() => askWord(of, "rewind")}>
            Rewind…
          </button>
          <button type="button" class="small" onClick={() => askRefresh(of)}>
            Refresh…
          </button>
          <button type="button" class="small danger" onClick={() => askDeleteMade(of)}>
            Delete…
          </button>
        </p>
      )}
    </Card>
  );
}

async function askCreate(): Promise<void> {
  const { dsources } = await get<DsourceList>("dsources").catch(() => ({ dsources: [] }) as DsourceList);
  question({
    title: "Make a group",
    verb: "Make",
    fields: [
      { name: "name", label: "Name", required: true, hint: "a-z, 0-9, _ and -, beginning with a letter" },
      { name: "members", label: "dSources", kind: "choices", required: true, choices: dsources.map((one) => [one.name, one.name]), hint: "two or more" },
    ],
    done: async ({ name, members = "" }) => {
      await ask<Group>("POST", "groups", { name, members: members.split(",") });
      say(`the group ${name} is made`, "good");
      changed();
    },
  });
}

function askProvision(group: Group): void {
  question({
    title: `Provision from ${group.name}`,
    text: "One VDB of each member, all at one moment, or none.",
    verb: "Provision",
    fields: [
      { name: "name", label: "Name", required: true, hint: "a VDB's name is this and its dSource's" },
      { name: "at", label: "Moment", hint: MOMENT_HINT },
    ],
    done: (values) => begin(`provision ${values["name"]}`, start("POST", "vdb-groups", { name: values["name"], group: group.name, ...momentOf(values["at"]) })),
  });
}

function askRefresh(group: VdbGroup): void {
  question({
    title: `Refresh ${group.name}`,
    verb: "Refresh",
    fields: [{ name: "at", label: "Moment", hint: MOMENT_HINT }],
    done: (values) => begin(`refresh ${group.name}`, start("POST", at("vdb-groups", group.name, "/refresh"), momentOf(values["at"]))),
  });
}

function momentOf(typed: string | undefined): { at?: string } {
  if (!typed) return {};
  const moment = parseMoment(typed, [])?.moment;
  if (moment?.kind === "latest") return {};
  if (moment?.kind !== "at") throw wrong(`'${typed}' is no time`, MOMENT_HINT);
  return { at: moment.time };
}

function askWord(group: VdbGroup, verb: "bookmark" | "rewind"): void {
  const title = verb === "bookmark" ? `Bookmark ${group.name}` : `Rewind ${group.name}`;
  question({
    title,
    verb: verb === "bookmark" ? "Set" : "Rewind",
    text: verb === "bookmark" ? "One bookmark on each of its VDBs." : "All of its VDBs go back to bookmarks that were set together.",
    fields: [{ name: "bookmark", label: "Name", required: true }],
    done: ({ bookmark }) => begin(`${verb} ${group.name}`, start("POST", at("vdb-groups", group.name, `/${verb}`), { bookmark })),
  });
}

function askDelete({ name }: Group): void {
  question({
    title: `Delete the group ${name}`,
    text: "Its dSources stay, and so do VDBs that were made from it.",
    verb: "Delete",
    dangerous: true,
    done: async () => {
      await ask<Group>("DELETE", at("groups", name));
      say(`the group ${name} is deleted`, "good");
      changed();
    },
  });
}

function askDeleteMade({ name, vdbs }: VdbGroup): void {
  question({
    title: `Delete ${name}`,
    text: `Its VDBs go with it: ${vdbs.map((vdb) => vdb.name).join(", ")}.`,
    verb: "Delete",
    dangerous: true,
    done: () => begin(`delete ${name}`, start("DELETE", at("vdb-groups", name))),
  });
}
