import { render } from "preact";
import { openSession, token } from "./api";
import { App } from "./app";
import { follow } from "./route";
import { signInFailure } from "./views/sign-in";
import "./style.css";
import "./drawn.css";

/** A link that signs in: the code leaves the address before anything else is done. */
async function useLink(): Promise<void> {
  const code = /^#code=([0-9a-f]+)$/.exec(location.hash)?.[1];
  if (!code) return;
  history.replaceState(null, "", location.pathname + "#/");
  follow();
  try {
    await openSession(code);
  } catch (error) {
    // Somebody who is signed in already stays so.
    if (token.value === null) signInFailure.set(error as Error);
  }
}

void useLink().then(() => render(<App />, document.getElementById("app") as HTMLElement));
// A link that is opened in a tab where the console is open changes only what is behind `#`.
addEventListener("hashchange", () => void useLink());
