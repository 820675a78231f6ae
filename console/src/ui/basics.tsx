// Small parts that every view is made of.
import type { ComponentChildren, TargetedEvent } from "preact";
import { useState } from "preact/hooks";
import { Refused } from "../api";
import { time, ago } from "../format";
import { link } from "../route";
import type { ErrorDetail, Warning } from "../schema";

const GOOD = ["active", "running", "ready", "done", "masked"];
const BUSY = ["linking", "provisioning", "queued", "undoing", "pending", "masking", "unlinking", "waiting", "on_demand"];
const BAD = ["failed", "failing", "disconnected"];

function tone(state: string): string {
  if (GOOD.includes(state)) return "good";
  if (BAD.includes(state)) return "bad";
  return BUSY.includes(state) ? "busy" : "quiet";
}

/** A state, in words and colour. */
export function State({ of }: { of: string }) {
  return <span class={`state ${tone(of)}`}>{of.replaceAll("_", " ")}</span>;
}

/** What went wrong, and its fix. */
export function Failure({ of }: { of: Error | ErrorDetail | null | undefined }) {
  if (!of) return null;
  const hint = "hint" in of ? String(of.hint) : "";
  return (
    <div class="failure" role="alert">
      <strong>{of.message}</strong>
      {hint && <div>{hint}</div>}
    </div>
  );
}

/** What should be looked at, and what to do about it. */
export function Warnings({ of }: { of: Warning[] | undefined }) {
  return (
    <>
      {(of ?? []).map(({ message, hint }) => (
        <p class="warn" key={message}>
          {message}; {hint}
        </p>
      ))}
    </>
  );
}

/** Links to several objects, told apart. */
export function Links({ place, of }: { place: string; of: string[] }) {
  return (
    <>
      {of.map((name, index) => (
        <span key={name}>
          {index > 0 && ", "}
          <a href={link(place, name)}>{name}</a>
        </span>
      ))}
    </>
  );
}

export function Time({ at }: { at: string | null | undefined }) {
  if (!at) return <>–</>;
  return (
    <time dateTime={at} title={`${at} (${ago(at)})`}>
      {time(at)}
    </time>
  );
}

/** Puts a text on the clipboard; `of` may have to be asked for first. */
export function Copy({ of, what, children }: { of: string | (() => Promise<string>); what: string; children?: string }) {
  const [said, say] = useState("");
  const copy = async () => {
    try {
      const text = typeof of === "string" ? of : await of();
      await navigator.clipboard.writeText(text);
      say("copied");
    } catch (error) {
      say(error instanceof Refused ? error.message : "the browser does not allow it");
    }
    setTimeout(() => say(""), 2500);
  };
  const shown = said || (children ?? "Copy");
  return (
    <button type="button" class="small" onClick={copy} aria-label={`${shown}: ${what}`}>
      <span aria-live="polite">{shown}</span>
    </button>
  );
}

export function Card({ title, children, class: kind = "", actions }: { title?: string; children: ComponentChildren; class?: string; actions?: ComponentChildren }) {
  return (
    <section class={`card ${kind}`} aria-label={title}>
      {title && (
        <header>
          <h2>{title}</h2>
          {actions}
        </header>
      )}
      {children}
    </section>
  );
}

/** A secret that the engine tells once. */
export function Once({ title, text, what, onHide }: { title: string; text: string; what: string; onHide: () => void }) {
  return (
    <Card title={title}>
      <p>It is shown only now.</p>
      <p class="buttons">
        <code class="long">{text}</code>
        <Copy of={text} what={what} />
        <button type="button" class="small" onClick={onHide}>
          Hide
        </button>
      </p>
    </Card>
  );
}

/** Names and values. */
export function Facts({ of }: { of: [string, ComponentChildren][] }) {
  return (
    <dl class="facts">
      {of
        .filter(([, value]) => value !== null && value !== undefined && value !== "" && value !== false)
        .map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ))}
    </dl>
  );
}

export function Figure({ name, value, more, href }: { name: string; value: ComponentChildren; more?: ComponentChildren; href?: string }) {
  const inside = (
    <>
      <span class="name">{name}</span>
      <span class="value">{value}</span>
      {more && <span class="more">{more}</span>}
    </>
  );
  return href ? (
    <a class="figure" href={href}>
      {inside}
    </a>
  ) : (
    <div class="figure">{inside}</div>
  );
}

/** How much of something is used. */
export function Meter({ part, whole, label, scarce = false, kind = "" }: { part: number; whole: number; label: string; scarce?: boolean; kind?: string }) {
  const share = whole > 0 ? Math.min(1, part / whole) : 0;
  return (
    <div class={`meter ${kind} ${scarce && share > 0.9 ? "bad" : ""}`} title={label} role="meter" aria-label={label} aria-valuemin={0} aria-valuemax={100} aria-valuenow={Math.round(share * 100)}>
      <div style={{ width: `${share * 100}%` }} />
    </div>
  );
}

export function Empty({ children }: { children: ComponentChildren }) {
  return <p class="empty">{children}</p>;
}

export function Page({ title, lead, actions, children }: { title: ComponentChildren; lead?: ComponentChildren; actions?: ComponentChildren; children: ComponentChildren }) {
  return (
    <>
      <header class="page">
        <div>
          <h1 tabIndex={-1}>{title}</h1>
          {lead && <p>{lead}</p>}
        </div>
        {actions && <div class="actions">{actions}</div>}
      </header>
      {children}
    </>
  );
}

export function Search({ value, onInput, label }: { value: string; onInput: (text: string) => void; label: string }) {
  const input = (event: TargetedEvent<HTMLInputElement>) => onInput(event.currentTarget.value);
  return <input type="search" class="search" value={value} onInput={input} aria-label={label} placeholder={label} />;
}
