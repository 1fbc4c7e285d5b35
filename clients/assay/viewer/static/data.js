// Asks the API. A failure is an Error whose message says what to do; nothing is invented for it.

const PULSE_MS = 2000;

/** What the API answers at `path`, below the page's own address. */
export async function get(path, state = null, signal = undefined) {
  const query = state ? state.query : "";
  return read(await ask(`./${path}${query ? `?${query}` : ""}`, { signal }));
}

/** Writes a note. */
export async function note(body) {
  return read(await ask("./api/notes", {
    method: "POST",
    headers: { "Content-Type": "application/json", "X-Assay": "1" },
    body: JSON.stringify(body),
  }));
}

async function ask(address, options) {
  try {
    return await fetch(address, { cache: "no-store", ...options });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Error("The viewer does not answer. Is `assay view` still running? Start it again, then reload this page.");
  }
}

async function read(answer) {
  let body = null;
  try {
    body = await answer.json();
  } catch (error) {
    if (error.name === "AbortError") throw error;
  }
  if (answer.ok && body !== null) return body;
  const barred = answer.status === 401 || answer.status === 403;
  const failure = new Error((body && body.detail) || (barred && "The operator's token is asked for: load this page anew, and give it as the password.") || `The viewer answered ${answer.status} ${answer.statusText}. Reload the page.`);
  failure.code = answer.status;
  throw failure;
}

/** Asks every two seconds how far the index is; says so, and says when nobody answers. */
export function pulse(told, trouble) {
  const beat = async () => {
    if (!document.hidden) {
      try {
        const answer = await get("api/pulse");
        trouble(null);
        await told(answer);
      } catch (error) {
        trouble(error);
      }
    }
    setTimeout(beat, PULSE_MS);
  };
  beat();
}
