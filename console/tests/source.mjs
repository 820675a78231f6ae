import { execFileSync } from "node:child_process";

/** SQL on the source that flows link, as its superuser. */
export function psqlSource(sql) {
  execFileSync("psql", [process.env.SOURCE_SUPERUSER_URI, "-AtXqc", sql]);
}
