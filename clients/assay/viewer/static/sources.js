// All sources: runs beside one another. Several ticked ones are drawn over one another.

import { go, State, to } from "./address.js";
import { lines, spark, swatch, tone } from "./charts.js";
import { add, empty, h, section } from "./dom.js";
import { ago, count, number, plain, share } from "./format.js";
import { table } from "./table.js";

const SHOWN = ["reward", "correct", "fault_ratio", "response_length"];
export const STATES = new Map(Object.entries({
  "run live": "it grows now", "run ended": "by itself", "run died": "without an end: killed, or a copy of what it was then", "run unknown": "nothing says how it ended",
  "journal live": "a server writes to it", "journal ended": "no server writes to it now", "journal unknown": "a copy, or a journal that no server has open",
}));

/** The state of a source as a mark. */
export function status(source) {
  return h("span", { class: `status ${/^[a-z]+$/.test(source.state) ? source.state : ""}`, title: STATES.get(`${source.kind} ${source.state}`) || "" }, source.state);
}

/** Where a source is opened. */
export function home(source) {
  return source.kind === "run" ? to("run", { source: source.id }) : to("verdicts", { source: source.id });
}

export async function show(state, context) {
  const sources = [...(await context.sources()).values()];
  if (!sources.length) {
    return { title: "Runs", live: true, parts: [empty("No run and no journal was found here. Start ",
      h("code", {}, "assay view FOLDER"), " with the folder that your runs lie in, a run's own folder, or a journal.sqlite.")] };
  }
  const runs = sources.filter((each) => each.kind === "run");
  const ticked = state.all("tick").filter((id) => runs.some((each) => each.id === id));
  const series = runs.length ? context.get("api/metrics", new State().with({ source: runs.map((each) => each.id), name: SHOWN })) : null;
  const cells = new Map();
  const cell = (id, name) => {
    const slot = h("span", { class: "later" });
    cells.set(`${id} ${name}`, slot);
    return slot;
  };
  const columns = [
    runs.length > 1 && { label: "", class: "tick", cell: (row) => (row.kind !== "run" ? null : h("label", { class: `key ${tone(ticked.indexOf(row.id))}` },
      h("input", {
        type: "checkbox", checked: ticked.includes(row.id), "aria-label": `draw ${row.name}`,
        onchange: (event) => go(state.with({ tick: event.target.checked ? [...ticked, row.id] : ticked.filter((id) => id !== row.id) }), true),
      }), ticked.includes(row.id) && swatch())) },
    { label: "source", text: true, class: "name", cell: (row) => (row.inside ? h("span", { class: "inside" }, "journal.sqlite") : row.name) },
    { label: "state", class: "whole", cell: status },
    { label: "reward", class: "sparkline", cell: (row) => (row.kind === "run" ? cell(row.id, "reward") : h("span", { class: "of" }, row.inside ? "the same judgements" : "journal")) },
    { label: "correct", class: "sparkline", cell: (row) => (row.kind === "run" ? cell(row.id, "correct") : null) },
    { label: "without judgement", title: "share of the last step", numeric: true, cell: (row) => (row.kind === "run" ? cell(row.id, "fault_ratio") : null) },
    { label: "step", numeric: true, cell: (row) => (row.step === null || row.step === undefined ? "–" : row.steps ? `${number(row.step)} / ${number(row.steps)}` : number(row.step)) },
    { label: "items", numeric: true, cell: (row) => [row.indexed < 1 && h("span", { class: "of" }, `${share(row.indexed)} of `), number(row.items)] },
    { label: "last", numeric: true, cell: (row) => ago(row.last_s) },
    { label: "what", class: "wide", cell: (row) => about(row) },
  ];
  const sheet = table(columns, sources, { href: (row) => home(row).href, key: (row) => row.id, lead: runs.length > 1 ? 1 : 0 });
  const parts = [problems(sources), sheet];
  if (series) {
    context.pending.push(series.then((answer) => {
      for (const each of answer.series) {
        const slot = cells.get(`${each.source} ${each.name}`);
        if (!slot) continue;
        const known = each.points.filter(([, value]) => value !== null);
        const last = known.length ? known[known.length - 1][1] : null;
        if (each.name === "fault_ratio") {
          add(slot, [last ? h("span", { class: "fault" }, share(last)) : h("span", { class: "none" }, last === null ? "–" : "0")]);
        } else {
          add(slot, [spark(each.points, each.name), h("span", { class: "num" }, each.name === "correct" ? share(last) : number(last))]);
        }
      }
    }, () => {}));
    if (ticked.length) parts.push(context.later(overlaid(state, context, ticked, runs), (built) => built));
    else if (runs.length > 1) parts.push(h("p", { class: "hint" }, "Tick runs to lay their curves over one another."));
  }
  return { title: "Runs", trail: [], live: true, parts };
}

function about(row) {
  const told = row.about || {};
  const all = [told.preset, told.verifier, told.model, told.data].filter(Boolean).map((each) => plain(each));
  return all.length ? h("span", { class: "about", title: all.join("\n") }, all.map((each) => each.split("/").pop()).join(" · ")) : null;
}

/** What is wrong with sources, said once each. */
export function problems(sources) {
  const all = sources.flatMap((source) => (source.problems || []).map((text) => [source, text]));
  if (!all.length) return null;
  return h("ul", { class: "problems" }, all.map(([source, text]) => h("li", {}, h("b", {}, source.name), `: ${text}`)));
}

async function overlaid(state, context, ticked, runs) {
  const asked = state.all("metric");
  const names = asked.length ? asked : SHOWN;
  const answer = await context.get("api/metrics", new State().with({ source: ticked, name: names }));
  const label = new Map(runs.map((each) => [each.id, each.name]));
  const charts = names.map((name) => lines(name, ticked.map((id, index) => {
    const found = answer.series.find((each) => each.source === id && each.name === name);
    return { label: label.get(id), tone: tone(index), points: found ? found.points : [] };
  }), { height: 190 }));
  const other = (answer.names || []).filter((name) => !names.includes(name));
  return section(`${count(ticked.length, "run")} over one another`,
    h("div", { class: "chips" }, names.map((name) => h("a", {
      class: "chip on", href: state.with({ metric: names.filter((each) => each !== name) }).href, title: "leave out",
    }, name, " ×")),
    other.length > 0 && h("select", {
      "aria-label": "add a metric", onchange: (event) => go(state.with({ metric: [...names, event.target.value] }), true),
    }, h("option", { value: "" }, "add a metric…"), other.map((name) => h("option", { value: name }, name)))),
    h("div", { class: "charts wide" }, charts));
}
