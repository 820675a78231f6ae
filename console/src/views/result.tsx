// What a job found, once it is done.
import { useEffect, useState } from "preact/hooks";
import { at, get } from "../api";
import { isFinal } from "../events";
import { link } from "../route";
import type { Job } from "../schema";
import { Failure } from "../ui/basics";
import { Cancel, Progress, useJob } from "./jobs";

interface Under {
  job: Job | undefined;
  error: Error | undefined;
}

/** Asked for once: it does not change, and some results the engine shows only once. */
export function useResult<T>(id: string, path: string): Under & { data: T | undefined } {
  const { job, error } = useJob(id);
  const [held, hold] = useState<{ data?: T; error?: Error }>({});
  const isDone = job?.state === "done";
  useEffect(() => {
    if (!isDone) return;
    let wanted = true;
    get<T>(at(path, id)).then(
      (data) => wanted && hold({ data }),
      (failure: Error) => wanted && hold({ error: failure }),
    );
    return () => {
      wanted = false;
    };
  }, [isDone, id, path]);
  return { job, data: held.data, error: held.error ?? (job ? undefined : error) };
}

/** How far a job is, or why it found nothing. */
export function Working({ job, error }: Under) {
  return (
    <>
      <Failure of={error ?? job?.error} />
      {job?.state === "cancelled" && <p class="empty">It was cancelled.</p>}
      {job && !isFinal(job) && (
        <p>
          <a href={link("jobs", job.id)}>{job.id}</a> is at work: <Progress of={job} /> <Cancel of={job} />
        </p>
      )}
    </>
  );
}
