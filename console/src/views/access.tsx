import { useState } from "preact/hooks";
import { ask, at, get, useAnswer } from "../api";
import { changed } from "../events";
import { bytes } from "../format";
import { mayAdminister } from "../me";
import { link } from "../route";
import type { Audit as AuditList, AuditEntry, CreatedToken, DsourceList, Token, TokenList, User, UserList } from "../schema";
import { Failure, Once, Page, Search, Time } from "../ui/basics";
import { type Field, question } from "../ui/dialog";
import { Table } from "../ui/table";
import { say } from "../ui/toasts";
import { typedDuration, typedSize } from "./typed";

const ROLES: [string, string][] = [
  ["developer", "developer: has VDBs of its own"],
  ["operator", "operator: runs dSources and VDBs of everybody"],
  ["auditor", "auditor: reads everything but passwords"],
  ["admin", "admin: may do everything"],
];

export function Users() {
  const { data, error } = useAnswer<UserList>("users");
  const actions = mayAdminister() && (
    <button type="button" class="primary" onClick={() => void askUser()}>
      Add a user
    </button>
  );
  return (
    <Page title="Users" lead="Who may use the engine, and for what." actions={actions}>
      <Failure of={error} />
      {data && (
        <Table<User>
          label="users"
          rows={data.users}
          rowKey={(one) => one.id}
          empty="there is no user: only the administrator, who has the pool"
          columns={[
            { name: "User", cell: (one) => one.name },
            { name: "Role", cell: (one) => one.role },
            { name: "VDBs", cell: (one) => (one.vdbs_max === null ? one.vdbs : `${one.vdbs} of ${one.vdbs_max}`), figures: true },
            { name: "Space", cell: (one) => (one.space_bytes_max === null ? "–" : `${bytes(one.space_bytes ?? 0)} of ${bytes(one.space_bytes_max)}`), figures: true },
            { name: "May provision from", cell: (one) => one.parents.join(", "), wide: true },
            { name: "Added", cell: (one) => <Time at={one.created_at} />, wide: true },
            ...(mayAdminister()
              ? [
                  {
                    name: "Actions",
                    cell: (one: User) => (
                      <span class="buttons">
                        <button type="button" class="small" onClick={() => void askChange(one)} aria-label={`change ${one.name}`}>
                          Change
                        </button>
                        <button type="button" class="small danger" onClick={() => askRemove(one)} aria-label={`remove ${one.name}`}>
                          Remove
                        </button>
                      </span>
                    ),
                  },
                ]
              : []),
          ]}
        />
      )}
    </Page>
  );
}

/** What a user may have, to be asked for. */
async function limits(now?: User): Promise<Field[]> {
  const { dsources } = await get<DsourceList>("dsources").catch(() => ({ dsources: [] }) as DsourceList);
  return [
    { name: "parents", label: "A developer may provision from", kind: "choices", choices: dsources.map((one) => [one.name, one.name]), value: now?.parents.join(",") ?? "" },
    { name: "vdbs_max", label: "Most VDBs", kind: "number", value: String(now?.vdbs_max ?? ""), hint: "as many as it likes where empty" },
    { name: "space", label: "Space that these may take", value: now?.space_bytes_max ? bytes(now.space_bytes_max).replace(" ", "") : "", hint: "as 50GiB; as much as there is where empty" },
  ];
}

function limitsOf({ parents, vdbs_max, space }: Record<string, string>) {
  return { parents: parents ? parents.split(",") : [], vdbs_max: vdbs_max ? Number(vdbs_max) : null, space_bytes_max: typedSize(space) ?? null };
}

async function askChange(user: User): Promise<void> {
  question({
    title: `Change what ${user.name} may have`,
    text: "What it has already stays.",
    verb: "Change",
    fields: await limits(user),
    done: async (values) => {
      await ask<User>("POST", at("users", user.name), limitsOf(values));
      changed();
    },
  });
}

async function askUser(): Promise<void> {
  const more = await limits();
  question({
    title: "Add a user",
    verb: "Add",
    fields: [
      { name: "name", label: "Name", required: true, hint: "a-z, 0-9, _ and -, beginning with a letter" },
      { name: "role", label: "Role", kind: "choice", choices: ROLES },
      ...more,
    ],
    done: async ({ name, role, ...values }) => {
      await ask<User>("POST", "users", { name, role, ...limitsOf(values) });
      say(`${name} is added; a token lets it in`, "good");
      changed();
    },
  });
}

