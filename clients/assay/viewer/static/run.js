// One run: its metrics as curves, and its steps. A step leads to its groups.

import { go, State, to } from "./address.js";
import { lines } from "./charts.js";
import { empty, h, section } from "./dom.js";
import { ago, count, duration, moment, number, plain, share } from "./format.js";
import { problems, STATES, status } from "./sources.js";
import { faults, mean, table } from "./table.js";

const FIRST = [
  ["reward", "reward_std"], ["correct"], ["fault_ratio"], ["response_length", "response_length_p95"], ["truncated"],
  ["gold_proxy", "gold_reward", "gold_gap"], ["keep_rate", "signal_ratio"], ["entropy"], ["kl"], ["grad_norm"], ["clip_ratio", "clip_ratio_high"], ["episodes_turns", "episodes_calls"], ["step_s", "seconds"],
];
const SHARES = /ratio|rate$|^correct$|^truncated$|_share$/;

/** A run by its id, or an error that says what to do. */
export async function source_of(state, context) {
  const all = await context.sources();
  const source = all.get(state.one("source"));
  if (!source) throw new Error(`"${state.one("source")}" is not among the sources. It may have been moved: see Runs.`);
  return source;
}

/** Links to the other views of a source. */
export function ways(source, here) {
  const all = source.kind === "run"
    ? [["run", "Curves and steps"], ["timeline", "Timeline"], ["items", "Items"], ["verdicts", "Verdicts"], ["notes", "Notes"]]
    : [["verdicts", "Verdicts"], ["step", "Groups"], ...(source.step === null || source.step === undefined ? [] : [["run", "Steps"]]), ["items", "Items"], ["notes", "Notes"]];
  return h("nav", { class: "ways", "aria-label": `Views of this ${source.kind}` }, all.map(([view, label]) => h("a", {
    href: to(view, { source: source.id }).href, "aria-current": view === here ? "page" : null,
  }, label)));
}

export async function show(state, context) {
  const source = await source_of(state, context);
  const phase = state.one("phase");
  const names = FIRST.flat();
  const metrics = source.kind === "run" && context.get("api/metrics", new State().with({ source: source.id, name: names }));
  const steps = context.get("api/steps", new State().with({ source: source.id }));
  const open = (step) => go(to("step", { source: source.id, step, phase: phase || "train" }));
  return {
    title: source.name, trail: [["Runs", to("sources").href]], live: true,
    parts: [
      ways(source, "run"), facts(source), problems([source]),
      source.kind === "run" && context.later(metrics, (answer) => curves(answer, open, source, context), "Reading metrics…"),
      context.later(steps, (rows) => section("Steps", steps_table(state, source, rows)), "Reading steps…"),
    ],
  };
}

function facts(source) {
  const told = source.about || {};
  const all = [
    ["state", [status(source), ": ", h("span", { class: "about" }, STATES.get(`${source.kind} ${source.state}`))]],
    ["step", source.steps ? `${number(source.step)} of ${number(source.steps)}` : number(source.step)],
    ["items", source.indexed < 1 ? `${number(source.items)}, indexed ${share(source.indexed)}` : number(source.items)],
    ["began", moment(told.started || source.first_s)], ["last", ago(source.last_s)],
    ...["preset", "model", "data", "verifier", "seed"].map((name) => [name, told[name] !== undefined && h("span", { title: plain(told[name]) }, plain(told[name]).split("/").pop())]),
  ].filter(([, value]) => value && value !== "–");
  return h("dl", { class: "facts" }, all.map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value))));
}

function chart(group, by, open) {
  const there = group.filter((name) => (by.get(name) || []).some(([, value]) => value !== null));
  if (!there.length) return null;
  const rate = there.every((name) => SHARES.test(name));
  return lines(there.join(", "), there.map((name, index) => ({ label: name, tone: `tone${index}`, points: by.get(name) })),
    { pick: open, bare: true, low: rate ? 0 : undefined, format: rate ? share : number });
}

function curves(answer, open, source, context) {
  const by = new Map(answer.series.map((each) => [each.name, each.points]));
  const shown = FIRST.map((group) => chart(group, by, open)).filter(Boolean);
  if (!shown.length) return empty("No metrics yet: they appear with the first step.");
  const names = new Set(FIRST.flat());
  const rest = (answer.names || []).filter((name) => !names.has(name));
  const more = rest.length > 0 && h("details", {
    "data-key": "all metrics",
    ontoggle: async (event) => {
      const box = event.currentTarget;
      if (!box.open || box.dataset.read) return;
      box.dataset.read = "1";
      box.append(context.later(context.get("api/metrics", new State().with({ source: source.id, name: rest })), (all) => {
        const found = new Map(all.series.map((each) => [each.name, each.points]));
        const drawn = rest.map((name) => chart([name], found, open)).filter(Boolean);
        return h("div", { class: "charts" }, drawn.length ? drawn : empty("None of them was measured in this run."));
      }));
    },
  }, h("summary", {}, `${count(rest.length, "more metric")}`));
  return section("Curves", h("div", { class: "charts" }, shown), more);
}

function steps_table(state, source, rows) {
  const phases = [...new Set(rows.map((row) => row.phase).filter(Boolean))];
  const phase = state.one("phase");
  const kept = rows.filter((row) => !phase || row.phase === phase)
    .sort((a, b) => b.step - a.step || String(a.phase).localeCompare(String(b.phase)));
  if (!rows.length) {
    return empty(source.indexed < 1 ? `Rollouts are being indexed (${share(source.indexed)}): steps appear here as they are read.`
      : source.kind === "run" ? "This run kept no rollouts: run.rollouts = \"all\" in its config records them."
        : "These verdicts carry no step: the trainer's labels would say it.");
  }
  const chips = phases.length > 1 && h("div", { class: "chips", role: "group", "aria-label": "phase" },
    [["", "all"], ...phases.map((each) => [each, each])].map(([value, label]) => h("a", {
      class: `chip${phase === value ? " on" : ""}`, href: state.with({ phase: value }).href, "aria-current": phase === value ? "true" : null,
    }, label)));
  return [chips, table([
    { label: "step", numeric: true, cell: (row) => number(row.step) },
    phases.length > 0 && { label: "phase", cell: (row) => h("span", { class: `phase${row.phase === "eval" ? " eval" : ""}` }, row.phase) },
    { label: "items", numeric: true, cell: (row) => number(row.items) },
    { label: "reward", numeric: true, title: "mean / judgements", cell: (row) => mean(row.reward, row.judged) },
    { label: "faults", numeric: true, cell: (row) => faults(row.faults, row.items) },
    { label: "suspicious", numeric: true, cell: (row) => (row.suspicious ? h("a", {
      class: "flag suspicion", href: to("items", { source: source.id, step_from: row.step, step_to: row.step, phase: row.phase, suspicion: "any" }).href,
    }, number(row.suspicious)) : h("span", { class: "none" }, "0")) },
    { label: "length", numeric: true, title: "mean tokens", cell: (row) => number(row.length, 0) },
    { label: "cut", numeric: true, title: "share cut at the limit", cell: (row) => share(row.items ? row.truncated / row.items : null) },
    { label: "trained", numeric: true, title: "share of the policy's own tokens in the loss", cell: (row) => (row.phase === "eval" ? h("span", { class: "none" }, "–") : share(row.trained)) },
    { label: "judging", numeric: true, title: "seconds of judging, all items together", cell: (row) => duration(row.seconds) },
  ], kept, {
    href: (row) => to("step", { source: source.id, step: row.step, phase: row.phase }).href,
    key: (row) => `${row.step} ${row.phase}`,
  })];
}
