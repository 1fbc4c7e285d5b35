// One sample, or one verdict: turn by turn, with what was judged, and how it ended.

import { go, State, to } from "./address.js";
import { h } from "./dom.js";
import { count, duration, number, share, signed } from "./format.js";
import { title_of } from "./group.js";
import { editor } from "./notes.js";
import { ending_of, fault_of, panel, tests_of } from "./panel.js";
import { status } from "./sources.js";
import { group_of, name_of, trail_to } from "./step.js";
import { flags, reward, verdict } from "./table.js";
import { folded, is_policy, long_text, program, written } from "./texts.js";
import { tokens_of } from "./tokens.js";

const ROLES = new Map(Object.entries({ policy: "policy", assistant: "policy", user: "user", system: "system", tool: "tool", developer: "system", environment: "tool" }));

export async function show(state, context) {
  const id = state.one("id");
  const whole = await context.get("api/item", new State().with({ id }));
  const sources = await context.sources();
  const item = whole.item;
  const source = sources.get(item.source) || { id: item.source, name: item.source || "?" };
  const around = whole.around || {};
  const other = (to_id) => state.with({ id: to_id }).href;
  const group = group_of(item);
  const list = state.one("from");
  const [before, after] = neighbours(list, id) || [around.previous, around.next];
  const trail = list ? [["Items", new State(list).href]]
    : [...trail_to(source, item.step, item.phase), ...(group ? [[name_of(item), group.href]] : [])];
  const shows_tokens = state.one("tokens");
  const step_to = (to_id) => () => (to_id ? go(state.with({ id: to_id })) : false);
  const notes = editor(whole, context);
  return {
    title: title_of(item), trail,
    keys: {
      "[": step_to(before), "]": step_to(after),
      t: () => source.kind === "run" && go(state.with({ tokens: shows_tokens ? null : "advantage" }), true),
      n: () => notes.focus(), ...notes.keys,
    },
    parts: [
      h("div", { class: "bar" },
        step_link("← previous", before, other), step_link("next →", after, other), list && h("span", { class: "of" }, "of the list"),
        (around.group || []).length > 1 && h("span", { class: "pages", role: "group", "aria-label": "samples of this prompt" },
          around.group.map((each, index) => h("a", { class: "page", href: other(each), "aria-current": each === id ? "true" : null, title: `sample ${index} of this prompt` }, index))),
        source.kind === "run" && h("button", { type: "button", class: "button", "aria-pressed": shows_tokens ? "true" : "false", onclick: () => go(state.with({ tokens: shows_tokens ? null : "advantage" }), true) }, "tokens ", h("kbd", {}, "t")),
        group && h("a", { class: "button", href: group.href }, "side by side"),
        item.problem && h("a", { class: "button", href: to("items", { source: item.source, problem: item.problem }).href }, source.kind === "run" ? "same problem" : "same group")),
      summary(item, source),
      h("div", { class: "sample" },
        h("div", { class: "talk" },
          shows_tokens && context.later(context.get("api/tokens", new State().with({ id })), (told) => tokens_of(told, state, whole), "Reading tokens…"),
          conversation(whole),
          ending_of(whole)),
        h("aside", { class: "side", "aria-label": "judgement" },
          fault_of(whole), panel(whole), tests_of(whole), notes.part, similar(id, context), raw(whole))),
    ],
  };
}

/** Those beside an item in the list that it was opened from, if this browser still knows it. */
function neighbours(list, id) {
  const ids = list ? JSON.parse(sessionStorage.getItem(`list:${list}`) || "[]") : [];
  const at = ids.indexOf(id);
  return at < 0 ? null : [ids[at - 1], ids[at + 1]];
}

function step_link(label, id, other) {
  return id ? h("a", { class: "button", href: other(id) }, label) : h("span", { class: "button off", "aria-disabled": "true" }, label);
}

function summary(item, source) {
  const facts = [
    ["reward", reward(item)], ["verdict", item.verdict && verdict(item.verdict)], ["answer", item.answer && h("code", {}, item.answer)],
    ["verifier", item.verifier && [item.verifier, item.version && h("span", { class: "of" }, `@${item.version}`)]],
    ["length", item.length && number(item.length)], ["turns", item.turns > 1 && number(item.turns)], ["calls", item.calls > 0 && number(item.calls)],
    ["advantage", typeof item.advantage === "number" && signed(item.advantage)],
    ["trained", item.phase === "train" && typeof item.trained === "number" && share(item.trained)],
    [source.kind === "run" ? "problem" : "group", item.problem && h("code", {}, item.problem)], ["environment", item.environment],
    ["source", h("span", {}, source.name, " ", source.state && status(source))],
  ].filter(([, value]) => value);
  return h("div", {}, h("dl", { class: "facts" }, facts.map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value)))), flags(item));
}

