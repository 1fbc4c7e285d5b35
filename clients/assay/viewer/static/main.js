// The page: reads the state from the address, has its view built, and keeps it fresh.

import { current, follow, to } from "./address.js";
import { get, pulse } from "./data.js";
import { empty, h, seen } from "./dom.js";
import { count, share } from "./format.js";
import { closeHelp, keys } from "./keys.js";
import * as compare from "./compare.js";
import * as group from "./group.js";
import * as items from "./items.js";
import * as notes from "./notes.js";
import * as run from "./run.js";
import * as sample from "./sample.js";
import * as sources from "./sources.js";
import * as step from "./step.js";
import * as timeline from "./timeline.js";
import * as verdicts from "./verdicts.js";

const VIEWS = new Map(Object.entries({ sources, run, step, group, item: sample, timeline, items, verdicts, compare, notes }));
const TABS = [["sources", "Runs"], ["items", "Items"], ["verdicts", "Verdicts"], ["compare", "Compare"], ["notes", "Notes"]];
const SLOW_MS = 250;

const place = (id) => document.getElementById(id);
let turn = 0;
let page = null;
let known = null;
let stale = false;

/** What a view has to work with: the API, what is known of the sources, parts that come later. */
class Context {
  constructor(number, signal) {
    this.number = number;
    this.signal = signal;
    this.pending = [];
  }

  get(path, state) {
    const answer = get(path, state, this.signal);
    answer.catch(() => {}); // a view that failed for another answer waits for this one no more
    return answer;
  }

  /** The sources by id; asked for once until something changes. */
  async sources() {
    if (!known) known = get("api/sources").catch((error) => { known = null; throw error; });
    return new Map((await known).sources.map((each) => [each.id, each]));
  }

  /** A part that is filled in when its data have come. */
  later(promise, build, waiting = "…") {
    const slot = h("div", { class: "later", "aria-busy": "true" }, h("p", { class: "none" }, waiting));
    this.pending.push(promise.then((data) => {
      slot.replaceChildren(...[build(data)].flat(Infinity).filter(Boolean));
    }, (error) => {
      if (error.name !== "AbortError") slot.replaceChildren(h("p", { class: "problem" }, error.message));
    }).finally(() => slot.removeAttribute("aria-busy")));
    return slot;
  }
}

let stop = new AbortController();

async function render(quiet = false) {
  const number = turn += 1;
  const state = current();
  stop.abort();
  stop = new AbortController();
  const context = new Context(number, stop.signal);
  const view = VIEWS.get(state.view);
  const main = place("main");
  if (!quiet) main.setAttribute("aria-busy", "true");
  const slow = setTimeout(() => {
    if (!quiet && number === turn) main.replaceChildren(empty("Reading…"));
  }, SLOW_MS);
  let next;
  try {
    if (!view) throw new Error(`There is no view "${state.view}". Begin with Runs, above.`);
    next = await view.show(state, context);
    if (quiet) await Promise.allSettled(context.pending);
  } catch (error) {
    if (error.name === "AbortError" || number !== turn) return;
    next = { title: "Not shown", trail: [], parts: [h("p", { class: "problem" }, error.message),
      h("p", {}, h("a", { href: to("sources").href }, "All runs"))] };
    if (quiet) {
      trouble(error);
      return;
    }
  } finally {
    clearTimeout(slow);
  }
  if (number !== turn) return;
  const kept = quiet ? remember(main) : null;
  page = { ...next, state };
  document.title = seen(`${next.title} · Assay`);
  tabs(state);
  trail(next);
  main.replaceChildren(...next.parts.flat(Infinity).filter(Boolean));
  main.removeAttribute("aria-busy");
  main.dataset.view = state.view;
  if (kept) restore(main, kept);
  else await settle(main, state, context);
}

/** After going somewhere: the place on the page where one was, or its top. */
async function settle(main, state, context) {
  const focus = sessionStorage.getItem(`row:${state.query}`);
  if (focus) await Promise.allSettled(context.pending);
  const row = focus && [...main.querySelectorAll("[data-key]")].find((each) => each.dataset.key === focus);
  const link = row && row.querySelector("a.row");
  if (link) {
    link.focus({ preventScroll: true });
    link.scrollIntoView({ block: "center" });
  } else {
    scrollTo(0, 0);
    if (!document.activeElement || document.activeElement === document.body) main.focus({ preventScroll: true });
  }
}

