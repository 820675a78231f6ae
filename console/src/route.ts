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
addEventListener("hashchange", () => route.set(read()));

export const link = (...parts: string[]): string => `#/${parts.map(encodeURIComponent).join("/")}`;
export const go = (...parts: string[]): void => {
  location.hash = link(...parts);
};
