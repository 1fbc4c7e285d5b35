// The list of rollouts and verdicts under a filter, with histograms that narrow it.

import { go, State, to } from "./address.js";
import { histogram, tone } from "./charts.js";
import { empty, h } from "./dom.js";
import { duration, moment, number, share, signed } from "./format.js";
import { chosen, facets, search } from "./filters.js";
import { ways } from "./run.js";
import { flags, reward, table, verdict } from "./table.js";

const PAGE = 100;

/** Where an item is opened from a list, and comes back to. */
export function item_of(state, item) {
  return to("item", { id: item.id, from: state.query });
}

/** The rows of a list of items. */
export function rows(state, items, sources, sorts = null) {
  const sort = state.one("sort");
  const by = (name) => (sorts ? {
    sort: state.with({ sort: sort === `-${name}` ? name : `-${name}`, after: null }).href,
    sorted: sort.replace("-", "") === name ? (sort.startsWith("-") ? "falling" : "rising") : null,
  } : {});
  const several = new Set(items.map((each) => each.source)).size > 1;
  const any = (name) => items.some((each) => each[name] !== null && each[name] !== undefined && each[name] !== "" && each[name] !== 0);
  const named = (id) => (sources.get(id) || { name: id }).name;
  return table([
    { label: any("step") ? "step" : "time", numeric: true, ...by(any("step") ? "step" : "time"), cell: (row) => (any("step") ? [number(row.step), row.phase === "eval" && h("span", { class: "phase eval" }, "eval")] : moment(row.time_s)) },
    several && { label: "source", text: true, cell: (row) => h("span", { class: "short" }, named(row.source)) },
    { label: "reward", numeric: true, ...by("reward"), cell: (row) => reward(row) },
    { label: "verdict", cell: (row) => (row.fault ? h("span", { class: "none" }, "–") : verdict(row.verdict)) },
    { label: "answer", text: true, cell: (row) => h("code", { class: "short" }, row.answer ?? "") },
    { label: "prompt", text: true, class: "half", cell: (row) => h("span", { class: "clip" }, row.prompt || row.problem || "") },
    { label: "response", text: true, class: "half", cell: (row) => h("span", { class: "clip" }, row.preview || "") },
    { label: "length", numeric: true, ...by("length"), cell: (row) => number(row.length) },
    any("advantage") && { label: "adv.", title: "mean advantage of the tokens in the loss", numeric: true, ...by("advantage"), cell: (row) => signed(row.advantage, 2) },
    any("seconds") && { label: "judging", numeric: true, ...by("seconds"), cell: (row) => duration(row.seconds) },
    any("verifier") && { label: "verifier", text: true, cell: (row) => h("span", { class: "short" }, row.verifier) },
    { label: "", class: "flagged", cell: flags },
  ], items, { href: (row) => item_of(state, row).href, key: (row) => row.id, kind: (row) => (row.fault ? "broken" : null), class: "items" });
}

export async function show(state, context) {
  const sources = await context.sources();
  const filter = state.filter();
  const asked = state.filter("sort", "after").with({ limit: PAGE });
  const list = context.get("api/items", asked);
  const told = context.get("api/facets", filter);
  const bars = (of) => context.get("api/histogram", filter.with({ of }));
  const narrow = (name) => (from, until) => go(state.with({ [`${name}_from`]: from, [`${name}_to`]: until, after: null }));
  const answer = await list;
  remember(state, answer.items);
  const source = state.all("source").length === 1 ? sources.get(state.one("source")) : null;
  const indexing = [...sources.values()].filter((each) => each.indexed < 1 && (!state.all("source").length || state.all("source").includes(each.id)));
  if (state.one("search")) queueMicrotask(() => requestAnimationFrame(() => {
    const field = document.querySelector("main input[type=search]");
    if (field) field.focus();
  }));
  return {
    title: source ? `items of ${source.name}` : "Items", live: !state.one("after"),
    trail: source && source.kind === "run" ? [["Runs", to("sources").href], [source.name, to("run", { source: source.id }).href]] : [["Runs", to("sources").href]],
    parts: [
      source && ways(source, "items"),
      h("div", { class: "bar" }, search(state),
        h("span", { class: "sum" }, answer.total === null || answer.total === undefined ? `${number(answer.items.length)}${answer.more ? "+" : ""} items` : `${number(answer.total)} items`),
        h("a", { class: "button", href: `./export?${filter.query}`, download: "assay-items.jsonl", title: "JSON Lines that assay score reads" }, "export"),
        h("a", { class: "button", href: filter.with({ view: "verdicts" }).href }, "as curves")),
      chosen(state),
      context.later(told, (all) => facets(state, all, sources), "Counting…"),
      h("div", { class: "charts low" },
        context.later(bars("reward"), (bar) => bar_charts("reward", bar, narrow("reward"))),
        context.later(bars("length"), (bar) => bar_charts("length", bar, narrow("length")))),
      answer.items.length ? rows(state, answer.items, sources, true) : nothing(state, indexing),
      h("div", { class: "bar" },
        state.one("after") && h("a", { class: "button", href: state.with({ after: null }).href }, "first page"),
        answer.more && h("a", { class: "button", rel: "next", href: state.with({ after: answer.more }).href }, "next page →"),
        indexing.length > 0 && h("span", { class: "hint" }, `indexed ${share(Math.min(...indexing.map((each) => each.indexed)))}: more will follow`)),
    ],
  };
}

/** Keeps the order of a list, for whoever steps from item to item. */
function remember(state, items) {
  try {
    sessionStorage.setItem(`list:${state.query}`, JSON.stringify(items.map((each) => each.id)));
  } catch {
    sessionStorage.clear();
  }
}

/** A histogram for each series. */
export function bar_charts(of, told, pick) {
  return told.series.map((each, index) => histogram(told.series.length > 1 ? `${of}, ${each.key}` : of, told.edges, each.counts, { pick, tone: tone(told.series.length > 1 ? index : 0) }));
}

function nothing(state, indexing) {
  if (indexing.length) return empty(`Nothing yet: the index is at ${share(Math.min(...indexing.map((each) => each.indexed)))}. This page follows it.`);
  if (state.filtered) return empty("No item has all of this. ", h("a", { href: new State().with({ view: "items", source: state.all("source") }).href }, "Clear the filter"), ", or take out one of the chips above.");
  return empty("There are no items here yet: a run writes them with each step, a journal with each verdict.");
}
