// The history of a dSource or VDB, to pick a moment on: by the pointer, by the keyboard, or by what is typed.
import type { TargetedPointerEvent, TargetedSubmitEvent } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { useCell } from "../cell";
import { duration, time } from "../format";
import { atLsn, atTime, latest, MARK_FORMS, MOMENT_FORMS, type Picked } from "../moment";
import type { Bookmark, TimeflowList } from "../schema";
import { theme } from "../theme";
import { Failure } from "../ui/basics";
import { CommitChart } from "./commit-chart";
import { draw, HEIGHT, type View } from "./timeline-draw";
import { historyOf, nearest, opens, type History, type Mark } from "./timeline-model";
import { markOf, momentOf } from "./typed";

interface Props {
  flows: TimeflowList;
  bookmarks: Bookmark[];
  picked: Picked;
  onPick: (picked: Picked) => void;
}

/** A click this near to a mark means the mark, in pixels. */
const REACH = 7;

export function Timeline({ flows, bookmarks, picked, onPick }: Props) {
  const history = useMemo(() => historyOf(flows, bookmarks), [flows, bookmarks]);
  const [chosen, setView] = useState<View>();
  const view = chosen ?? whole(history);
  // A dSource opens at any moment, a VDB only at its snapshots.
  const anyMoment = flows.kind === "dsource";
  const pick = (at: number, reach: number) => onPick(pickOf(history, at, reach, anyMoment) ?? picked);
  const ms = picked === latest ? history.to : picked.ms;
  return (
    <div class="timeline">
      <div class="tools">
        <span class="span" aria-live="off">
          {time(view.from)} – {time(view.to)} ({duration(view.to - view.from)})
        </span>
        <Zoom view={view} history={history} onView={setView} around={ms} />
      </div>
      {anyMoment && <CommitChart name={flows.name} view={view} />}
      <Canvas history={history} view={view} onView={setView} at={ms} label={picked.label} onPick={pick} anyMoment={anyMoment} />
      <p class="legend">
        <span class="key dot" /> snapshot <span class="key recovery" /> recovery point <span class="key bookmark" /> bookmark
        {anyMoment && (
          <>
            {" "}
            <span class="key range" /> every moment opens <span class="key gap" /> gap
          </>
        )}
        {history.starts.length > 0 && (
          <>
            {" "}
            <span class="key start" /> {anyMoment ? "copied anew" : "rewound or refreshed"}
          </>
        )}
      </p>
      <Gaps of={history} />
      {anyMoment && <Points of={history} onPick={onPick} />}
      <Typed bookmarks={bookmarks} onPick={onPick} anyMoment={anyMoment} />
      <Steps history={history} at={ms} onPick={onPick} />
      <p class="picked" role="status">
        Picked: <strong>{picked.label}</strong>
        {!anyMoment && picked === latest && " – pick a snapshot or bookmark to rewind to it"}
        {picked.moment.kind === "at" && anyMoment && ms !== null && !opens(history, ms) && ms < history.to && " – no moment opens here"}
      </p>
    </div>
  );
}

const GAPS_SHOWN = 3;
const POINTS_SHOWN = 3;

/** Gaps in words: the line alone tells them only to those who see it. */
function Gaps({ of: { gaps } }: { of: History }) {
  if (gaps.length === 0) return null;
  const shown = gaps.slice(-GAPS_SHOWN).map(({ from, to }) => `${time(from)} – ${time(to)} (${duration(to - from)})`);
  return (
    <p class="legend">
      No moment opens in {gaps.length === 1 ? "a gap" : `${gaps.length} gaps`}, whose log the source no longer had: {gaps.length > GAPS_SHOWN && "… "}
      {shown.join(", ")}
    </p>
  );
}

/** Recovery points in words, the newest of them to pick: a click on the line means the moment under it. */
function Points({ of: { marks, opening }, onPick }: { of: History; onPick: (picked: Picked) => void }) {
  const points = marks.filter((mark) => mark.kind === "recovery");
  if (points.length === 0) return null;
  return (
    <p class="legend points">
      {points.length === 1 ? "One recovery point keeps" : `${points.length} recovery points keep`} the opening of moments short
      {opening && `: ${duration(opening.typical)} typically, ${duration(opening.longest)} at most`}. {points.length > POINTS_SHOWN && "The newest: "}
      {points.slice(-POINTS_SHOWN).map((point) => (
        <button key={point.name} type="button" class="small" onClick={() => onPick(pickPoint(point))} aria-label={`pick the recovery point of ${time(point.at)}`}>
          {time(point.at)}
        </button>
      ))}
    </p>
  );
}

