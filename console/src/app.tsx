// The frame around the views: who is signed in, where to go, what has just happened.
import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { ask, away, signOut, token } from "./api";
import { useCell } from "./cell";
import { follow, isFinal, jobs, live, status } from "./events";
import { time } from "./format";
import { learnWho, mayAdminister, mayAudit, maySurvey, mayUse, me } from "./me";
import { link, route } from "./route";
import { theme, toggleTheme } from "./theme";
import { forgetTransfers } from "./transfers";
import { Failure, Page } from "./ui/basics";
import { Dialogs } from "./ui/dialog";
import { Bookmarks } from "./views/bookmarks";
import { Audit, Tokens, Users } from "./views/access";
import { BisectionView, Bisections } from "./views/bisect";
import { DiffView, Diffs } from "./views/diff";
import { DsourceView } from "./views/dsource";
import { Dsources } from "./views/dsources";
import { Groups } from "./views/groups";
import { JobView, Jobs } from "./views/jobs";
import { Keys } from "./views/keys";
import { Masks } from "./views/masks";
import { Overview } from "./views/overview";
import { Policies } from "./views/policies";
import { Pool } from "./views/pool";
import { Replications } from "./views/replication";
import { ReplicationView } from "./views/replication-profile";
import { SignIn } from "./views/sign-in";
import { Snapshots } from "./views/snapshots";
import { Templates } from "./views/templates";
import { VdbView } from "./views/vdb";
import { Vdbs } from "./views/vdbs";
import { Webhooks } from "./views/webhooks";

interface Place {
  name: string;
  title: string;
  view: (object: string | undefined) => ComponentChildren;
  shown?: () => boolean;
}

const PLACES: Place[] = [
  { name: "overview", title: "Overview", view: () => <Overview /> },
  { name: "dsources", title: "dSources", view: (name) => (name ? <DsourceView key={name} name={name} /> : <Dsources />) },
  { name: "vdbs", title: "VDBs", view: (name) => (name ? <VdbView key={name} name={name} /> : <Vdbs />) },
  { name: "jobs", title: "Jobs", view: (id) => (id ? <JobView key={id} id={id} /> : <Jobs />) },
  { name: "snapshots", title: "Snapshots", view: () => <Snapshots /> },
  { name: "bookmarks", title: "Bookmarks", view: () => <Bookmarks /> },
  { name: "bisect", title: "Bisect", view: (id) => (id ? <BisectionView key={id} id={id} /> : <Bisections />), shown: mayUse },
  { name: "diff", title: "Diff", view: (id) => (id ? <DiffView key={id} id={id} /> : <Diffs />), shown: mayUse },
  { name: "templates", title: "Templates", view: () => <Templates /> },
  { name: "policies", title: "Policies", view: () => <Policies /> },
  { name: "groups", title: "Groups", view: () => <Groups /> },
  { name: "masks", title: "Masking", view: () => <Masks />, shown: maySurvey },
  { name: "pool", title: "Pool", view: () => <Pool /> },
  { name: "replication", title: "Replication", view: (name) => (name ? <ReplicationView key={name} name={name} /> : <Replications />), shown: maySurvey },
  { name: "users", title: "Users", view: () => <Users />, shown: mayAudit },
  { name: "tokens", title: "Tokens", view: () => <Tokens />, shown: mayAudit },
  { name: "webhooks", title: "Webhooks", view: () => <Webhooks />, shown: mayAdminister },
  { name: "keys", title: "Keys", view: () => <Keys />, shown: mayAudit },
  { name: "audit", title: "Audit", view: () => <Audit />, shown: mayAudit },
];

export function App() {
  const secret = useCell(token);
  return secret ? <SignedIn key={secret} /> : <SignIn />;
}

const AGAIN_MS = 3000;