function askRemove({ name, vdbs }: User): void {
  question({
    title: `Remove ${name}`,
    text: `Its tokens end at once.${vdbs > 0 ? ` Its ${vdbs} VDBs belong to the administrators then.` : ""}`,
    verb: "Remove",
    dangerous: true,
    done: async () => {
      await ask<User>("DELETE", at("users", name));
      say(`${name} is removed`, "good");
      changed();
    },
  });
}

export function Tokens() {
  const { data, error, reload } = useAnswer<TokenList>("tokens");
  const users = useAnswer<UserList>("users");
  const [made, setMade] = useState<CreatedToken>();
  const names = (users.data?.users ?? []).map((user) => user.name);
  const create = () =>
    question({
      title: "Make a token",
      verb: "Make",
      fields: [
        { name: "user", label: "User", kind: "choice", choices: names.map((name) => [name, name]) },
        { name: "life", label: "Good for", value: "30d", hint: "until it is revoked where empty" },
      ],
      done: async ({ user, life }) => {
        const ms = typedDuration(life);
        setMade(await ask<CreatedToken>("POST", "tokens", { user, ...(ms !== undefined && { expires_in_ms: ms }) }));
        reload();
      },
    });
  const revoke = (one: Token) =>
    question({
      title: `Revoke ${one.id}`,
      text: `${one.user} is no longer known by it, and consoles that it opened end.`,
      verb: "Revoke",
      dangerous: true,
      done: async () => {
        await ask<Token>("DELETE", at("tokens", one.id));
        reload();
      },
    });
  const actions = mayAdminister() && names.length > 0 && (
    <button type="button" class="primary" onClick={create}>
      Make a token
    </button>
  );
  return (
    <Page title="Tokens" lead="What users are known by. A token itself is kept nowhere." actions={actions}>
      <Failure of={error} />
      {made && <Once title={`Token of ${made.user}`} text={made.token} what="the token" onHide={() => setMade(undefined)} />}
      {data && (
        <Table<Token>
          label="tokens"
          rows={data.tokens}
          rowKey={(one) => one.id}
          empty="there is no token"
          columns={[
            { name: "Token", cell: (one) => one.id },
            { name: "User", cell: (one) => one.user },
            { name: "Made", cell: (one) => <Time at={one.created_at} />, wide: true },
            { name: "Ends", cell: (one) => (one.expired ? "ended" : one.expires_at ? <Time at={one.expires_at} /> : "when revoked") },
            ...(mayAdminister()
              ? [
                  {
                    name: "Actions",
                    cell: (one: Token) => (
                      <button type="button" class="small danger" onClick={() => revoke(one)} aria-label={`revoke ${one.id}`}>
                        Revoke
                      </button>
                    ),
                  },
                ]
              : []),
          ]}
        />
      )}
    </Page>
  );
}

export function Audit() {
  const { data, error } = useAnswer<AuditList>("audit?limit=5000", 10_000);
  const [filter, setFilter] = useState("");
  const rows = (data?.entries ?? []).filter((one) => [one.user, one.action, one.object, one.outcome].some((text) => text.includes(filter)));
  return (
    <Page title="Audit" lead="Who asked for what, and what became of it; newest first.">
      <Failure of={error} />
      <Search value={filter} onInput={setFilter} label="Filter by user, action, object or outcome" />
      {data && (
        <Table<AuditEntry>
          label="audit"
          rows={rows}
          rowKey={(one) => String(one.id)}
          empty="nothing was asked for"
          columns={[
            { name: "Time", cell: (one) => <Time at={one.time} /> },
            { name: "User", cell: (one) => one.user },
            { name: "Action", cell: (one) => one.action },
            { name: "Object", cell: (one) => one.object },
            { name: "Outcome", cell: (one) => one.outcome },
            { name: "Job", cell: (one) => one.job && <a href={link("jobs", one.job)}>{one.job}</a>, wide: true },
            { name: "From", cell: (one) => one.origin, wide: true },
          ]}
        />
      )}
    </Page>
  );
}