/** By its position: its time in whole milliseconds is before it. */
function pickPoint({ at, lsn }: Mark): Picked {
  const moment = lsn ? atLsn(lsn) : atTime(at);
  return { ...moment, label: `recovery point, ${time(at)}`, ms: at };
}

function whole({ from, to }: History): View {
  const margin = (to - from) * 0.03 + 500;
  return { from: from - margin, to: to + margin };
}

function pickOf(history: History, at: number, reach: number, anyMoment: boolean): Picked | undefined {
  const mark = nearest(history.marks, at, anyMoment ? reach : Infinity);
  if (mark) return pickMark(mark);
  return anyMoment ? atTime(Math.round(Math.min(Math.max(at, history.from), history.to))) : undefined;
}

function pickMark(mark: Mark): Picked {
  if (mark.kind === "bookmark") {
    return { moment: { kind: "bookmark", name: mark.name }, label: `bookmark ${mark.name}, ${time(mark.at)}`, ms: mark.at };
  }
  return { moment: { kind: "snapshot", id: mark.name }, label: `${mark.name}, ${time(mark.at)}`, ms: mark.at };
}

function zoomed(view: View, around: number, by: number): View {
  const wide = Math.max(1000, (view.to - view.from) * by);
  const share = (around - view.from) / (view.to - view.from);
  return { from: around - share * wide, to: around + (1 - share) * wide };
}

function Zoom({ view, history, onView, around }: { view: View; history: History; onView: (view?: View) => void; around: number | null }) {
  const middle = around !== null && around >= view.from && around <= view.to ? around : (view.from + view.to) / 2;
  const last = (ms: number) => () => onView({ from: history.to - ms, to: history.to + ms * 0.03 });
  return (
    <span class="buttons" role="group" aria-label="what is shown">
      <button type="button" class="small" onClick={() => onView(zoomed(view, middle, 0.4))} aria-label="zoom in">
        +
      </button>
      <button type="button" class="small" onClick={() => onView(zoomed(view, middle, 2.5))} aria-label="zoom out">
        −
      </button>
      <button type="button" class="small" onClick={last(900_000)}>
        15 min
      </button>
      <button type="button" class="small" onClick={last(86_400_000)}>
        1 day
      </button>
      <button type="button" class="small" onClick={() => onView(undefined)}>
        All
      </button>
    </span>
  );
}

interface CanvasProps {
  history: History;
  view: View;
  onView: (view: View) => void;
  at: number | null;
  label: string;
  onPick: (at: number, reach: number) => void;
  anyMoment: boolean;
}

