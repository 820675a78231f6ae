import type { TargetedSubmitEvent } from "preact";
import { useState } from "preact/hooks";
import { openSession, Refused, signedOutBy, signIn, token } from "../api";
import { Cell, useCell } from "../cell";
import { Failure } from "../ui/basics";

/** Why a link did not sign in. */
export const signInFailure = new Cell<Error | undefined>(undefined);

export function SignIn() {
  const failure = useCell(signInFailure);
  const why = useCell(signedOutBy);
  const [busy, setBusy] = useState(false);
  const submit = async (event: TargetedSubmitEvent<HTMLFormElement>) => {
    event.preventDefault();
    const typed = String(new FormData(event.currentTarget).get("secret")).trim();
    const code = /#code=([0-9a-f]+)/.exec(typed)?.[1];
    setBusy(true);
    signInFailure.set(undefined);
    try {
      if (code) await openSession(code);
      else await tryToken(typed);
    } catch (error) {
      signInFailure.set(error as Error);
    }
    setBusy(false);
  };
  return (
    <main class="sign-in">
      <form onSubmit={submit}>
        <h1>
          <img src={document.querySelector<HTMLLinkElement>("link[rel=icon]")?.href ?? ""} alt="" width={36} height={36} /> Offshoot
        </h1>
        <p>
          On the engine's host, <code>offshoot console</code> prints a link that signs in.
        </p>
        <div class="field">
          <label for="secret">Your token, or such a link</label>
          <input id="secret" name="secret" type="password" required autocomplete="off" spellcheck={false} />
          <small>
            An administrator makes a token: <code>offshoot token create --user NAME</code>. It is kept until this tab is closed.
          </small>
        </div>
        {why && !failure && <p role="status" class="warn">{why}</p>}
        <Failure of={failure} />
        <button type="submit" class="primary" disabled={busy}>
          Sign in
        </button>
      </form>
    </main>
  );
}

async function tryToken(typed: string): Promise<void> {
  const answer = await fetch("/api/v1/console/session", {
    headers: { Authorization: `Bearer ${typed}` },
    credentials: "omit",
    cache: "no-store",
  }).catch(() => undefined);
  if (!answer) throw new Refused("the engine does not answer", "is it running?", 0);
  if (!answer.ok) throw new Refused("this is no token of this engine, or it has expired", "ask an administrator for another one", answer.status);
  signIn(typed);
  if (token.value === null) throw new Refused("the browser keeps no data for this page", "allow it to keep session data", 0);
}
