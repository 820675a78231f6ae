// A table that draws only the rows that are seen, so that ten thousand are as quick as ten.
import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";

export interface Column<T> {
  name: string;
  cell: (row: T) => ComponentChildren;
  /** Left out where the screen is narrow. */
  wide?: boolean;
  /** Figures are aligned to the right. */
  figures?: boolean;
}

const ROW = 40;
/** Tables with fewer rows are drawn whole. */
const WHOLE = 60;
const MARGIN = 8;

export function Table<T>({ label, rows, columns, rowKey, empty }: { label: string; rows: T[]; columns: Column<T>[]; rowKey: (row: T) => string; empty?: ComponentChildren }) {
  const box = useRef<HTMLDivElement>(null);
  const [range, setRange] = useState<[number, number]>([0, WHOLE]);
  const whole = rows.length <= WHOLE;
  const look = () => {
    const element = box.current;
    if (!element || whole) return;
    const from = Math.max(0, Math.floor(element.scrollTop / ROW) - MARGIN);
    const to = from + Math.ceil(element.clientHeight / ROW) + 2 * MARGIN;
    setRange((before) => (before[0] === from && before[1] === to ? before : [from, to]));
  };
  useEffect(look, [rows.length, whole]);
  if (rows.length === 0) return <p class="empty">{empty ?? "nothing here"}</p>;
  const [from, to] = whole ? [0, rows.length] : [Math.min(range[0], rows.length), Math.min(range[1], rows.length)];
  const space = (count: number) => count > 0 && <tr aria-hidden="true" style={{ height: `${count * ROW}px` }} />;
  return (
    <div class={whole ? "table" : "table long"} ref={box} onScroll={look} tabIndex={0} role="region" aria-label={label}>
      <table aria-rowcount={rows.length + 1}>
        <thead>
          <tr>
            {columns.map((column) => (
              <th key={column.name} scope="col" class={classes(column)}>
                {column.name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {space(from)}
          {rows.slice(from, to).map((row, index) => (
            <tr key={rowKey(row)} aria-rowindex={from + index + 2}>
              {columns.map((column) => (
                <td key={column.name} class={classes(column)}>
                  {column.cell(row)}
                </td>
              ))}
            </tr>
          ))}
          {space(rows.length - to)}
        </tbody>
      </table>
    </div>
  );
}

const classes = (column: { wide?: boolean; figures?: boolean }): string =>
  `${column.wide ? "wide" : ""} ${column.figures ? "figures" : ""}`.trim();
