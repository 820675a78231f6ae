// Archives on their way between the engine and a file of the browser's host. They go on while other views are looked at.
import { at, ended as sessionEnded, Refused, refusalOf, token } from "./api";
import { Cell } from "./cell";
import { changed } from "./events";
import type { JobAccepted } from "./schema";

export interface Transfer {
  key: number;
  /** `export of shop`, for example. */
  what: string;
  bytes: number;
  /** Of an export nobody knows it before its end. */
  total: number | null;
  begun: number;
  /** Waiting: those before it are not there yet. */
  state: "waiting" | "running" | "done" | "failed" | "cancelled";
  error?: Error;
  job?: string;
  stop: () => void;
}

export const transfers = new Cell<Transfer[]>([]);
const ARCHIVES = "replication/archives";
/** How much is held as it came before the browser is given it to put away: browsers keep large parts on disk. */
const PART_BYTES = 8 << 20;
const SHOWN_MS = 250;
const KEPT_MAX = 10;
let next = 1;

export const isOnItsWay = ({ state }: Transfer): boolean => state === "waiting" || state === "running";

/** Ends what is on its way: whoever signs in next sees nothing of it. */
export function forgetTransfers(): void {
  for (const one of transfers.value) if (isOnItsWay(one)) one.stop();
  transfers.set([]);
}

function begin(what: string, total: number | null, stop: () => void, state: Transfer["state"] = "running"): (change: Partial<Transfer>) => void {
  const key = next++;
  const kept = transfers.value.filter((one, place) => isOnItsWay(one) || place < KEPT_MAX - 1);
  transfers.set([{ key, what, bytes: 0, total, begun: Date.now(), state, stop }, ...kept]);
  return (change) => transfers.set(transfers.value.map((one) => (one.key === key ? { ...one, ...change } : one)));
}

/** What it ended by: a failure, or somebody who cancelled it. */
function ended(tell: (change: Partial<Transfer>) => void, failure: unknown, isCancelled: boolean): void {
  if (isCancelled) tell({ state: "cancelled" });
  else tell({ state: "failed", error: failure as Error });
}

function refusal(status: number, text: string): Refused {
  if (status === 401) sessionEnded(token.value);
  return refusalOf(status, text);
}

const cutOff = (): Refused => new Refused("the archive was cut off", "see the engine's log; try again", 0);

/** Asks for archives of dSources and VDBs one after the other, so that the browser holds one at a time. */
export async function exportArchives(names: string[], plain: boolean): Promise<void> {
  const all = names.map((name): Export => {
    const stop = new AbortController();
    const tell = begin(`export of ${name}`, null, () => (stop.abort(), tell({ state: "cancelled" })), "waiting");
    return { name, stop, tell };
  });
  for (const one of all) if (!one.stop.signal.aborted) await exportArchive(one, plain);
}

interface Export {
  name: string;
  stop: AbortController;
  tell: (change: Partial<Transfer>) => void;
}

/** Asks for an archive, and has the browser save it when it is whole. */
async function exportArchive({ name, stop, tell }: Export, plain: boolean): Promise<void> {
  tell({ state: "running", begun: Date.now() });
  try {
    const answer = await fetch(`/api/v1/${at(ARCHIVES, name)}${plain ? "?plain=true" : ""}`, {
      headers: { Authorization: `Bearer ${token.value}` },
      credentials: "omit",
      cache: "no-store",
      signal: stop.signal,
    });
    if (!answer.ok || !answer.body) throw refusal(answer.status, await answer.text());
    const archive = await collect(answer.body, (bytes) => tell({ bytes }));
    save(archive, `${name.replaceAll("/", "-")}.offshoot`);
    tell({ state: "done", bytes: archive.size, total: archive.size });
  } catch (failure) {
    // A body that ends too early is all that a browser says of one that was cut off.
    ended(tell, failure instanceof TypeError ? cutOff() : failure, stop.signal.aborted);
  }
}

async function collect(body: ReadableStream<Uint8Array<ArrayBuffer>>, tell: (bytes: number) => void): Promise<Blob> {
  const parts: Blob[] = [];
  let held: Uint8Array<ArrayBuffer>[] = [];
  let [heldBytes, bytes, told] = [0, 0, 0];
  const reader = body.getReader();
  for (;;) {
    const { done, value } = await reader.read();
    if (value) {
      held.push(value);
      heldBytes += value.length;
      bytes += value.length;
    }
    if (heldBytes >= PART_BYTES || done) {
      parts.push(new Blob(held));
      [held, heldBytes] = [[], 0];
    }
    if (done) return new Blob(parts, { type: "application/octet-stream" });
    if (Date.now() - told >= SHOWN_MS) {
      told = Date.now();
      tell(bytes);
    }
  }
}

/** Has the browser save a file. */
export function save(archive: Blob, name: string): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(archive);
  link.download = name;
  link.click();
  // Only when the browser has surely begun to save it.
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}

/** Sends an archive to the engine; the job that takes it in is told when all of it was sent. */
export function importArchive(file: File, namespace: string): void {
  // By the older interface: fetch does not tell how much was sent.
  const request = new XMLHttpRequest();
  let isCancelled = false;
  const tell = begin(`import of ${file.name}`, file.size, () => {
    isCancelled = true;
    request.abort();
  });
  const query = new URLSearchParams({ as: namespace, bytes: String(file.size) });
  request.open("POST", `/api/v1/${ARCHIVES}?${query}`);
  request.setRequestHeader("Authorization", `Bearer ${token.value}`);
  request.setRequestHeader("Content-Type", "application/octet-stream");
  request.upload.onprogress = ({ loaded }) => tell({ bytes: loaded });
  request.onabort = () => ended(tell, undefined, isCancelled);
  request.onerror = () => ended(tell, new Refused("the archive could not be sent", "is the engine running, and the file still there?", 0), isCancelled);
  request.onload = () => {
    if (request.status >= 300) ended(tell, refusal(request.status, request.responseText), false);
    else tell({ state: "done", bytes: file.size, job: (JSON.parse(request.responseText) as JobAccepted).job });
    changed();
  };
  request.send(file);
}
