// The tokens of a response: coloured by advantage, log-prob or entropy; those outside the loss hatched.

import { go } from "./address.js";
import { empty, h } from "./dom.js";
import { count, fixed, number, share, signed } from "./format.js";

const BY = Object.assign(Object.create(null), {
  advantage: ["advantages", "advantage", "what each token is pushed by"],
  logprob: ["logprobs", "log-prob", "under the policy that drew it: dark is surprising"],
  change: [null, "change", "log-prob that the loss starts from, less that of the sampler"],
  entropy: ["entropies", "entropy", "how undecided the policy was"],
});
const STEPS = 5000;

/** The panel for what api/tokens told. */
export function tokens_of(told, state, whole) {
  const pieces = told.pieces || [];
  if (!pieces.length) return empty("No tokens are recorded of this item: journals hold text alone.");
  const columns = {
    advantage: told.advantages, logprob: told.logprobs, entropy: told.entropies,
    change: told.old_logprobs && told.logprobs ? told.old_logprobs.map((value, index) => (
      typeof value === "number" && typeof told.logprobs[index] === "number" ? value - told.logprobs[index] : null)) : null,
  };
  const there = (name) => (columns[name] || []).some((value) => typeof value === "number");
  const wanted = state.one("tokens");
  const by = BY[wanted] ? wanted : "advantage";
  const values = columns[by] || [];
  const signs = by === "advantage" || by === "change";
  const most = values.reduce((top, value) => (typeof value === "number" ? Math.max(top, Math.abs(value)) : top), 0);
  const trained = told.trained || [];
  const in_loss = trained.filter(Boolean).length;
  const readout = h("p", { class: "token-readout", "aria-live": "polite" }, "Point at a token, or walk with ← and →.");
  const say = (index) => { readout.replaceChildren(...explained(index, told, columns)); };
  const box = h("pre", { class: `text tokens ${signs ? "signed" : by}`, tabindex: 0, role: "group", "aria-label": `${pieces.length} tokens by ${BY[by][1]}` });
  const spans = pieces.map((piece, index) => {
    const value = values[index];
    const known = typeof value === "number";
    const own = told.own ? told.own[index] !== null && told.own[index] !== undefined : true;
    const kind = ["tok", !own && "foreign", own && trained[index] === false && "masked", known && signs && value > 0 && "up", known && signs && value < 0 && "down"];
    const span = h("span", { class: kind.filter(Boolean).join(" ") }, piece);
    span.index = index;
    if (known && most > 0) span.style.setProperty("--v", `${Math.round((Math.abs(value) / most) * 100)}%`);
    return span;
  });
  const numbers = pieces.every((piece, index) => piece === String((told.ids || [])[index]));
  if (numbers) box.classList.add("numbers");
  lay(box, spans);
  let here = -1;
  const move = (index) => {
    if (here >= 0) spans[here].classList.remove("here");
    here = index;
    spans[here].classList.add("here");
    spans[here].scrollIntoView({ block: "nearest" });
    say(here);
  };
  box.addEventListener("pointerover", (event) => { if (event.target.index !== undefined) say(event.target.index); });
  box.addEventListener("click", (event) => { if (event.target.index !== undefined) move(event.target.index); });
  box.addEventListener("keydown", (event) => {
    const by_key = { ArrowLeft: -1, ArrowRight: 1, Home: -spans.length, End: spans.length }[event.key];
    if (!by_key) return;
    event.preventDefault();
    event.stopPropagation();
    move(Math.max(0, Math.min(spans.length - 1, here + by_key)));
  });
  return h("section", { class: "box token-panel", "aria-label": "tokens" },
    h("div", { class: "chips", role: "group", "aria-label": "colour by" }, Object.entries(BY).map(([name, [, label, title]]) => h("button", {
      type: "button", class: `chip${by === name ? " on" : ""}`, title, disabled: !there(name), "aria-pressed": by === name ? "true" : "false",
      onclick: () => go(state.with({ tokens: name }), true),
    }, label, !there(name) && h("span", { class: "of" }, "not recorded"))),
    h("span", { class: "sum" }, `${count(pieces.length, "token")}, ${number(in_loss)} in the loss (${share(in_loss / pieces.length)})`)),
    numbers && h("p", { class: "hint" }, "The run kept no vocabulary.json.gz: tokens are shown as their numbers."),
    most > 0 ? legend(by, signs, most) : h("p", { class: "hint" }, by === "advantage"
      ? "Every advantage is 0: the samples of this prompt have equal rewards, and it teaches nothing." : `Every ${BY[by][1]} is 0, or none is recorded.`), readout, box, whole.item.phase === "eval" && h("p", { class: "hint" }, "An evaluation trains on nothing."));
}

/** Adds the first at once and the rest between frames, so that a long response does not freeze the page. */
function lay(box, spans) {
  const more = (from) => {
    box.append(...spans.slice(from, from + STEPS));
    if (from + STEPS < spans.length) requestAnimationFrame(() => more(from + STEPS));
  };
  more(0);
}

function legend(by, signs, most) {
  const end = by === "logprob" ? `\u2212${fixed(most, 2)}` : fixed(most, 2);
  return h("p", { class: "legend" },
    signs ? [h("span", { class: "ramp diverging", "aria-hidden": "true" }), h("span", {}, `\u2212${end} … 0 … +${end}`)]
      : [h("span", { class: `ramp ${by}`, "aria-hidden": "true" }), h("span", {}, `0 … ${end}`)],
    h("span", { class: "tok masked" }, " hatched "), h("span", {}, "not in the loss"), h("span", { class: "tok foreign" }, " grey "), h("span", {}, "not the policy's"));
}

function explained(index, told, columns) {
  const at = (list) => (list ? list[index] : null);
  const own = at(told.own);
  const facts = [
    ["token", number(index)], ["text", JSON.stringify(told.pieces[index])],
    ["log-prob", fixed(at(told.logprobs), 4)], ["at the update", fixed(at(told.old_logprobs), 4)], ["change", signed(at(columns.change), 4)],
    ["entropy", fixed(at(told.entropies), 4)], ["advantage", signed(at(told.advantages), 4)],
    ["in the loss", at(told.trained) ? "yes" : "no"], ["turn", own === null || own === undefined ? "not the policy's" : number(own + 1)],
  ];
  return facts.map(([name, value]) => h("span", {}, h("i", {}, name), " ", value));
}
