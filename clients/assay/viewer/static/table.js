// Tables whose rows are reached by keys, and the small marks that stand in their cells.

import { h } from "./dom.js";
import { fixed, number } from "./format.js";

/**
 * A table. At the width of a telephone each row becomes a card, with the names of its columns.
 * columns: [{label, title, numeric, text, sort: href, sorted: "rising"|"falling", cell(row)}]
 * options: href(row) where a row leads, key(row), kind(row) a class, caption, wide: scrolls instead.
 */
export function table(columns, rows, options = {}) {
  const kept = columns.filter(Boolean);
  const head = h("tr", {}, kept.map((column) => h("th", {
    scope: "col", class: kind(column), title: column.title,
    "aria-sort": column.sorted ? `${column.sorted === "rising" ? "as" : "des"}cending` : null,
  }, column.sort ? h("a", { href: column.sort }, column.label, column.sorted && (column.sorted === "rising" ? " ↑" : " ↓"))
    : column.label)));
  const body = rows.map((row) => h("tr", {
    class: options.kind ? options.kind(row) : null, "data-key": options.key ? options.key(row) : null,
    "data-row": options.href ? "" : null,
    onclick: options.href && ((event) => {
      if (event.target.closest("a, button, input, label, summary") || String(getSelection())) return;
      event.currentTarget.querySelector("a.row").click();
    }),
  }, kept.map((column, index) => {
    const content = column.cell(row);
    const linked = options.href && index === (options.lead || 0);
    return h("td", { class: kind(column), "data-label": column.label },
      linked ? h("a", { class: "row", href: options.href(row) }, content) : content);
  })));
  const wide = options.wide || options.class === "slim";
  return h("div", { class: `sheet${wide ? " wide" : ""}` },
    h("table", { class: options.class },
      options.caption && h("caption", {}, options.caption), h("thead", {}, head), h("tbody", {}, body)));
}

function kind(column) {
  return [column.numeric && "n", column.text && "text", column.class].filter(Boolean).join(" ") || null;
}

/** The reward of an item: its number, or the fault that stands in its place. */
export function reward(item, digits = 3) {
  if (item.fault) return fault(item.fault);
  if (item.reward === null || item.reward === undefined) return h("span", { class: "none", title: "not judged" }, "–");
  return h("span", { class: item.reward > 0 ? "num up" : item.reward < 0 ? "num down" : "num" }, fixed(item.reward, digits));
}

/** A fault: never looks like a number. */
export function fault(reason) {
  return h("span", { class: "fault", title: "no judgement: nothing is known of the answer" }, "fault ", h("span", {}, reason));
}

/** A verdict by its name and, beside the colour, a sign. */
export function verdict(name) {
  if (!name) return h("span", { class: "none" }, "–");
  const good = /^(correct|right|accepted|pass|passed|true)$/i.test(name);
  const bad = /^(incorrect|wrong|rejected|fail|failed|false)$/i.test(name);
  return h("span", { class: `verdict ${good ? "up" : bad ? "down" : ""}` }, good ? "✓ " : bad ? "✗ " : "", name);
}

/** Marks of an item that one should know of. */
export function flags(item) {
  const all = [];
  for (const each of item.suspicions || []) all.push(h("span", { class: "flag suspicion", title: "suspicion of the verifier" }, each));
  if (item.appeal === "changed") all.push(h("span", { class: "flag", title: "a second verifier said something else, and counts" }, "changed on appeal"));
  if (item.truncated) all.push(h("span", { class: "flag", title: "cut at the limit" }, "cut"));
  if (item.phase === "train" && item.trained === 0) all.push(h("span", { class: "flag", title: "none of its tokens is in the loss" }, "not trained"));
  for (const each of [item.note]) {
    if (each && (each.label || each.text)) all.push(h("span", { class: "flag note", title: each.text || "note" }, each.label || "note"));
  }
  return all.length ? h("span", { class: "flags" }, all) : null;
}

/** A mean, with how many judgements it is over. */
export function mean(value, of, digits = 3) {
  return [fixed(value, digits), h("span", { class: "of", title: "judgements that it is a mean of" }, `/${number(of)}`)];
}

/** A count of faults among items. */
export function faults(n, items) {
  return n ? h("span", { class: "fault", title: `${n} of ${items} without a judgement` }, number(n)) : h("span", { class: "none" }, "0");
}
