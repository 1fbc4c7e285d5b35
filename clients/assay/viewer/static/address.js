// The state of a page is its query string: any state has a link, and the browser's back goes back.

/** Fields of a filter, as the API reads them. */
export const FILTER = [
  "source", "phase", "verifier", "version", "verdict", "fault", "suspicion", "appeal", "environment", "ending",
  "problem", "draw", "step_from", "step_to", "time_from", "time_to", "reward_from", "reward_to",
  "length_from", "length_to", "truncated", "text", "label", "note",
];

/** A state: names with lists of values. */
export class State {
  constructor(query = "") {
    this.fields = new Map();
    for (const [name, value] of new URLSearchParams(query)) {
      if (value !== "") this.fields.set(name, [...(this.fields.get(name) || []), value]);
    }
  }

  get view() {
    return this.one("view") || "sources";
  }

  one(name) {
    return (this.fields.get(name) || [""])[0];
  }

  all(name) {
    return this.fields.get(name) || [];
  }

  /** Another state with some fields changed; null or "" takes one out. */
  with(changes) {
    const other = new State();
    other.fields = new Map(this.fields);
    for (const [name, value] of Object.entries(changes)) {
      const values = (Array.isArray(value) ? value : [value])
        .filter((each) => each !== null && each !== undefined && each !== "").map(String);
      if (values.length) other.fields.set(name, values);
      else other.fields.delete(name);
    }
    return other;
  }

  /** The fields of a filter alone, with others by name. */
  filter(...more) {
    const other = new State();
    for (const name of [...FILTER, ...more]) {
      if (this.fields.has(name)) other.fields.set(name, this.fields.get(name));
    }
    return other;
  }

  get filtered() {
    return FILTER.some((name) => name !== "source" && this.fields.has(name));
  }

  get query() {
    const parts = new URLSearchParams();
    for (const [name, values] of this.fields) for (const value of values) parts.append(name, value);
    return parts.toString();
  }

  get href() {
    return `./?${this.query}`;
  }
}

/** A state from plain fields. */
export function to(view, fields = {}) {
  return new State().with({ view, ...fields });
}

export function current() {
  return new State(location.search);
}

let changed = () => {};

/** Calls `listener` whenever the state is another one. */
export function follow(listener) {
  changed = listener;
  addEventListener("popstate", () => changed());
  document.addEventListener("click", (event) => {
    const link = event.target.closest ? event.target.closest("a[href^='./?']") : null;
    if (!link || event.defaultPrevented || event.button !== 0) return;
    if (event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
    event.preventDefault();
    go(new State(link.getAttribute("href").slice(3)));
  });
}

/** Goes to a state; `replace` where going back should skip the one before. */
export function go(state, replace = false) {
  if (replace) history.replaceState({}, "", state.href);
  else history.pushState({}, "", state.href);
  changed();
}
