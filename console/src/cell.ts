// A value that views follow.
import { useEffect, useState } from "preact/hooks";

export class Cell<T> {
  private listeners = new Set<() => void>();
  constructor(private held: T) {}

  get value(): T {
    return this.held;
  }

  set(value: T): void {
    this.held = value;
    for (const listener of [...this.listeners]) listener();
  }

  follow(listener: () => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }
}

/** The present value; the view is drawn again when it changes. */
export function useCell<T>(cell: Cell<T>): T {
  const [, draw] = useState(0);
  useEffect(() => cell.follow(() => draw((count) => count + 1)), [cell]);
  return cell.value;
}
