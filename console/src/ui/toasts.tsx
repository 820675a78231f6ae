// What was begun, and how it ended: said once, for those who see and those who hear.
import { useEffect } from "preact/hooks";
import { Cell, useCell } from "../cell";
import { Refused } from "../api";
import { changed, isFinal, jobs } from "../events";
import { words } from "../format";

interface Toast {
  key: number;
  text: string;
  tone: "good" | "bad" | "quiet";
  job?: string;
}

const toasts = new Cell<Toast[]>([]);
const LIFE_MS = 7000;
/** What failed is read with care. */
const BAD_LIFE_MS = 30_000;
const NOTES_MAX = 160;
let next = 1;
/** Jobs of this page whose end is told. */
const own = new Set<string>();

export function say(text: string, tone: Toast["tone"] = "quiet", job?: string): void {
  const toast: Toast = { key: next++, text, tone, ...(job ? { job } : {}) };
  toasts.set([...toasts.value.slice(-3), toast]);
  setTimeout(() => drop(toast.key), tone === "bad" ? BAD_LIFE_MS : LIFE_MS);
}

const drop = (key: number): void => toasts.set(toasts.value.filter((one) => one.key !== key));

/** Follows the job that a request began. */
export async function begin(what: string, job: Promise<string>): Promise<string> {
  const id = await job;
  own.add(id);
  say(`${what}: ${id} has begun`, "quiet", id);
  changed();
  return id;
}

/** The same where no dialog shows a failure. */
export const run = (what: string, job: () => Promise<string>): void => attempt(() => begin(what, job()));

/** Does something that is no job, and says why it failed. */
export function attempt(what: () => Promise<unknown>): void {
  what().catch((error: Error) => {
    const hint = error instanceof Refused && error.hint ? ` – ${error.hint}` : "";
    say(`${error.message}${hint}`, "bad");
  });
}

/** As much of a job's notes as is read in passing; its page has the rest. */
function brief(notes: string[]): string {
  const text = notes.join("; ");
  return text.length > NOTES_MAX ? `${text.slice(0, NOTES_MAX)}…` : text;
}

/** Those of the page, and who tells how jobs ended. While a dialog is open it shows them itself: what lies below is inert. */
export function Toasts({ elsewhere }: { elsewhere: boolean }) {
  const known = useCell(jobs);
  useEffect(() => {
    for (const id of own) {
      const job = known.get(id);
      if (!job || !isFinal(job)) continue;
      own.delete(id);
      const what = `${words(job.kind)} of ${job.object}`;
      if (job.state === "done") say(`${what} is done${job.notes?.length ? `: ${brief(job.notes)}` : ""}`, "good", id);
      else say(`${what} ${job.state === "failed" ? `failed: ${job.error?.message ?? ""}` : "was cancelled"}`, "bad", id);
    }
  }, [known]);
  return <ToastList empty={elsewhere} />;
}

/** It is there when it is empty, too: what is added to it is heard. */
export function ToastList({ empty = false, onFollow }: { empty?: boolean; onFollow?: () => void }) {
  const all = useCell(toasts);
  return (
    <div class="toasts" role="status" aria-live="polite">
      {!empty &&
        all.map((toast) => (
          <div key={toast.key} class={`toast ${toast.tone}`}>
            <span>{toast.text}</span>
            {toast.job && (
              <a href={`#/jobs/${toast.job}`} onClick={onFollow}>
                {toast.job}
              </a>
            )}
            <button type="button" class="close" onClick={() => drop(toast.key)} aria-label={`close: ${toast.text.slice(0, 40)}`}>
              ×
            </button>
          </div>
        ))}
    </div>
  );
}
