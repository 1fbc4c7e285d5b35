// One step, or the newest verdicts of a journal: its groups, a row for each prompt, with the samples as small squares.

import { State, to } from "./address.js";
import { empty, h } from "./dom.js";
import { count, fixed, number, share } from "./format.js";
import { source_of, ways } from "./run.js";
import { home } from "./sources.js";
import { faults, mean, table } from "./table.js";

const SORTS = Object.assign(Object.create(null), {
  newest: () => 0, draw: (a, b) => a.draw - b.draw, reward: (a, b) => low(a.reward) - low(b.reward), spread: (a, b) => low(a.spread) - low(b.spread),
  faults: (a, b) => a.faults - b.faults, suspicious: (a, b) => a.suspicious - b.suspicious,
});
const NEWEST = 2000;
const low = (value) => (typeof value === "number" ? value : -Infinity);

/** Where the group of an item, or of a row of groups, is opened; null where it has none. */
export function group_of(of) {
  const where = { source: of.source, step: of.step, phase: of.phase };
  if (typeof of.draw === "number") return to("group", { ...where, draw: of.draw });
  return of.problem ? to("group", { ...where, problem: of.problem }) : null;
}

/** What a group is called. */
export function name_of(of) {
  return typeof of.draw === "number" ? `draw ${of.draw}` : `group ${of.problem}`;
}

/** The trail down to a step. */
export function trail_to(source, step, phase) {
  return [["Runs", to("sources").href], [source.name, home(source).href],
    ...(step === undefined || step === null ? [] : [[`step ${step}${phase === "eval" ? " (eval)" : ""}`, to("step", { source: source.id, step, phase }).href]])];
}

/** A square for each sample: filled by its reward; a fault is an empty, crossed one. */
export function squares(samples) {
  return h("span", { class: "squares" }, samples.map((sample) => {
    const told = sample.fault ? `fault ${sample.fault}` : `reward ${fixed(sample.reward)}${sample.verdict ? `, ${sample.verdict}` : ""}`;
    const kind = sample.fault ? "broken" : sample.reward === null ? "open" : sample.reward > 0 ? "up" : sample.reward < 0 ? "down" : "zero";
    return h("a", {
      class: `square ${kind}`, href: to("item", { id: sample.id }).href, tabindex: -1,
      title: `sample ${sample.sample}: ${told}, ${count(sample.length, "token")}`, "aria-label": `sample ${sample.sample}: ${told}`,
    });
  }));
}

export async function show(state, context) {
  const source = await source_of(state, context);
  const whole = state.one("step") === "";
  const step = whole ? null : Number(state.one("step"));
  const phase = whole ? "" : state.one("phase") || (source.kind === "run" ? "train" : "");
  const groups = await context.get("api/groups", new State().with({ source: source.id, step, phase, ...(whole ? { newest: NEWEST } : {}) }));
  const sort = state.one("sort") || (whole ? "-newest" : "draw");
  const falling = sort.startsWith("-");
  const by = SORTS[sort.replace("-", "")] || SORTS.draw;
  groups.sort((a, b) => (falling ? by(b, a) : by(a, b)));
  const sorted = (name) => ({
    sort: state.with({ sort: sort === `-${name}` ? name : `-${name}` }).href,
    sorted: sort.replace("-", "") === name ? (falling ? "falling" : "rising") : null,
  });
  const items = groups.reduce((sum, each) => sum + each.items, 0);
  const judged = groups.reduce((sum, each) => sum + each.judged, 0);
  const beside = (other) => to("step", { source: source.id, step: other, phase, sort: state.one("sort") }).href;
  return {
    title: whole ? "groups" : `step ${step}${phase === "eval" ? " (eval)" : ""}`, trail: trail_to(source), live: true,
    keys: whole ? {} : { "[": () => press("a.before"), "]": () => press("a.after") },
    parts: [
      whole && ways(source, "step"),
      h("div", { class: "bar" },
        !whole && [other_step("before", step - 1, step > 0 && beside(step - 1)), other_step("after", step + 1, !(step >= source.step) && beside(step + 1))],
        !whole && phase && h("a", { class: "button", href: beside_phase(source, step, phase) }, phase === "eval" ? "training" : "evaluation"),
        h("a", { class: "button", href: to("items", { source: source.id, step_from: step, step_to: step, phase }).href }, "as a list"),
        !whole && source.kind === "run" && h("a", { class: "button", href: to("timeline", { source: source.id, step }).href }, "timeline"),
        h("span", { class: "sum" }, `${count(groups.length, "group")}, ${count(items, "item")}, ${number(judged)} judged`,
          items > judged && h("span", { class: "fault" }, count(items - judged, "fault")))),
      groups.length > 0 && h("p", { class: "legend" }, [["up", "reward above 0"], ["zero", "0"], ["down", "below 0"], ["broken", "fault: not judged"]].map(([kind, label]) => (
        h("span", { class: "key" }, h("span", { class: `square ${kind}`, "aria-hidden": "true" }), label)))),
      groups.length ? table([
        groups.some((row) => typeof row.draw === "number") ? { label: "draw", numeric: true, ...sorted("draw"), cell: (row) => number(row.draw) }
          : { label: "group", text: true, cell: (row) => h("span", { class: "short" }, row.problem || "alone") },
        { label: "question", text: true, class: "grow", cell: (row) => h("span", { class: "clip" }, row.question || row.problem || "–") },
        groups.some((row) => typeof row.draw === "number") && { label: "problem", text: true, cell: (row) => h("span", { class: "short" }, row.problem || "–") },
        { label: "samples", cell: (row) => squares(row.samples || []) },
        { label: "reward", numeric: true, title: "mean / judgements", ...sorted("reward"), cell: (row) => mean(row.reward, row.judged) },
        { label: "spread", numeric: true, title: "deviation of the rewards: without one there is nothing to learn", ...sorted("spread"), cell: (row) => fixed(row.spread) },
        { label: "faults", numeric: true, ...sorted("faults"), cell: (row) => faults(row.faults ?? row.items - row.judged, row.items) },
        { label: "suspicious", numeric: true, ...sorted("suspicious"), cell: (row) => h("span", { class: row.suspicious ? "flag suspicion" : "none" }, number(row.suspicious)) },
      ], groups, { href: (row) => (group_of(row) || to("item", { id: row.samples[0].id })).href, key: (row) => row.draw ?? row.samples[0].id })
        : empty(source.indexed < 1 ? `Nothing of this step is indexed yet: indexed ${share(source.indexed)}.`
          : whole ? "Nothing was judged yet." : source.kind === "run" ? "No rollout of this step is kept. A long run thins its old steps: RUN/rollouts/thinned.json says which."
            : "The journal has no verdict of this step."),
      whole && items >= NEWEST && h("p", { class: "hint" }, `The newest ${number(NEWEST)} verdicts: the list and its filters reach all.`),
    ],
  };
}

function press(selector) {
  const link = document.querySelector(selector);
  return link ? link.click() : false;
}

function other_step(name, step, href) {
  const words = name === "before" ? `← step ${Math.max(0, step)}` : `step ${step} →`;
  return href ? h("a", { class: `button ${name}`, href }, words) : h("span", { class: "button off", "aria-disabled": "true" }, words);
}

function beside_phase(source, step, phase) {
  return to("step", { source: source.id, step, phase: phase === "eval" ? "train" : "eval" }).href;
}
