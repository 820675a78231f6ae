// Figures and times as people read them.

const BYTES = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];

export function bytes(count: number | null | undefined): string {
  if (count === null || count === undefined) return "–";
  let value = count;
  let unit = 0;
  while (value >= 1024 && unit < BYTES.length - 1) {
    value /= 1024;
    unit++;
  }
  return `${unit === 0 || value >= 100 ? Math.round(value) : value.toFixed(1)} ${BYTES[unit]}`;
}

export function duration(ms: number | null | undefined): string {
  if (ms === null || ms === undefined) return "–";
  if (ms < 1000) return `${Math.round(ms)} ms`;
  const seconds = ms / 1000;
  if (seconds < 60) return `${seconds.toFixed(seconds < 10 ? 1 : 0)} s`;
  const units: [string, number][] = [
    ["d", 86400],
    ["h", 3600],
    ["min", 60],
    ["s", 1],
  ];
  let left = Math.round(seconds);
  const parts: string[] = [];
  for (const [unit, size] of units) {
    const whole = Math.floor(left / size);
    left -= whole * size;
    if (whole > 0 && parts.length < 2) parts.push(`${whole} ${unit}`);
    else if (parts.length > 0) break;
  }
  return parts.join(" ");
}

/** As somebody types it. */
export const asTyped = (ms: number): string => (ms === 0 ? "0" : duration(ms)).replaceAll(/(\d) (d|h|min|s|ms)/g, "$1$2");

/** Names and values in one line. */
export const pairs = (of: Record<string, string> | undefined): string => Object.entries(of ?? {}).map(([key, value]) => `${key}=${value}`).join(", ");

/** A duration as `7d`, `90min` or `1h 30min`; undefined where it is none. */
export function parseDuration(text: string): number | undefined {
  const units: Record<string, number> = { ms: 1, s: 1000, m: 60_000, min: 60_000, h: 3_600_000, d: 86_400_000, w: 604_800_000 };
  let rest = text.trim().toLowerCase();
  if (rest === "0") return 0;
  let sum = 0;
  let some = false;
  while (rest) {
    const part = /^([\d.]+)\s*(ms|min|[smhdw])\s*/.exec(rest);
    if (!part) return undefined;
    sum += Number(part[1]) * (units[part[2] as string] as number);
    rest = rest.slice(part[0].length);
    some = true;
  }
  return some && Number.isFinite(sum) ? Math.round(sum) : undefined;
}

/** A size as `4GiB` or `512 MiB`; undefined where it is none. */
export function parseSize(text: string): number | undefined {
  const part = /^([\d.]+)\s*([kmgtp]?)(i?b)?$/i.exec(text.trim());
  if (!part) return undefined;
  const power = " kmgtp".indexOf((part[2] || " ").toLowerCase());
  const size = Number(part[1]) * 1024 ** power;
  return Number.isFinite(size) ? Math.round(size) : undefined;
}

const two = (value: number): string => String(value).padStart(2, "0");

/** By the clock of this browser, as `2026-11-21 14:03:27`. */
export function time(at: string | number | null | undefined): string {
  if (at === null || at === undefined) return "–";
  const date = new Date(at);
  const day = `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`;
  return `${day} ${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`;
}

/** How long ago. */
export function ago(at: string | null | undefined): string {
  if (!at) return "–";
  const ms = Date.now() - Date.parse(at);
  return ms < 1500 ? "now" : `${duration(ms)} ago`;
}

export const percent = (ratio: number): string => `${(ratio * 100).toFixed(ratio >= 0.995 || ratio === 0 ? 0 : 1)} %`;
export const count = (value: number): string => value.toLocaleString("en");
export const words = (word: string): string => word.replaceAll("_", " ");
