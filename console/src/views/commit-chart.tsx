// Commits per second of a source, above its time line and on its scale.
import { useMemo } from "preact/hooks";
import { useAnswer } from "../api";
import type { CommitCounts } from "../schema";
import { Chart } from "../ui/chart";
import type { View } from "./timeline-draw";

const PARTS = 160;

export function CommitChart({ name, view }: { name: string; view: View }) {
  // Whole buckets, so that following the newest moment does not ask for another stretch each time.
  const wide = Math.max(1000, Math.ceil((view.to - view.from) / PARTS / 1000) * 1000);
  const from = Math.floor(view.from / wide) * wide;
  const to = Math.ceil(view.to / wide) * wide;
  const query = `from=${encodeURIComponent(new Date(from).toISOString())}&to=${encodeURIComponent(new Date(to).toISOString())}&parts=${Math.round((to - from) / wide)}`;
  const { data } = useAnswer<CommitCounts>(`timeflows/${encodeURIComponent(name)}/commits?${query}`);
  const drawn = useMemo(() => {
    const start = data ? Date.parse(data.from) / 1000 : 0;
    const step = data ? data.part_ms / 1000 : 1;
    const counts = data?.counts ?? [];
    return { times: counts.map((_, index) => start + (index + 0.5) * step), rates: counts.map((count) => count / step) };
  }, [data]);
  if (!data) return <div class="chart" style={{ height: "56px" }} />;
  const most = Math.max(0, ...drawn.rates);
  return (
    <figure class="commits">
      <figcaption>commits per second, at most {rate(most)}</figcaption>
      <Chart label="commits per second" times={drawn.times} series={[{ label: "now", values: drawn.rates, colour: "accent" }]} height={56} format={rate} from={view.from / 1000} to={view.to / 1000} axes={false} />
    </figure>
  );
}

const rate = (value: number): string => (value >= 10 || value === 0 ? Math.round(value).toString() : value.toFixed(1));
