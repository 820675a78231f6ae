// Dark or light: as the system has it, until somebody chooses.
import { Cell } from "./cell";

type Theme = "dark" | "light";
const KEY = "offshoot-theme";
const system = matchMedia("(prefers-color-scheme: dark)");

const chosen = (): Theme | null => {
  const kept = localStorage.getItem(KEY);
  return kept === "dark" || kept === "light" ? kept : null;
};
const present = (): Theme => chosen() ?? (system.matches ? "dark" : "light");

export const theme = new Cell<Theme>(present());

function show(): void {
  document.documentElement.dataset["theme"] = present();
  theme.set(present());
}

export function toggleTheme(): void {
  localStorage.setItem(KEY, theme.value === "dark" ? "light" : "dark");
  show();
}

system.addEventListener("change", show);
show();

/** A colour of the style sheet, for what is drawn. */
export const colour = (name: string): string => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
