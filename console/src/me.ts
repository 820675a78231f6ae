// Who is signed in, and what that role may do: only to show or leave out what the engine would refuse anyway.
import { get } from "./api";
import { Cell } from "./cell";
import type { ConsoleSession } from "./schema";

export const me = new Cell<ConsoleSession | undefined>(undefined);

export async function learnWho(): Promise<void> {
  me.set(await get<ConsoleSession>("console/session"));
}

const role = (): string => me.value?.role ?? "auditor";
/** Makes and changes VDBs. */
export const mayUse = (): boolean => role() !== "auditor";
/** Runs what VDBs are made from. */
export const mayOperate = (): boolean => ["admin", "operator"].includes(role());
export const mayAdminister = (): boolean => role() === "admin";
export const mayAudit = (): boolean => ["admin", "auditor"].includes(role());
/** Is shown what a VDB of this owner keeps secret; null: it is the administrators'. */
export const ownsSecrets = (owner: string | null): boolean => (owner === null ? mayAdminister() : owner === me.value?.user);
/** Sees what is everybody's. */
export const maySurvey = (): boolean => role() !== "developer";