function conversation(whole) {
  const prompt = (whole.prompt || []).map((message, index) => block(message.role, null, folded_prompt(message, index)));
  const several = new Set((whole.turns || []).map((turn) => turn.context ?? 0)).size > 1;
  const turns = (whole.turns || []).map((turn, index) => block(turn.role, turn, [
    is_policy(turn) ? written(turn, whole) : long_text(turn.text || ""),
    (turn.calls || []).map((call, number_) => call_of(call, `call ${index}.${number_}`)),
  ], several, index));
  return h("div", { class: "turns" }, prompt, turns);
}

function folded_prompt(message, index) {
  const text = message.content || "";
  const long = text.length > 1600 || text.split("\n").length > 24;
  return long ? folded(`${text.slice(0, 140)}…`, text, `prompt ${index}`) : long_text(text);
}

function block(role, turn, content, several = false, index = null) {
  const kind = ROLES.get(role) || "user";
  const facts = turn ? [
    turn.agent && `agent ${turn.agent}`, several && `conversation ${turn.context ?? 0}`, turn.tokens && count(turn.tokens, "token"),
    typeof turn.at === "number" && `at ${duration(turn.at)}`, typeof turn.seconds === "number" && `tools ${duration(turn.seconds)}`,
    typeof turn.reward === "number" && `reward ${signed(turn.reward, 2)}`,
  ].filter(Boolean) : [];
  return h("section", { class: `turn ${kind}`, "aria-label": `${role}${index === null ? "" : ` turn ${index + 1}`}` },
    h("header", {}, h("b", { class: "role" }, role === kind ? role : `${role} (${kind})`), facts.map((each) => h("span", {}, each)),
      turn && turn.truncated && h("span", { class: "flag" }, "cut"), turn && turn.void && h("span", { class: "flag", title: "neither a call nor an answer" }, "void"),
      turn && turn.fault && h("span", { class: "fault" }, `fault ${turn.fault.reason || turn.fault}`)),
    h("div", { class: "body" }, content));
}

function call_of(call, key) {
  const odd = [call.refused && "refused", call.cached && "cached", call.fault && "fault", call.asked === false && "not asked", call.unanswered && "unanswered"].filter(Boolean);
  const given = typeof call.arguments === "string" ? call.arguments : JSON.stringify(call.arguments, null, 1);
  const inner = call.arguments && typeof call.arguments === "object" ? Object.entries(call.arguments) : null;
  return h("div", { class: "call" },
    h("header", {}, h("b", {}, call.name || "call"), typeof call.seconds === "number" && h("span", {}, duration(call.seconds)),
      typeof call.reward === "number" && h("span", {}, `reward ${signed(call.reward, 2)}`),
      odd.map((each) => h("span", { class: each === "fault" ? "fault" : "flag" }, each))),
    inner && inner.every(([, value]) => typeof value === "string") ? inner.map(([name, value]) => (call.programs && Object.hasOwn(call.programs, name) ? h("div", {}, h("div", { class: "of" }, name), program(call.programs[name])) : folded(name, value, `${key} ${name}`)))
      : folded("arguments", given || "", `${key} arguments`),
    call.fault && h("p", { class: "problem" }, typeof call.fault === "string" ? call.fault : `${call.fault.reason}: ${call.fault.message}`),
    call.answer !== null && call.answer !== undefined && folded("answer", call.answer, `${key} answer`));
}

function similar(id, context) {
  return h("details", {
    "data-key": "similar",
    ontoggle: (event) => {
      const box = event.currentTarget;
      if (!box.open || box.dataset.read) return;
      box.dataset.read = "1";
      box.append(context.later(context.get("api/similar", new State().with({ id })), (found) => {
        const all = found.items || found;
        return all.length ? h("ul", { class: "plain alike" }, all.map((each) => h("li", {}, h("span", { class: "of" }, share(each.likeness)), reward(each),
          h("a", { href: to("item", { id: each.id }).href }, h("span", { class: "clip" }, each.preview || each.id))))) : h("p", { class: "none" }, "None among the source's newest.");
      }, "Comparing…"));
    },
  }, h("summary", {}, "Near-duplicates of this response"));
}

function raw(whole) {
  return whole.raw ? h("details", { "data-key": "raw" }, h("summary", {}, "The row as it is stored"),
    long_text(JSON.stringify(whole.raw, null, 1))) : null;
}
