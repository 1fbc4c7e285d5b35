// The filter: chips from what exists with counts, ranges, text. Its state is the address.

import { FILTER, go } from "./address.js";
import { h } from "./dom.js";
import { moment, number } from "./format.js";

const CHIPS = [
  ["phase", "phases", "phase"], ["verifier", "verifiers", "verifier"], ["version", "versions", "version"], ["verdict", "verdicts", "verdict"],
  ["fault", "faults", "fault"], ["suspicion", "suspicions", "suspicion"], ["appeal", "appeals", "on appeal"], ["environment", "environments", "environment"],
  ["ending", "endings", "ending"], ["note", "notes", "note"],
];
const FEW = 8;
const RANGES = [["step", "step"], ["reward", "reward"], ["length", "length"]];
const NAMES = new Map([["fault any", "any fault"], ["fault none", "judged"], ["suspicion any", "any suspicion"], ["appeal any", "asked"], ["note any", "any note"], ["truncated 0", "not cut"], ["truncated 1", "cut"]]);

/** What is chosen, as chips that take it out again. */
export function chosen(state) {
  const all = FILTER.flatMap((name) => state.all(name).map((value) => [name, value]));
  const kept = all.filter(([name]) => name !== "text");
  if (!kept.length) return null;
  return h("div", { class: "chips chosen", role: "group", "aria-label": "chosen" }, kept.map(([name, value]) => h("a", {
    class: `chip on${name === "fault" && value !== "none" ? " broken" : ""}`, title: "take out",
    href: state.with({ [name]: state.all(name).filter((each) => each !== value), after: null }).href,
  }, h("span", { class: "of" }, name.replace("_", " ")), NAMES.get(`${name} ${value}`) || (name.startsWith("time") ? moment(Number(value)) : value), " ×")),
  h("a", { class: "chip", href: state.with({ ...Object.fromEntries(FILTER.map((name) => [name, null])), after: null }).href }, "clear all"));
}

/** The search field. */
export function search(state) {
  return h("form", {
    class: "search", role: "search", onsubmit: (event) => {
      event.preventDefault();
      const text = event.currentTarget.querySelector("input").value;
      go(state.with({ text, after: null, search: null }));
    },
  }, h("input", { type: "search", name: "text", value: state.one("text"), placeholder: "search in responses, answers, problems  /", "aria-label": "search", autocomplete: "off", spellcheck: "false" }));
}

/** Chips of what exists and ranges. `facets` as the API gives them; `sources` by id. */
export function facets(state, told, sources) {
  const toggle = (name, value) => {
    const had = state.all(name);
    return state.with({ [name]: had.includes(value) ? had.filter((each) => each !== value) : [...had, value], after: null }).href;
  };
  const chip = (name, value, n, label = value) => h("a", {
    class: `chip${state.all(name).includes(String(value)) ? " on" : ""}${name === "fault" && value !== "none" ? " broken" : name === "suspicion" ? " suspicion" : ""}`,
    href: toggle(name, String(value)), "aria-pressed": state.all(name).includes(String(value)) ? "true" : "false", role: "button",
  }, h("span", { class: "value" }, NAMES.get(`${name} ${value}`) || label || "(none)"), n !== null && h("span", { class: "of" }, number(n)));
  const group = (name, label, values) => {
    if (!values.length) return null;
    const on = new Set(state.all(name));
    const few = values.filter(([value], index) => index < FEW || on.has(String(value)));
    const many = values.filter((each) => !few.includes(each));
    return h("div", { class: "facet" }, h("span", { class: "facet-name" }, label), h("div", { class: "chips" },
      few.map(([value, n, text]) => chip(name, value, n, text)),
      many.length > 0 && h("details", { "data-key": `facet ${name}` }, h("summary", {}, `${many.length} more`), h("div", { class: "chips" }, many.map(([value, n, text]) => chip(name, value, n, text))))));
  };
  const own = [...sources.values()];
  return h("details", { class: "facets", "data-key": "facets", open: innerWidth > 700 }, h("summary", {}, "Filters"), h("div", { class: "groups" },
    own.length > 1 && group("source", "source", own.map((each) => [each.id, each.items, each.name])),
    CHIPS.map(([name, key, label]) => {
      const values = (told[key] || []).filter(([value]) => value !== null && value !== "");
      if (name === "fault" && values.length) values.unshift(["none", null], ["any", values.reduce((sum, [, n]) => sum + n, 0)]);
      if (["suspicion", "appeal"].includes(name) && values.length > 1) values.unshift(["any", null]);
      return values.length > 1 || state.all(name).length || ["fault", "suspicion", "appeal", "note"].includes(name) ? group(name, label, values) : null;
    }),
    Object.entries(told.labels || {}).map(([name, values]) => group("label", name, values.map(([value, n]) => [`${name}=${value}`, n, value]))),
    told.problems && told.problems.length > 1 && problems(state, told.problems)),
    ranges(state, told));
}

function problems(state, all) {
  return h("div", { class: "facet" }, h("span", { class: "facet-name" }, "problem"), h("select", {
    "aria-label": "problem", onchange: (event) => go(state.with({ problem: event.target.value, after: null })),
  }, h("option", { value: "" }, `any of the ${all.length >= 50 ? "50 most frequent" : all.length}`),
  all.map(([value, n]) => h("option", { value, selected: state.one("problem") === value }, `${value} (${n})`))));
}

function ranges(state, told) {
  const field = (name, end, limit) => h("input", {
    type: "number", step: "any", name: `${name}_${end}`, value: state.one(`${name}_${end}`), placeholder: limit === null || limit === undefined ? "" : String(+Number(limit).toPrecision(6)),
    "aria-label": `${name} ${end}`,
  });
  const clock = (end) => h("input", { type: "datetime-local", step: 1, name: `time_${end}`, value: local(state.one(`time_${end}`)), "aria-label": `time ${end}` });
  return h("form", {
    class: "ranges", onsubmit: (event) => event.preventDefault(), onchange: (event) => {
      const { name, value, type } = event.target;
      go(state.with({ [name]: type === "datetime-local" && value ? String(new Date(value).getTime() / 1000) : value, after: null }));
    },
  }, RANGES.map(([name, label]) => {
    const limits = told[name === "step" ? "steps" : name] || [];
    if (limits[0] === null || limits[0] === undefined) return null;
    return h("label", { class: "range" }, h("span", { class: "facet-name" }, label), field(name, "from", limits[0]), "to", field(name, "to", limits[1]));
  }), told.time && told.time[0] !== null && h("label", { class: "range" }, h("span", { class: "facet-name" }, "time"), clock("from"), "to", clock("to")));
}

function local(seconds) {
  return seconds ? moment(Number(seconds)).replace(" ", "T") : "";
}
