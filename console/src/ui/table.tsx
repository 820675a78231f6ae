// A table that draws only the rows that are seen, so that ten thousand are as quick as ten.
import type { ComponentChildren, TargetedMouseEvent } from "preact";
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
  const [more, setMore] = useState(false);
  const whole = rows.length <= WHOLE;
  const look = () => {
    const element = box.current;
    if (!element) return;
    setMore(element.scrollLeft + element.clientWidth < element.scrollWidth - 2);
    if (whole) return;
    const from = Math.max(0, Math.floor(element.scrollTop / ROW) - MARGIN);
    const to = from + Math.ceil(element.clientHeight / ROW) + 2 * MARGIN;
    setRange((before) => (before[0] === from && before[1] === to ? before : [from, to]));
  };
  useEffect(() => {
    look();
    if (!box.current) return;
    const observer = new ResizeObserver(look);
    observer.observe(box.current);
    return () => observer.disconnect();
  }, [rows.length, whole]);
  if (rows.length === 0) return <p class="empty">{empty ?? "nothing here"}</p>;
  const [from, to] = whole ? [0, rows.length] : [Math.min(range[0], rows.length), Math.min(range[1], rows.length)];
  const space = (count: number) => count > 0 && <tr aria-hidden="true" style={{ height: `${count * ROW}px` }} />;
  return (
    <div class={`table ${whole ? "" : "long"} ${more ? "more" : ""}`} ref={box} onScroll={look} onMouseOver={tellCut} tabIndex={0} role="region" aria-label={label}>
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

/** What does not fit into its cell is told when it is pointed at. */
function tellCut({ target }: TargetedMouseEvent<HTMLElement>): void {
  const cell = (target as HTMLElement).closest<HTMLElement>("td");
  const cut = cell?.querySelector<HTMLElement>(".tree > a, .tree > s") ?? cell;
  if (cut && !cut.querySelector("[title]")) cut.title = cut.scrollWidth > cut.clientWidth ? cut.innerText : "";
}

const classes = (column: { wide?: boolean; figures?: boolean }): string =>
  `${column.wide ? "wide" : ""} ${column.figures ? "figures" : ""}`.trim();
