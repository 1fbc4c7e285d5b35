// Text of a model with what was marked in it: spans of a judgement, the extracted answer, programs.

import { h, Points } from "./dom.js";
import { signed, thousands } from "./format.js";

const LONG = 1600;
const MOST = 50_000;
const MOST_LINES = 2000;

/** A span of either form. */
export function span_of(span) {
  const [start, end, reward, label] = Array.isArray(span) ? span : [span.start, span.end, span.reward, span.label];
  return { start, end, reward, label };
}

/** The spans that fall on a turn: its own, or the verdict's of that number. */
export function spans_of(turn, whole) {
  const own = (turn.spans || []).map(span_of);
  if (own.length) return own;
  const verdict = whole.verdict || {};
  if ((whole.turns || []).filter(is_policy).length !== 1 || !is_policy(turn)) return [];
  return (verdict.spans || []).map(span_of);
}

export function is_policy(turn) {
  return turn.own !== false && (turn.own || turn.role === "policy" || turn.role === "assistant");
}

/** A turn's text: programs highlighted, spans marked by sign, the last place of the answer outlined. */
export function written(turn, whole) {
  const text = String(turn.text || "");
  const end = cut_of(text);
  if (end === text.length) return marked(turn, whole, text);
  const box = h("div", {}, marked(turn, whole, text.slice(0, end)));
  box.append(rest(text, end, () => box.replaceWith(marked(turn, whole, text))));
  return box;
}

function marked(turn, whole, text) {
  const points = new Points(text);
  const index = (whole.turns || []).indexOf(turn);
  const marks = spans_of(turn, whole);
  const programs = (whole.programs || []).filter((each) => each.turn === index)
    .map((each) => ({ ...each, cuts: pieces_of(each, points) })).filter((each) => each.cuts);
  const answer = is_policy(turn) && whole.verdict && whole.verdict.extracted_answer;
  const place = answer && typeof answer === "string" ? text.lastIndexOf(answer) : -1;
  const found = place >= 0 ? [{ start: new Points(text.slice(0, place)).length, end: 0 }] : [];
  for (const each of found) each.end = each.start + new Points(answer).length;
  const cuts = new Set([0, points.length]);
  for (const each of [...marks, ...found]) for (const at of [each.start, each.end]) if (at > 0 && at < points.length) cuts.add(at);
  for (const program of programs) for (const [at] of program.cuts) cuts.add(at);
  for (const program of programs) cuts.add(program.end);
  const order = [...cuts].sort((a, b) => a - b);
  const nodes = [];
  for (let i = 0; i + 1 < order.length; i += 1) {
    const [start, end] = [order[i], order[i + 1]];
    let node = points.slice(start, end);
    const program = programs.find((each) => each.start <= start && end <= each.end);
    const piece = program && program.cuts.findLast(([at]) => at <= start);
    if (piece && piece[1]) node = h("span", { class: `code ${piece[1]}` }, node);
    if (found.some((each) => each.start <= start && end <= each.end)) node = h("span", { class: "answer", title: "extracted answer" }, node);
    const span = marks.find((each) => each.start <= start && end <= each.end);
    if (span) {
      node = h("mark", {
        class: span.reward > 0 ? "up" : span.reward < 0 ? "down" : "zero",
        "data-sign": start === span.start ? signed(span.reward, 2) : null, title: `${span.label || "span"} ${signed(span.reward)}`,
      }, node);
    }
    nodes.push(node);
  }
  return h("pre", { class: "text" }, nodes.length ? nodes : h("span", { class: "none" }, "(no text)"));
}

function pieces_of(program, points) {
  const cuts = [];
  let at = program.start;
  for (const [kind, text] of program.pieces || []) {
    const length = new Points(text).length;
    if (points.slice(at, at + length) !== text) return null;
    cuts.push([at, kind_class(kind)]);
    at += length;
  }
  return cuts;
}

/** The class of a kind of pygments, of few letters; others are plain. */
export function kind_class(kind) {
  const short = String(kind || "").toLowerCase();
  const known = { keyword: "k", comment: "c", string: "s", number: "m", name: "n", operator: "o", function: "f", literal: "s" };
  if (/^[a-z]$/.test(short)) return `c-${short}`;
  const name = Object.keys(known).find((each) => short.includes(each));
  return name ? `c-${known[name]}` : "";
}

/** A program by itself: highlighted pieces. */
export function program(pieces) {
  return h("pre", { class: "text" }, pieces.map(([kind, text]) => {
    const name = kind_class(kind);
    return name ? h("span", { class: `code ${name}` }, text) : text;
  }));
}

/** Where a text is cut, so that one of a megabyte does not freeze the page: at MOST letters or MOST_LINES lines. */
function cut_of(text) {
  let at = -1;
  for (let line = 0; line < MOST_LINES; line += 1) {
    at = text.indexOf("\n", at + 1);
    if (at < 0 || at > MOST) break;
  }
  const end = at < 0 ? MOST : Math.min(at, MOST);
  if (text.length <= end) return text.length;
  return /[\udc00-\udfff]/.test(text[end]) ? end - 1 : end;
}

/** A button that says how much is not shown, and shows it. */
function rest(text, end, show) {
  return h("button", { type: "button", class: "button rest", onclick: (event) => show(event.currentTarget) },
    `${thousands(text.length - end)} more characters: show all`);
}

/** A text, at first its beginning where it is very long. */
export function long_text(text) {
  const all = String(text);
  const end = cut_of(all);
  const box = h("pre", { class: "text" }, all.slice(0, end));
  if (end === all.length) return box;
  return h("div", {}, box, rest(all, end, (button) => {
    box.replaceWith(h("pre", { class: "text" }, all));
    button.remove();
  }));
}

/** A text that opens when it is long; a short one stands open. */
export function folded(label, text, key, open = false) {
  const shown = typeof text === "string" ? text : JSON.stringify(text, null, 1);
  const lines = shown.split("\n").length;
  const long = shown.length > LONG || lines > 24;
  return h("details", { "data-key": key, open: open || !long, class: "fold" },
    h("summary", {}, label, long && h("span", { class: "of" }, `${thousands(shown.length)} characters, ${lines} lines`)),
    long_text(shown));
}
