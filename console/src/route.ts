// Which view the address names: `#/vdbs/dev`.
import { Cell } from "./cell";

const read = (): string[] => {
  const parts = location.hash.replace(/^#\/?/, "").split("?")[0]!.split("/").filter(Boolean);
  return parts.map((part) => {
    try {
      return decodeURIComponent(part);
    } catch {
      return part;
    }
  });
};

export const route = new Cell<string[]>(read());
/** Has the view follow the address, also where that was replaced, which browsers tell nobody. */
export const follow = (): void => route.set(read());
addEventListener("hashchange", follow);

export const link = (...parts: string[]): string => `#/${parts.map(encodeURIComponent).join("/")}`;
export const go = (...parts: string[]): void => {
  location.hash = link(...parts);
};
