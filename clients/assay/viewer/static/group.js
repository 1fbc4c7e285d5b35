// The samples of one prompt, side by side.

import { State, to } from "./address.js";
import { empty, h } from "./dom.js";
import { count, fixed, number, share, signed } from "./format.js";
import { source_of } from "./run.js";
import { name_of, squares, trail_to } from "./step.js";
import { flags, reward, verdict } from "./table.js";
import { long_text, written } from "./texts.js";

const AT_ONCE = 8;

export async function show(state, context) {
  const source = await source_of(state, context);
  const step = state.one("step") === "" ? null : Number(state.one("step"));
  const phase = state.one("phase") || (source.kind === "run" && step !== null ? "train" : "");
  const draw = state.one("draw") === "" ? null : Number(state.one("draw"));
  const problem = state.one("problem");
  const answer = await context.get("api/items", new State().with({
    source: source.id, step_from: step, step_to: step, phase, draw, problem, sort: source.kind === "run" ? "sample" : "time", limit: 200,
  }));
  const items = answer.items;
  const trail = step === null && source.kind === "journal" ? [...trail_to(source), ["groups", to("step", { source: source.id }).href]] : trail_to(source, step, phase);
  const title = name_of({ draw, problem });
  if (!items.length) return { title, trail, parts: [empty("No sample of this prompt is kept.")] };
  const first = context.get("api/item", new State().with({ id: items[0].id }));
  const many = Math.max(AT_ONCE, Number(state.one("samples")) || 0);
  const judged = items.filter((each) => !each.fault && each.reward !== null);
  const rewards = judged.map((each) => each.reward);
  const mean = rewards.length ? rewards.reduce((sum, each) => sum + each, 0) / rewards.length : null;
  return {
    title, trail,
    parts: [
      context.later(first, (whole) => question(whole)),
      h("div", { class: "bar" }, squares(items), h("span", { class: "sum" },
        `${count(items.length, "sample")}, mean reward ${fixed(mean)} of ${number(judged.length)} judged`,
        items.length > judged.length && h("span", { class: "fault" }, count(items.length - judged.length, "fault")))),
      h("div", { class: "beside", role: "list", tabindex: 0, "aria-label": "samples side by side" }, items.slice(0, many).map((item) => card(item, context))),
      items.length > many && h("p", {}, h("a", { class: "button", href: state.with({ samples: items.length }).href }, `Show all ${items.length} samples`)),
    ],
  };
}

function question(whole) {
  const user = [...(whole.prompt || [])].reverse().find((each) => each.role === "user") || (whole.prompt || []).at(-1);
  const reference = whole.reference && whole.reference.text;
  return h("div", { class: "question" },
    h("details", { "data-key": "question", open: true }, h("summary", {}, "prompt"), long_text(user ? user.content : whole.item.prompt || "–")),
    reference && h("p", { class: "reference" }, h("b", {}, "reference "), h("code", {}, reference.slice(0, 400))));
}

/** What an item is called. */
export function title_of(item) {
  return typeof item.sample === "number" ? `sample ${item.sample}` : `verdict ${String(item.id).split(":").pop()}`;
}

function card(item, context) {
  const whole = context.get("api/item", new State().with({ id: item.id }));
  const facts = [
    ["reward", reward(item)], ["verdict", verdict(item.verdict)], ["answer", h("code", {}, item.answer ?? "–")],
    ["length", number(item.length)],
    ...(item.sample === null ? [["verifier", `${item.verifier || "–"}${item.version ? `@${item.version}` : ""}`]] : [["advantage", signed(item.advantage)], ["trained", share(item.trained)]]),
    ...(item.turns > 1 || item.calls ? [["turns", `${number(item.turns)}, ${count(item.calls || 0, "call")}`]] : []),
    ...(item.ending ? [["ending", item.ending]] : []),
  ];
  return h("article", { class: "card", role: "listitem", "data-key": item.id },
    h("h3", {}, h("a", { class: "row", href: to("item", { id: item.id }).href }, title_of(item)), flags(item)),
    h("dl", { class: "facts tight" }, facts.map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value)))),
    context.later(whole, (read) => h("div", { class: "texts", tabindex: 0, "aria-label": `text of ${title_of(item)}` },
      (read.turns || []).map((turn) => [turn.role !== "policy" && turn.role !== "assistant" && h("div", { class: "label" }, turn.role),
        written(turn, read)]))));
}
