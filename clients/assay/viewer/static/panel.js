// What was judged of a sample: verdict, components, reference, tests, faults, times, the ending.

import { h } from "./dom.js";
import { duration, fixed, plain } from "./format.js";
import { reward, verdict } from "./table.js";
import { folded, long_text, program, span_of } from "./texts.js";

const WHAT_TO_DO = "Nothing is known of this answer, and it is in no mean and no loss. The reason says whose matter it is: docs, Errors.";

function pairs(rows) {
  const kept = rows.filter(([, value]) => value !== null && value !== undefined && value !== false && value !== "");
  return kept.length ? h("dl", { class: "pairs" }, kept.map(([name, value]) => [h("dt", {}, name), h("dd", {}, value)])) : null;
}

/** The fault, in full. */
export function fault_of(whole) {
  const fault = whole.fault;
  if (!fault) return null;
  return h("section", { class: "box broken", "aria-label": "fault" },
    h("h2", {}, h("span", { class: "fault" }, "fault ", h("span", {}, fault.reason))),
    long_text(fault.message || ""), pairs([["code", fault.code], ...Object.entries(fault.metadata || {}).map(([name, value]) => [name, plain(value)])]),
    h("p", { class: "hint" }, fault.action || fault.what_to_do || WHAT_TO_DO));
}

/** The verdict with its parts. */
export function panel(whole) {
  const told = whole.verdict;
  if (!told) return whole.fault ? null : h("section", { class: "box" }, h("h2", {}, "Not judged"), h("p", { class: "hint" }, "No judgement is recorded for this sample."));
  const parts = Array.isArray(told.components) ? told.components : Object.entries(told.components || {}).map(([name, value]) => (
    value && typeof value === "object" ? { name, ...value } : { name, reward: value }));
  return h("section", { class: "box", "aria-label": "verdict" },
    h("h2", {}, "Verdict ", verdict(told.verdict), " ", h("span", { class: "big" }, reward({ reward: told.reward }))),
    pairs([
      ["on appeal", told.appeal && appeal(told.appeal)],
      ["extracted answer", told.extracted_answer !== null && told.extracted_answer !== undefined && h("code", { class: "extracted" }, told.extracted_answer || "(empty)")],
      ["reference", whole.reference && reference(whole.reference)],
      ["verifier", told.verifier && [told.verifier, told.version && h("span", { class: "of" }, `@${told.version}`)]],
      ["suspicions", (told.suspicions || []).length > 0 && told.suspicions.map((each) => h("span", { class: "flag suspicion" }, typeof each === "string" ? each : each.reason || JSON.stringify(each)))],
      ["explanation", told.explanation && long_text(told.explanation)],
      ["from cache", told.from_cache && "yes"],
      ["in the queue", typeof told.queue_s === "number" && duration(told.queue_s)],
      ["judging", typeof told.execution_s === "number" && duration(told.execution_s)],
    ]),
    parts.length > 0 && h("table", { class: "parts" }, h("thead", {}, h("tr", {}, h("th", {}, "component"), h("th", { class: "n" }, "score"), parts.some((each) => each.weight !== undefined) && h("th", { class: "n" }, "weight"))),
      h("tbody", {}, parts.map((each) => h("tr", {}, h("td", {}, each.name, each.explanation && h("div", { class: "of" }, each.explanation)),
        h("td", { class: "n" }, each.fault ? h("span", { class: "fault" }, "fault") : fixed(each.reward ?? each.score ?? each.value ?? (typeof each === "number" ? each : null))),
        parts.some((one) => one.weight !== undefined) && h("td", { class: "n" }, fixed(each.weight, 2)))))),
    spans(told),
    whole.reference && whole.reference.parts && whole.reference.parts.length > 0 && folded("reference, decoded", whole.reference.parts, "reference parts"),
    told.parameters && Object.keys(told.parameters).length > 0 && folded("parameters", told.parameters, "parameters"));
}

function appeal(told) {
  const said = (one) => [verdict(one.verdict), " ", reward({ reward: one.reward }), h("span", { class: "of" }, ` ${one.verifier}${one.version ? `@${one.version}` : ""}`)];
  return [said(told.first), " \u2192 ", said(told.second), h("div", { class: "of" }, `${told.component}: ${told.drawn ? `drawn by chance (${fixed(told.probability)})` : "its first verdict is appealed"}${told.first.verdict === told.second.verdict ? "" : "; the verdict changed"}`)];
}

function reference(given) {
  const text = given.text === null || given.text === undefined ? "" : String(given.text);
  if (!text) return given.kind || null;
  return text.length > 300 ? folded(given.kind || "reference", text, "reference") : h("code", {}, text);
}

function spans(told) {
  const all = (told.spans || []).map(span_of);
  if (!all.length) return null;
  return h("p", { class: "hint" }, `${all.length} spans are marked in the text: `, h("mark", { class: "up" }, "+ earned"), " ", h("mark", { class: "down" }, "\u2212 lost"));
}

/** The tests of a program, readable. */
export function tests_of(whole) {
  const tests = whole.tests || [];
  if (!tests.length) return null;
  return h("section", { class: "box", "aria-label": "tests" }, h("h2", {}, `Tests `, h("span", { class: "of" }, tests.length)),
    tests.map((test, index) => {
      const failed = test.passed === false || test.verdict === "failed";
      const { name, kind, passed, pieces, ...rest } = test;
      return h("details", { "data-key": `test ${index}`, open: tests.length === 1 || failed, class: "test" },
        h("summary", {}, passed === undefined || passed === null ? "" : verdict(passed ? "passed" : "failed"), " ", name || `test ${index + 1}`, kind && h("span", { class: "of" }, kind)),
        pieces && program(pieces),
        Object.entries(rest).filter(([, value]) => value !== null && value !== undefined && value !== "").map(([label, value]) => (
          typeof value === "string" ? h("div", {}, h("div", { class: "of" }, label), long_text(value))
            : Array.isArray(value) && value.every((each) => Array.isArray(each) && each.length === 2) && value.length ? program(value)
              : h("div", {}, h("span", { class: "of" }, `${label} `), plain(value)))));
    }));
}

/** How it ended, and whether that is trusted and trains. */
export function ending_of(whole) {
  if (!whole.ending && typeof whole.trains !== "boolean" && typeof whole.trusted !== "boolean") return null;
  const say = (value, yes, no) => (value === null || value === undefined ? null : h("span", { class: value ? "" : "flag" }, value ? yes : no));
  return h("section", { class: "turn ending", "aria-label": "ending" }, h("header", {}, h("b", { class: "role" }, "end"),
    whole.ending && h("span", {}, whole.ending), say(whole.trusted, "trusted", "not trusted"), say(whole.trains, "trains", "does not train")));
}
