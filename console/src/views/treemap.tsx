// What objects hold alone, as areas: the squarified layout of Bruls, Huizing and van Wijk (2000).
import { useEffect, useRef, useState } from "preact/hooks";
import { bytes } from "../format";
import { link } from "../route";
import type { LedgerEntry } from "../schema";

interface Area {
  entry: LedgerEntry;
  size: number;
  x: number;
  y: number;
  w: number;
  h: number;
}

const SHOWN_MAX = 60;

export function layout(entries: LedgerEntry[], width: number, height: number): Area[] {
  const sized = entries.map((entry) => ({ entry, size: entry.freed_if_deleted_bytes ?? 0 })).filter((one) => one.size > 0);
  sized.sort((a, b) => b.size - a.size);
  const shown = sized.slice(0, SHOWN_MAX);
  const sum = shown.reduce((all, one) => all + one.size, 0);
  const scale = (width * height) / Math.max(1, sum);
  const areas: Area[] = [];
  let [x, y, w, h] = [0, 0, width, height];
  let index = 0;
  while (index < shown.length) {
    const side = Math.min(w, h);
    let row = 1;
    while (index + row < shown.length && worst(shown.slice(index, index + row + 1), side, scale) <= worst(shown.slice(index, index + row), side, scale)) row++;
    const part = shown.slice(index, index + row);
    const thick = (part.reduce((all, one) => all + one.size, 0) * scale) / Math.max(side, 1e-9);
    let along = 0;
    for (const one of part) {
      const long = (one.size * scale) / Math.max(thick, 1e-9);
      areas.push(w >= h ? { ...one, x, y: y + along, w: thick, h: long } : { ...one, x: x + along, y, w: long, h: thick });
      along += long;
    }
    if (w >= h) [x, w] = [x + thick, w - thick];
    else [y, h] = [y + thick, h - thick];
    index += row;
  }
  return areas;
}

/** The worst shape of a row: longer side to shorter. */
function worst(row: { size: number }[], side: number, scale: number): number {
  const sizes = row.map((one) => one.size * scale);
  const sum = sizes.reduce((all, one) => all + one, 0);
  const square = sum * sum || 1e-9;
  return Math.max((side * side * Math.max(...sizes)) / square, square / (side * side * Math.min(...sizes) || 1e-9));
}

export function Treemap({ of }: { of: LedgerEntry[] }) {
  const box = useRef<HTMLDivElement>(null);
  const [width, setWidth] = useState(1000);
  const height = 180;
  const areas = layout(of, width, height);
  useEffect(() => {
    const element = box.current;
    if (!element) return;
    // Areas are near to squares only if they are laid out for the width that there is.
    const observer = new ResizeObserver(() => setWidth(Math.max(80, element.clientWidth)));
    observer.observe(element);
    return () => observer.disconnect();
  }, [areas.length === 0]);
  if (areas.length === 0) return null;
  return (
    <>
      <div class="treemap" ref={box}>
        {areas.map(({ entry, size, x, y, w, h }) => (
          <a
            key={`${entry.kind} ${entry.object}`}
            href={link(`${entry.kind}s`, entry.object)}
            class={entry.kind}
            title={`${entry.object}: ${bytes(size)}`}
            style={{ left: `${(x / width) * 100}%`, top: `${(y / height) * 100}%`, width: `${(w / width) * 100}%`, height: `${(h / height) * 100}%` }}
          >
            <span>{entry.object}</span> <span>{bytes(size)}</span>
          </a>
        ))}
      </div>
      <p class="legend">areas are what deleting one would free: what it holds alone</p>
    </>
  );
}