function remember(main) {
  const active = document.activeElement;
  const row = active && active.closest ? active.closest("[data-key]") : null;
  return {
    y: scrollY,
    key: row && main.contains(row) ? row.dataset.key : null,
    open: new Map([...main.querySelectorAll("details[data-key]")].map((each) => [each.dataset.key, each.open])),
  };
}

function restore(main, kept) {
  for (const each of main.querySelectorAll("details[data-key]")) {
    if (kept.open.has(each.dataset.key)) each.open = kept.open.get(each.dataset.key);
  }
  if (kept.key) {
    const row = [...main.querySelectorAll("[data-key]")].find((each) => each.dataset.key === kept.key);
    const link = row && (row.querySelector("a.row") || row);
    if (link) link.focus({ preventScroll: true });
  }
  scrollTo(0, kept.y);
}

function tabs(state) {
  const within = { item: "items", run: "sources", step: "sources", group: "sources", timeline: "sources" };
  const lit = state.view === "item" && !state.one("from") ? "sources" : within[state.view] || state.view;
  const filter = state.filter();
  place("tabs").replaceChildren(h("a", { class: "brand", href: to("sources").href }, "Assay"), ...TABS.map(([name, label]) => {
    const keeps = name !== "sources" && ["items", "verdicts", "compare"].includes(state.view);
    const source = name === "sources" ? {} : { source: state.all("source") };
    const target = keeps && name !== "notes" ? filter.with({ view: name }) : to(name, source);
    return h("a", { href: target.href, "aria-current": lit === name ? "page" : null }, label);
  }));
}

function trail(next) {
  const steps = [...(next.trail || []), [next.title, null]];
  place("trail").replaceChildren(...steps.map(([text, href], index) => [
    index > 0 && h("span", { class: "sep", "aria-hidden": "true" }, "/"),
    href ? h("a", { href }, text) : h("h1", {}, text),
  ]).flat().filter(Boolean));
}

function trouble(error) {
  const box = place("trouble");
  box.hidden = !error;
  box.textContent = error ? error.message : "";
}

/** Says on each page how far the index is, and which sources grow. */
function told(indexed, sources) {
  const shares = Object.entries(indexed || {}).filter(([, part]) => part < 1);
  const parts = Object.values(indexed || {});
  const whole = parts.length ? parts.reduce((sum, each) => sum + each, 0) / parts.length : 1;
  const live = [...sources.values()].filter((each) => each.state === "live");
  place("state").replaceChildren(...[
    shares.length > 0 && h("span", { class: "indexing", title: shares.map(([id, part]) => `${id}: ${share(part)}`).join("\n") },
      h("progress", { max: 1, value: whole, "aria-label": "index" }), ` indexed ${share(Math.min(whole, 0.99))}`),
    live.length > 0 && h("span", { class: "live", title: live.map((each) => each.name).join("\n") }, count(live.length, "live run")),
    h("button", { type: "button", class: "quiet", "aria-label": "Help: keys", onclick: () => keys.help() }, "?"),
  ].filter(Boolean));
}

function busy(main) {
  const active = document.activeElement;
  return main.hasAttribute("aria-busy") || main.querySelector("svg:hover, input:focus, textarea:focus, select:focus") !== null
    || (active && ["INPUT", "TEXTAREA", "SELECT"].includes(active.tagName)) || place("help").open || String(getSelection()) !== "";
}

follow(() => {
  closeHelp();
  render();
});
document.addEventListener("click", (event) => {
  const row = event.target.closest ? event.target.closest("[data-key]") : null;
  if (row && page) sessionStorage.setItem(`row:${page.state.query}`, row.dataset.key);
}, true);
keys.start(() => page, () => document.getElementById("main"));
render();
pulse(async (answer) => {
  // what is known was asked for before all that the page shows
  if (known && (await known).version !== answer.version) {
    known = null;
    stale = true;
  }
  told(answer.indexed, await new Context(0).sources());
  const main = place("main");
  if (stale && page && page.live && !busy(main)) {
    stale = false;
    await render(true);
  }
}, trouble);