function Canvas({ history, view, onView, at, label, onPick, anyMoment }: CanvasProps) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const drag = useRef<{ x: number; view: View; moved: boolean } | undefined>(undefined);
  const [focused, setFocused] = useState(false);
  const [width, setWidth] = useState(0);
  const look = useCell(theme);
  const perPixel = () => (view.to - view.from) / Math.max(1, canvas.current?.clientWidth ?? 1);
  const timeAt = (event: MouseEvent) => view.from + (event.clientX - (canvas.current as HTMLElement).getBoundingClientRect().left) * perPixel();
  useEffect(() => {
    const element = canvas.current as HTMLCanvasElement;
    const observer = new ResizeObserver(() => setWidth(element.clientWidth));
    observer.observe(element);
    return () => observer.disconnect();
  }, []);
  useEffect(() => {
    if (canvas.current) draw(canvas.current, history, view, at, focused);
  }, [history, view, at, focused, width, look]);
  useEffect(() => {
    const element = canvas.current as HTMLCanvasElement;
    // The page must not scroll at the same time, which only a listener that is not passive can prevent.
    const wheel = (event: WheelEvent) => {
      event.preventDefault();
      if (Math.abs(event.deltaX) > Math.abs(event.deltaY)) onView(shifted(view, event.deltaX * perPixel()));
      else onView(zoomed(view, timeAt(event), event.deltaY > 0 ? 1.25 : 0.8));
    };
    element.addEventListener("wheel", wheel, { passive: false });
    return () => element.removeEventListener("wheel", wheel);
  });
  const down = (event: TargetedPointerEvent<HTMLCanvasElement>) => {
    event.currentTarget.setPointerCapture(event.pointerId);
    drag.current = { x: event.clientX, view, moved: false };
  };
  const move = (event: PointerEvent) => {
    const from = drag.current;
    if (!from) return;
    const by = event.clientX - from.x;
    if (Math.abs(by) > 4) from.moved = true;
    if (from.moved) onView(shifted(from.view, -by * perPixel()));
  };
  const up = (event: PointerEvent) => {
    const from = drag.current;
    drag.current = undefined;
    if (from && !from.moved) onPick(timeAt(event), REACH * perPixel());
  };
  const key = (event: KeyboardEvent) => {
    const now = at ?? (view.from + view.to) / 2;
    const steps: Record<string, number> = { ArrowLeft: -1, ArrowRight: 1, PageDown: -10, PageUp: 10 };
    const step = steps[event.key];
    if (step !== undefined) {
      if (anyMoment) onPick(now + (step * (view.to - view.from)) / 100, 0);
      else onPick(neighbour(history, now, step), 0);
    } else if (event.key === "Home") onPick(history.from, 0);
    else if (event.key === "End") onPick(history.to, 0);
    else if (event.key === "+") onView(zoomed(view, now, 0.5));
    else if (event.key === "-") onView(zoomed(view, now, 2));
    else return;
    event.preventDefault();
  };
  return (
    <canvas
      ref={canvas}
      height={HEIGHT}
      tabIndex={0}
      role="slider"
      aria-label="moment of the history"
      aria-valuemin={Math.round(history.from)}
      aria-valuemax={Math.round(history.to)}
      aria-valuenow={Math.round(at ?? history.to)}
      aria-valuetext={label}
      onPointerDown={down}
      onPointerMove={move}
      onPointerUp={up}
      onPointerCancel={() => (drag.current = undefined)}
      onKeyDown={key}
      onFocus={() => setFocused(true)}
      onBlur={() => setFocused(false)}
    />
  );
}

const shifted = (view: View, by: number): View => ({ from: view.from + by, to: view.to + by });

function neighbour(history: History, at: number, step: number): number {
  const marks = history.marks.filter((mark) => mark.kind !== "recovery");
  const found = step < 0 ? [...marks].reverse().find((mark) => mark.at < at) : marks.find((mark) => mark.at > at);
  return found?.at ?? at;
}

/** To the snapshot or bookmark before or after. */
function Steps({ history, at, onPick }: { history: History; at: number | null; onPick: (picked: Picked) => void }) {
  const marks = history.marks.filter((mark) => mark.kind !== "recovery");
  const now = at ?? history.to;
  const before = [...marks].reverse().find((mark) => mark.at < now);
  const after = marks.find((mark) => mark.at > now);
  return (
    <p class="buttons">
      <button type="button" class="small" disabled={!before} onClick={() => before && onPick(pickMark(before))}>
        ← Previous snapshot
      </button>
      <button type="button" class="small" disabled={!after} onClick={() => after && onPick(pickMark(after))}>
        Next snapshot →
      </button>
      <button type="button" class="small" onClick={() => onPick(latest)}>
        Latest
      </button>
    </p>
  );
}

function Typed({ bookmarks, onPick, anyMoment }: { bookmarks: Bookmark[]; onPick: (picked: Picked) => void; anyMoment: boolean }) {
  const [failure, setFailure] = useState<Error>();
  const submit = (event: TargetedSubmitEvent<HTMLFormElement>) => {
    event.preventDefault();
    const typed = String(new FormData(event.currentTarget).get("moment"));
    try {
      onPick((anyMoment ? momentOf : markOf)(typed, bookmarks.map((one) => one.name)));
      setFailure(undefined);
    } catch (error) {
      setFailure(error as Error);
    }
  };
  return (
    <form class="typed" onSubmit={submit}>
      <label for="moment">Moment</label>
      <input id="moment" name="moment" required autocomplete="off" spellcheck={false} placeholder={anyMoment ? "yesterday 14:03" : "snapshot-12"} aria-describedby="moment-forms" />
      <button type="submit">Pick</button>
      <small id="moment-forms">{anyMoment ? MOMENT_FORMS : MARK_FORMS}</small>
      <Failure of={failure} />
    </form>
  );
}
