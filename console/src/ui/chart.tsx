// A chart of figures over time, by uPlot.
import { useEffect, useRef } from "preact/hooks";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { useCell } from "../cell";
import { colour, theme } from "../theme";

export interface Series {
  label: string;
  values: (number | null)[];
  colour: string;
}

interface Props {
  label: string;
  /** Seconds since 1970. */
  times: number[];
  series: Series[];
  height: number;
  format: (value: number) => string;
  /** The stretch that is shown, in seconds; the data's where absent. */
  from?: number;
  to?: number;
  axes?: boolean;
}

export function Chart({ label, times, series, height, format, from, to, axes = true }: Props) {
  const box = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | undefined>(undefined);
  const look = useCell(theme);
  const data = [times, ...series.map((one) => one.values)] as uPlot.AlignedData;
  const range = (): [number, number] => [from ?? times[0] ?? 0, to ?? times[times.length - 1] ?? 1];
  useEffect(() => {
    const element = box.current;
    if (!element) return;
    const axis = { stroke: colour("soft"), grid: { stroke: colour("line"), width: 1 }, ticks: { show: false }, font: "11px sans-serif" };
    const made = new uPlot(
      {
        width: Math.max(80, element.clientWidth),
        height,
        padding: axes ? [8, 4, 0, 0] : [4, 0, 0, 0],
        legend: { show: false },
        cursor: { show: false },
        scales: { x: { time: true, range }, y: { range: (_, low, high) => [Math.min(0, low ?? 0), Math.max(high ?? 1, 1e-9) * 1.1] } },
        axes: axes
          ? [{ ...axis, size: 22 }, { ...axis, size: 58, values: (_, ticks) => ticks.map(format) }]
          : [{ show: false }, { show: false }],
        series: [
          {},
          ...series.map((one) => ({ label: one.label, stroke: colour(one.colour), width: 1.5, fill: `${colour(one.colour)}22`, points: { show: false } })),
        ],
      },
      data,
      element,
    );
    plot.current = made;
    const observer = new ResizeObserver(() => made.setSize({ width: Math.max(80, element.clientWidth), height }));
    observer.observe(element);
    return () => {
      observer.disconnect();
      made.destroy();
      plot.current = undefined;
    };
  }, [look, height, axes, series.length, from, to]);
  useEffect(() => plot.current?.setData(data), [times, series]);
  const now = series.map((one) => {
    const value = one.values[one.values.length - 1];
    return `${one.label} ${value === null || value === undefined ? "–" : format(value)}`;
  });
  return <div ref={box} class="chart" role="img" aria-label={`${label}: ${now.join(", ")}`} />;
}
