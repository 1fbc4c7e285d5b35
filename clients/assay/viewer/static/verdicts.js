// What the verifiers say: a curve for each, with gaps where nothing was judged; suspicions and faults counted.

import { go, to } from "./address.js";
import { lines, tone } from "./charts.js";
import { empty, h, section } from "./dom.js";
import { number, share } from "./format.js";
import { chosen, facets, search } from "./filters.js";
import { bar_charts } from "./items.js";
import { ways } from "./run.js";
import { table } from "./table.js";

const BY = ["verifier", "source", "phase", "version"];

export async function show(state, context) {
  const sources = await context.sources();
  const filter = state.filter();
  const by = BY.includes(state.one("by")) ? state.one("by") : "verifier";
  const told = await context.get("api/facets", filter);
  const steps = told.steps && told.steps[0] !== null && told.steps[0] !== undefined && told.steps[0] !== told.steps[1];
  const x = state.one("x") || (steps ? "step" : "time");
  const curve = (y) => context.get("api/curves", filter.with({ x, by, y }));
  const [rewards, faults_, lengths, suspicions] = ["reward", "faults", "length", "suspicions"].map(curve);
  const total = (told.verifiers || []).reduce((sum, [, n]) => sum + n, 0);
  const switches = (name, all, now) => h("div", { class: "facet" }, h("span", { class: "facet-name" }, name), h("div", { class: "chips", role: "group" }, all.map((each) => h("a", {
    class: `chip${each === now ? " on" : ""}`, href: state.with({ [name]: each }).href, "aria-current": each === now ? "true" : null,
  }, each))));
  const narrow = (name) => (from, until) => go(filter.with({ view: "items", [`${name}_from`]: from, [`${name}_to`]: until }));
  const source = state.all("source").length === 1 ? sources.get(state.one("source")) : null;
  const label = (key) => (by === "source" ? (sources.get(key) || { name: key }).name : key || "(none)");
  const draw = (title, unit, options) => (answer) => lines(title, answer.series.map((each, index) => ({
    label: label(each.key), tone: tone(index), of: each.items,
    points: answer.bins.map((at, number_) => [at, each.values[number_]]),
  })), {
    unit, time: x === "time", x, height: 200, ...options,
    pick: (at) => go(filter.with({ view: "items", ...around(at, answer.bins, x) })),
  });
  return {
    title: source ? `verdicts of ${source.name}` : "Verdicts", live: true,
    trail: source ? [["Runs", to("sources").href], ...(source.kind === "run" ? [[source.name, to("run", { source: source.id }).href]] : [])] : [["Runs", to("sources").href]],
    parts: [
      source && ways(source, "verdicts"),
      h("div", { class: "bar" }, search(state.with({ view: "items" })), h("span", { class: "sum" }, `${number(total)} items with a verifier`),
        h("a", { class: "button", href: filter.with({ view: "items" }).href }, "as a list"),
        h("a", { class: "button", href: filter.with({ view: "compare" }).href }, "compare two")),
      chosen(state),
      facets(state, told, sources),
      h("div", { class: "bar" }, switches("by", BY, by), switches("x", ["step", "time"], x)),
      total || (told.faults || []).length ? h("div", { class: "charts wide" },
        context.later(rewards, draw("reward", "mean of the judgements")),
        context.later(faults_, draw("faults", "share of items without a judgement", { low: 0, format: share })),
        context.later(suspicions, draw("suspicions", "share of items", { low: 0, format: share })),
        context.later(lengths, draw("length", "mean"))) : empty("Nothing was judged under this filter."),
      h("div", { class: "columns" },
        counts("Verifiers", told.verifiers, state, "verifier", total),
        counts("Suspicions", told.suspicions, state, "suspicion", total),
        counts("Faults by reason", told.faults, state, "fault", total),
        counts("Verdicts", told.verdicts, state, "verdict", total)),
      section("Distribution of rewards", h("div", { class: "charts" }, context.later(context.get("api/histogram", filter.with({ of: "reward", by: "verifier" })), (bars) => bar_charts("reward", bars, narrow("reward"))))),
      section("Distribution of lengths", h("div", { class: "charts" }, context.later(context.get("api/histogram", filter.with({ of: "length", by: "verifier" })), (bars) => bar_charts("length", bars, narrow("length"))))),
    ],
  };
}

/** The range of x that a bin stands for. */
function around(at, bins, x) {
  const index = bins.indexOf(at);
  const wide = bins.length > 1 ? bins[1] - bins[0] : 1;
  const [from, until] = [at - wide / 2, bins[index] + wide / 2];
  return x === "step" ? { step_from: Math.ceil(from), step_to: Math.max(Math.ceil(from), Math.ceil(until) - 1) } : { time_from: from.toFixed(3), time_to: until.toFixed(3) };
}

function counts(title, all, state, name, total) {
  const rows = (all || []).filter(([value]) => value !== null && value !== "");
  const kind = { fault: "fault", suspicion: "flag suspicion" }[name];
  return section(title, rows.length ? table([
    { label: name, text: true, cell: ([value]) => h("span", { class: kind }, value) },
    { label: "items", numeric: true, cell: ([, n]) => number(n) },
    { label: "share", numeric: true, cell: ([, n]) => (total ? share(n / total) : "–") },
  ], rows, { href: ([value]) => state.filter().with({ view: "items", [name]: value }).href, key: ([value]) => `${name} ${value}`, class: "slim" })
    : h("p", { class: "none" }, name === "suspicion" ? "No verifier was suspicious." : name === "fault" ? "Everything was judged." : "None."));
}
