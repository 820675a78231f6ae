// Requests to the engine: the public API, with the token of this browser tab. The token is kept where only this tab
// and this origin reach it, and is never sent by the browser on its own, so that no other site can use it.
import { useEffect, useRef, useState } from "preact/hooks";
import { Cell, useCell } from "./cell";
import type { ErrorBody, JobAccepted, OpenedConsoleSession } from "./schema";

const TOKEN = "offshoot-token";
const BASE = "/api/v1/";

/** What the engine, or the way to it, answered instead of doing what was asked. */
export class Refused extends Error {
  constructor(
    message: string,
    readonly hint: string,
    readonly status: number,
  ) {
    super(message);
  }
}

/** The token of this tab; null: nobody is signed in. */
export const token = new Cell<string | null>(sessionStorage.getItem(TOKEN));
/** Why nobody is signed in any more. */
export const signedOutBy = new Cell<string>("");
/** Why what is shown is old, and since when; undefined: it is not, or only since a moment ago. */
export const away = new Cell<{ why: Refused; since: number } | undefined>(undefined);
/** Counts changes of the engine; what is shown is asked for again. */
export const changes = new Cell(0);

export function signIn(secret: string): void {
  sessionStorage.setItem(TOKEN, secret);
  signedOutBy.set("");
  token.set(secret);
}

export function signOut(why = ""): void {
  sessionStorage.removeItem(TOKEN);
  known.clear();
  signedOutBy.set(why);
  token.set(null);
}

/** A token is good no more: whoever had it is told why, and what to do. */
export function ended(bearer: string | null): void {
  if (bearer !== null && bearer === token.value) signOut("You were signed out: a session ends after eight hours, with the token that opened it, and when the engine is started anew. Sign in to go on where you were.");
}

/** Why the engine refused, as it says it. */
export function refusalOf(status: number, text: string): Refused {
  try {
    const { error } = JSON.parse(text) as ErrorBody;
    return new Refused(error.message, error.hint, status);
  } catch {
    return new Refused(`the engine answered with status ${status}`, "see the engine's log", status);
  }
}

/** Opens a session for the one-time code of a link. */
export async function openSession(code: string): Promise<void> {
  const answer = await send("POST", "console/session", { code }, null);
  signIn(((await answer.json()) as OpenedConsoleSession).token);
}

async function send(method: string, path: string, body: unknown, bearer: string | null): Promise<Response> {
  const headers: Record<string, string> = {};
  if (bearer) headers["Authorization"] = `Bearer ${bearer}`;
  if (body !== undefined) headers["Content-Type"] = "application/json";
  let answer: Response;
  try {
    answer = await fetch(BASE + path, {
      method,
      headers,
      body: body === undefined ? null : JSON.stringify(body),
      credentials: "omit",
      cache: "no-store",
    });
  } catch {
    throw new Refused("the engine does not answer", "is it running? This page tries again by itself", 0);
  }
  if (answer.ok) return answer;
  throw refusalOf(answer.status, await answer.text());
}

/** Asks the engine; a token that is good no more signs out. */
export async function ask<T>(method: string, path: string, body?: unknown): Promise<T> {
  const bearer = token.value;
  try {
    const answer = await send(method, path, body, bearer);
    return (await answer.json()) as T;
  } catch (error) {
    if (error instanceof Refused && error.status === 401) ended(bearer);
    throw error;
  }
}

export const get = <T,>(path: string): Promise<T> => ask<T>("GET", path);
/** Asks for long work; the job that does it. */
export const start = (method: string, path: string, body?: unknown): Promise<string> =>
  ask<JobAccepted>(method, path, body).then((accepted) => accepted.job);

/** A path with a name in it. */
export function at(path: string, name: string, rest = ""): string {
  return `${path}/${encodeURIComponent(name)}${rest}`;
}

/** What was answered before, so that a view that is opened again shows something at once. */
const known = new Map<string, unknown>();
const KNOWN_MAX = 60;

export interface Asked<T> {
  data: T | undefined;
  error: Refused | undefined;
  reload: () => void;
}

/** What the engine answers, asked for again when something changed, and every so many ms while the page is seen. */
export function useAnswer<T>(path: string | null, everyMs = 0): Asked<T> {
  const [, draw] = useState(0);
  const [round, setRound] = useState(0);
  const held = useRef<{ path: string | null; data?: T; error?: Refused }>({ path: null });
  const change = useCell(changes);
  if (held.current.path !== path) {
    held.current = { path, data: path === null ? undefined : (known.get(path) as T | undefined) };
  }
  useEffect(() => {
    if (path === null) return;
    let wanted = true;
    let timer: ReturnType<typeof setTimeout> | undefined;
    const load = async () => {
      const begun = performance.now();
      try {
        const data = await get<T>(path);
        if (!wanted) return;
        remember(path, data);
        held.current = { path, data };
      } catch (error) {
        if (!wanted) return;
        const gone = (error as Refused).status === 404;
        held.current = { path, data: gone ? undefined : held.current.data, error: error as Refused };
      }
      draw((count) => count + 1);
      // What takes long is asked for less often, so that a long history keeps neither side busy.
      if (everyMs > 0) timer = setTimeout(again, Math.max(everyMs, 20 * (performance.now() - begun)));
    };
    const again = () => {
      if (document.hidden) timer = setTimeout(again, everyMs);
      else void load();
    };
    void load();
    return () => {
      wanted = false;
      clearTimeout(timer);
    };
  }, [path, everyMs, change, round]);
  const { data, error } = held.current;
  // The page says once that the engine does not answer.
  const isSaid = error?.status === 0 && data !== undefined && away.value !== undefined;
  return { data, error: isSaid ? undefined : error, reload: () => setRound((count) => count + 1) };
}

function remember(path: string, data: unknown): void {
  known.delete(path);
  known.set(path, data);
  if (known.size > KNOWN_MAX) known.delete(known.keys().next().value as string);
}