function SignedIn() {
  const who = useCell(me);
  const [failure, setFailure] = useState<Error>();
  useEffect(() => {
    const stop = follow();
    learnWho().catch(setFailure);
    return () => {
      stop();
      forgetTransfers();
      me.set(undefined);
    };
  }, []);
  useEffect(() => {
    if (!failure) return;
    const again = setTimeout(() => void learnWho().then(() => setFailure(undefined), setFailure), AGAIN_MS);
    return () => clearTimeout(again);
  }, [failure]);
  if (failure) {
    return (
      <main class="sign-in">
        <Failure of={failure} />
        <button type="button" onClick={() => location.reload()}>
          Try again
        </button>{" "}
        <button type="button" onClick={() => signOut()}>
          Sign out
        </button>
      </main>
    );
  }
  return who ? <Frame /> : <main class="sign-in" aria-busy="true" />;
}

function Frame() {
  const [where, object] = useCell(route);
  const place = PLACES.find((one) => one.name === where) ?? (where === undefined ? PLACES[0] : undefined);
  const title = place?.title ?? "Not found";
  const moved = useRef(false);
  useEffect(() => {
    document.title = `${object ?? title} · Offshoot`;
    // Whoever goes to another view hears its name. The first one begins where a page begins.
    if (moved.current) document.querySelector<HTMLElement>("h1")?.focus({ preventScroll: true });
    moved.current = true;
    scrollTo(0, 0);
  }, [where, object]);
  return (
    <div class="frame">
      <a class="skip" href="#main" onClick={skip}>
        Skip to the content
      </a>
      <Bar current={place?.name} />
      <main id="main" tabIndex={-1}>
        <Away />
        {place ? place.view(object) : <NotFound />}
      </main>
      <Dialogs />
    </div>
  );
}

function NotFound() {
  return (
    <Page title="Not found">
      <p>
        There is no such view. Go to the <a href={link("overview")}>overview</a>.
      </p>
    </Page>
  );
}

/** Said above every view, as figures of an engine that does not answer look like those of one that does. */
function Away() {
  const gone = useCell(away);
  return (
    <div role="status">
      {gone && (
        <div class="away">
          <strong>{gone.why.message}</strong>
          <div>{gone.why.hint}</div>
          <div>What is shown is as of {time(gone.since)}. This page tries again by itself.</div>
        </div>
      )}
    </div>
  );
}

function skip(event: Event): void {
  // The address is the view's: following the link would change it.
  event.preventDefault();
  document.getElementById("main")?.focus();
}

function Bar({ current }: { current: string | undefined }) {
  const [open, setOpen] = useState(false);
  const who = useCell(me);
  const isLive = useCell(live);
  const engine = useCell(status);
  const known = useCell(jobs);
  const dark = useCell(theme) === "dark";
  const busy = [...known.values()].filter((job) => !isFinal(job)).length;
  const counts: Record<string, number | undefined> = {
    overview: engine?.faults.length || undefined,
    jobs: busy || undefined,
  };
  const leave = () => {
    void ask("DELETE", "console/session").catch(() => undefined).then(() => signOut());
  };
  return (
    <header class="bar">
      <div class="brand">
        <a href={link("overview")}>Offshoot</a>
        <button type="button" class="menu" aria-expanded={open} aria-controls="nav" onClick={() => setOpen(!open)}>
          Menu
        </button>
      </div>
      <nav id="nav" class={open ? "open" : ""} aria-label="Views" onClick={() => setOpen(false)}>
        {PLACES.filter((place) => place.shown?.() ?? true).map((place) => (
          <a key={place.name} href={link(place.name)} aria-current={place.name === current ? "page" : undefined}>
            {place.title}
            {counts[place.name] !== undefined && <span class={`count ${place.name}`}>{counts[place.name]}</span>}
          </a>
        ))}
      </nav>
      <div class={`who ${open ? "open" : ""}`}>
        <span class={`live ${isLive ? "on" : ""}`} title={isLive ? "what changes is shown at once" : "no connection; what is shown may be old"}>
          {isLive ? "live" : "not live"}
        </span>
        <span>
          {who?.user ?? "administrator"} ({who?.role})
        </span>
        <button type="button" class="small" onClick={toggleTheme}>
          {dark ? "Light" : "Dark"}
        </button>
        <button type="button" class="small" onClick={leave}>
          Sign out
        </button>
      </div>
    </header>
  );
}
