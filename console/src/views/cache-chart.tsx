// Reads of VDBs each second, from what the event stream told since this page was opened.
import { useEffect, useRef, useState } from "preact/hooks";
import { useCell } from "../cell";
import { status } from "../events";
import { count } from "../format";
import { Chart } from "../ui/chart";

interface Sample {
  at: number;
  hits: number;
  misses: number;
}

const SAMPLES_MAX = 300;
const samples: Sample[] = [];
let last: { at: number; hits: number; misses: number } | undefined;

status.follow(() => {
  const now = status.value;
  if (!now) {
    samples.length = 0;
    last = undefined;
    return;
  }
  const { hits, misses } = now.cache;
  const at = Date.now() / 1000;
  if (last && hits >= last.hits && at - last.at > 0.5) {
    const seconds = at - last.at;
    samples.push({ at, hits: (hits - last.hits) / seconds, misses: (misses - last.misses) / seconds });
    if (samples.length > SAMPLES_MAX) samples.shift();
  }
  last = { at, hits, misses };
});

export function CacheChart() {
  useCell(status);
  const [, draw] = useState(0);
  const mounted = useRef(true);
  useEffect(() => {
    const timer = setInterval(() => mounted.current && draw((n) => n + 1), 5000);
    return () => {
      mounted.current = false;
      clearInterval(timer);
    };
  }, []);
  if (samples.length < 2) return <p class="empty">reads per second are drawn from now on</p>;
  return (
    <>
      <Chart
        label="reads per second"
        times={samples.map((one) => one.at)}
        series={[
          { label: "from the cache", values: samples.map((one) => one.hits), colour: "accent" },
          { label: "from the disk", values: samples.map((one) => one.misses), colour: "warn" },
        ]}
        height={110}
        format={(value) => count(Math.round(value))}
      />
      <p class="legend">
        <span class="key accent" /> reads per second from the cache <span class="key warn" /> from the disk
      </p>
    </>
  );
}
