// Questions before something is done: one form for all of them.
import type { ComponentChildren, TargetedSubmitEvent } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { Refused } from "../api";
import { Cell, useCell } from "../cell";
import { Failure } from "./basics";
import { ToastList, Toasts } from "./toasts";

export interface Field {
  name: string;
  label: string;
  kind?: "text" | "password" | "number" | "check" | "choice" | "lines" | "choices" | "file";
  /** Of several choices, with commas between them. */
  value?: string | boolean;
  choices?: [value: string, label: string][];
  /** How high a field of lines is. */
  rows?: number;
  hint?: string;
  required?: boolean;
  /** Shown when the part of this name is opened. */
  fold?: string;
}

/** What was typed, by the names of the fields; `on`: whether it is checked, `file`: what was chosen. */
export type Values = Record<string, string> & { on: (name: string) => boolean; file: (name: string) => File | undefined };

export interface Question {
  title: string;
  text?: ComponentChildren;
  fields?: Field[];
  /** What the button says. */
  verb: string;
  dangerous?: boolean;
  /** Does it; what it throws is shown and the dialog stays. */
  done: (values: Values) => Promise<unknown>;
}

const asked = new Cell<Question | null>(null);

/** Opens a dialog. */
export const question = (one: Question): void => asked.set(one);

/** The dialog that is open, and what is told meanwhile. */
export function Dialogs() {
  const one = useCell(asked);
  return (
    <>
      {one && <Form key={one.title} question={one} />}
      <Toasts elsewhere={one !== null} />
    </>
  );
}

function Form({ question }: { question: Question }) {
  const box = useRef<HTMLDialogElement>(null);
  const [failure, setFailure] = useState<Error>();
  const [busy, setBusy] = useState(false);
  useEffect(() => {
    const before = document.activeElement as HTMLElement | null;
    box.current?.showModal();
    return () => before?.focus?.();
  }, []);
  const submit = async (event: TargetedSubmitEvent<HTMLFormElement>) => {
    event.preventDefault();
    const data = new FormData(event.currentTarget);
    const values: Record<string, string> = {};
    for (const field of question.fields ?? []) {
      const all = data.getAll(field.name).map(String);
      values[field.name] = field.kind === "choices" ? all.join(",") : (all[0] ?? "").trim();
    }
    setBusy(true);
    setFailure(undefined);
    try {
      const open = question.fields?.find((field) => field.kind === "choices" && field.required && !values[field.name]);
      if (open) throw new Refused(`nothing is chosen: ${open.label}`, "tick at least one", 400);
      const on = (name: string) => values[name] === "on";
      const file = (name: string) => data.getAll(name).find((one): one is File => one instanceof File && one.name !== "");
      await question.done(Object.assign(values, { on, file }) as Values);
      asked.set(null);
    } catch (error) {
      setFailure(error as Error);
      setBusy(false);
    }
  };
  return (
    <dialog ref={box} onClose={() => asked.set(null)} aria-labelledby="dialog-title">
      <form onSubmit={submit} noValidate={false}>
        <h2 id="dialog-title">{question.title}</h2>
        {question.text && <div class="text">{question.text}</div>}
        <Fields of={question.fields ?? []} />
        <Failure of={failure} />
        <footer>
          <button type="button" onClick={() => box.current?.close()}>
            Cancel
          </button>
          <button type="submit" class={question.dangerous ? "danger" : "primary"} disabled={busy}>
            {question.verb}
          </button>
        </footer>
      </form>
      <ToastList onFollow={() => box.current?.close()} />
    </dialog>
  );
}

/** Fields one below the other; those of a part that is folded are below its name. */
function Fields({ of }: { of: Field[] }) {
  const inputs = (some: Field[]) => some.map((field) => <Input key={field.name} field={field} />);
  const folds = [...new Set(of.map((field) => field.fold).filter((fold) => fold !== undefined))];
  return (
    <>
      {inputs(of.filter((field) => field.fold === undefined))}
      {folds.map((fold) => (
        <details key={fold}>
          <summary>{fold}</summary>
          {inputs(of.filter((field) => field.fold === fold))}
        </details>
      ))}
    </>
  );
}

function Input({ field }: { field: Field }) {
  const id = `field-${field.name}`;
  const hint = field.hint ? `${id}-hint` : undefined;
  const shared = { id, name: field.name, required: field.required, "aria-describedby": hint };
  const text = typeof field.value === "string" ? field.value : "";
  const control = () => {
    switch (field.kind) {
      case "choice":
        return (
          <select {...shared}>
            {field.choices?.map(([value, label]) => (
              <option key={value} value={value} selected={value === text}>
                {label}
              </option>
            ))}
          </select>
        );
      case "choices":
        return (
          <fieldset id={id} class="choices" aria-labelledby={`${id}-label`} aria-describedby={hint}>
            {field.choices?.length === 0 && <small>there is none</small>}
            {field.choices?.map(([value, label]) => (
              <label key={value}>
                <input type="checkbox" name={field.name} value={value} defaultChecked={text.split(",").includes(value)} />
                <span>{label}</span>
              </label>
            ))}
          </fieldset>
        );
      case "lines":
        return <textarea {...shared} rows={field.rows ?? 10} spellcheck={false} defaultValue={text} />;
      default:
        return <input {...shared} type={(field.kind ?? "text") as "text"} defaultValue={text} autocomplete="off" spellcheck={false} />;
    }
  };
  if (field.kind === "check") {
    return (
      <label class="check" for={id}>
        <input {...shared} type="checkbox" defaultChecked={field.value === true} />
        <span>{field.label}</span>
        {field.hint && <small id={hint}>{field.hint}</small>}
      </label>
    );
  }
  return (
    <div class="field">
      {field.kind === "choices" ? (
        <span class="label" id={`${id}-label`}>
          {field.label}
        </span>
      ) : (
        <label for={id}>{field.label}</label>
      )}
      {control()}
      {field.hint && <small id={hint}>{field.hint}</small>}
    </div>
  );
}
