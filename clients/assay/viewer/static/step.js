// One step: its groups, a row for each prompt, with the samples as small squares.

import { State, to } from "./address.js";
import { empty, h } from "./dom.js";
import { count, fixed, number, share } from "./format.js";
import { source_of } from "./run.js";
import { faults, mean, table } from "./table.js";

const SORTS = {
  draw: (a, b) => a.draw - b.draw, reward: (a, b) => low(a.reward) - low(b.reward), spread: (a, b) => low(a.spread) - low(b.spread),
  faults: (a, b) => a.faults - b.faults, suspicious: (a, b) => a.suspicious - b.suspicious,
};
const low = (value) => (typeof value === "number" ? value : -Infinity);

/** Where a group is opened. */
export function group_of(source, step, phase, draw) {
  return to("group", { source, step, phase, draw });
}

/** The trail down to a step. */
export function trail_to(source, step, phase) {
  return [["Runs", to("sources").href], [source.name, to("run", { source: source.id }).href],
    ...(step === undefined ? [] : [[`step ${step}${phase === "eval" ? " (eval)" : ""}`, to("step", { source: source.id, step, phase }).href]])];
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
  const step = Number(state.one("step"));
  const phase = state.one("phase") || "train";
  const groups = await context.get("api/groups", new State().with({ source: source.id, step, phase }));
  const sort = state.one("sort") || "draw";
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
    title: `step ${step}${phase === "eval" ? " (eval)" : ""}`, trail: trail_to(source), live: true,
    keys: { "[": () => step > 0 && document.querySelector("a.before").click(), "]": () => document.querySelector("a.after").click() },
    parts: [
      h("div", { class: "bar" },
        h("a", { class: "button before", href: beside(Math.max(0, step - 1)) }, "← step ", Math.max(0, step - 1)),
        h("a", { class: "button after", href: beside(step + 1) }, "step ", step + 1, " →"),
        h("a", { class: "button", href: beside_phase(source, step, phase) }, phase === "eval" ? "training" : "evaluation"),
        h("a", { class: "button", href: to("items", { source: source.id, step_from: step, step_to: step, phase }).href }, "as a list"),
        h("a", { class: "button", href: to("timeline", { source: source.id, step }).href }, "timeline"),
        h("span", { class: "sum" }, `${count(groups.length, "group")}, ${count(items, "item")}, ${number(judged)} judged`,
          items > judged && h("span", { class: "fault" }, count(items - judged, "fault")))),
      groups.length > 0 && h("p", { class: "legend" }, [["up", "reward above 0"], ["zero", "0"], ["down", "below 0"], ["broken", "fault: not judged"]].map(([kind, label]) => (
        h("span", { class: "key" }, h("span", { class: `square ${kind}`, "aria-hidden": "true" }), label)))),
      groups.length ? table([
        { label: "draw", numeric: true, ...sorted("draw"), cell: (row) => number(row.draw) },
        { label: "question", text: true, class: "grow", cell: (row) => h("span", { class: "clip" }, row.question || row.problem || "–") },
        { label: "problem", text: true, cell: (row) => h("span", { class: "short" }, row.problem || "–") },
        { label: "samples", cell: (row) => squares(row.samples || []) },
        { label: "reward", numeric: true, title: "mean / judgements", ...sorted("reward"), cell: (row) => mean(row.reward, row.judged) },
        { label: "spread", numeric: true, title: "deviation of the rewards: without one there is nothing to learn", ...sorted("spread"), cell: (row) => fixed(row.spread) },
        { label: "faults", numeric: true, ...sorted("faults"), cell: (row) => faults(row.faults ?? row.items - row.judged, row.items) },
        { label: "suspicious", numeric: true, ...sorted("suspicious"), cell: (row) => h("span", { class: row.suspicious ? "flag suspicion" : "none" }, number(row.suspicious)) },
      ], groups, { href: (row) => group_of(source.id, step, phase, row.draw).href, key: (row) => row.draw })
        : empty(source.indexed < 1 ? `Nothing of this step is indexed yet: indexed ${share(source.indexed)}.`
          : "No rollout of this step is kept. A long run thins its old steps: RUN/rollouts/thinned.json says which."),
    ],
  };
}

function beside_phase(source, step, phase) {
  return to("step", { source: source.id, step, phase: phase === "eval" ? "train" : "eval" }).href;
}
