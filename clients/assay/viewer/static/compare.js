// Two verifiers, or two versions of one, on the items that both judged.

import { go, to } from "./address.js";
import { empty, h, section } from "./dom.js";
import { count, fixed, number, share } from "./format.js";
import { reward, table, verdict } from "./table.js";

export async function show(state, context) {
  const filter = state.filter().with({ verifier: null, version: null });
  const [first, second] = [state.one("a"), state.one("b")];
  const told = await context.get("api/facets", filter);
  const names = await choices(told, context, filter);
  const picker = (name, label, now) => h("label", {}, h("span", { class: "facet-name" }, label), h("select", {
    "aria-label": label, onchange: (event) => go(state.with({ [name]: event.target.value, va: null, vb: null })),
  }, h("option", { value: "" }, "choose…"), [...names, ...(now && !names.some(([value]) => value === now) ? [[now, null]] : [])].map(([value, n]) => h("option", { value, selected: value === now }, `${value}${n === null ? "" : ` (${number(n)})`}`))));
  const parts = [h("div", { class: "bar" }, picker("a", "first", first), picker("b", "second", second),
    first && second && h("a", { class: "button", href: state.with({ a: second, b: first, va: state.one("vb"), vb: state.one("va") }).href }, "swap"))];
  const page = { title: "Compare", trail: [["Runs", to("sources").href]], parts };
  if (names.length < 2 && !(first && second)) {
    parts.push(empty("One verifier judged here, in one version. Score the same items with another, for example with ", h("code", {}, "assay journal rejudge"), ", and open its journal beside this one."));
    return page;
  }
  if (!first || !second || first === second) {
    parts.push(empty("Choose two verifiers that differ, or NAME@VERSION for one version: what both judged is compared."));
    return page;
  }
  const cell = { va: state.one("va"), vb: state.one("vb") };
  const answer = await context.get("api/compare", filter.with({ a: first, b: second, ...cell }));
  if (!answer.judged) {
    parts.push(empty("No item was judged by both. They are matched by problem, prompt and response: score the same rollouts with each."));
    return page;
  }
  const means = answer.means || [];
  const faults = answer.faults || [];
  parts.push(
    h("dl", { class: "facts" }, [
      ["judged by both", `${number(answer.judged)}${answer.over < answer.of ? ` of the newest ${number(answer.over)}` : ""}`], ["same reward", `${number(answer.same)} (${share(answer.same / answer.judged)})`],
      [`mean of ${first}`, fixed(means[0])], [`mean of ${second}`, fixed(means[1])],
      faults.length > 0 && ["faults", h("span", { class: "fault" }, faults.map(([side, reason, n]) => `${side === "a" ? first : second}: ${reason} ${number(n)}`).join(", "))],
    ].filter(Boolean).map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value)))),
    section("Verdicts", confusion(state, answer.verdicts || [], first, second)),
    section(cell.va || cell.vb ? `Examples: ${cell.va || "any"} against ${cell.vb || "any"}` : "Where their rewards differ", examples(answer, first, second)),
  );
  return page;
}

async function choices(told, context, filter) {
  const verifiers = (told.verifiers || []).filter(([value]) => value);
  const versions = await Promise.all(verifiers.slice(0, 12).map(async ([name]) => {
    const own = await context.get("api/facets", filter.with({ verifier: name }));
    return (own.versions || []).filter(([value]) => value).map(([value, n]) => [`${name}@${value}`, n]);
  }));
  return verifiers.flatMap(([name, n], index) => [[name, n], ...((versions[index] || []).length > 1 ? versions[index] : [])]);
}

function confusion(state, cells, first, second) {
  const rows = [...new Set(cells.map(([a]) => a))].sort();
  const columns = [...new Set(cells.map(([, b]) => b))].sort();
  const at = new Map(cells.map(([a, b, n]) => [`${a}\n${b}`, n]));
  const most = Math.max(...cells.map(([, , n]) => n));
  const sum = (keep) => cells.filter(keep).reduce((total, [, , n]) => total + n, 0);
  return h("div", { class: "sheet wide", tabindex: 0 }, h("table", { class: "confusion" },
    h("thead", {}, h("tr", {}, h("td", { class: "corner" }, `${first} ↓  ${second} →`), columns.map((b) => h("th", { scope: "col", class: "n" }, verdict(b))), h("th", { class: "n" }, "all"))),
    h("tbody", {}, rows.map((a) => h("tr", {}, h("th", { scope: "row" }, verdict(a)), columns.map((b) => {
      const n = at.get(`${a}\n${b}`) || 0;
      const on = state.one("va") === String(a) && state.one("vb") === String(b);
      const cell = h("td", { class: `n cell${a === b ? " same" : ""}${on ? " on" : ""}` }, n ? h("a", { class: "row", href: state.with({ va: a, vb: b }).href, title: "their items" }, number(n)) : h("span", { class: "none" }, "0"));
      cell.style.setProperty("--v", `${Math.round((n / most) * 60)}%`);
      return cell;
    }), h("td", { class: "n" }, number(sum(([each]) => each === a))))),
    h("tr", {}, h("th", { scope: "row" }, "all"), columns.map((b) => h("td", { class: "n" }, number(sum(([, each]) => each === b)))), h("td", { class: "n" }, number(sum(() => true)))))));
}

function examples(answer, first, second) {
  const all = (answer.examples || []).map((each) => ({ first: each.a, second: each.b }));
  if (!all.length) return empty("No example: they agree.");
  const shown = (own) => h("a", { href: to("item", { id: own.id }).href }, verdict(own.verdict), " ", reward(own, 2));
  return [table([
    { label: "prompt", text: true, class: "half", cell: (row) => h("span", { class: "clip" }, row.first.prompt || row.first.problem || "–") },
    { label: "response", text: true, class: "half", cell: (row) => h("span", { class: "clip" }, row.first.preview || "–") },
    { label: "answer", text: true, cell: (row) => h("code", { class: "short" }, row.first.answer ?? "–") },
    { label: first, cell: (row) => shown(row.first) },
    { label: second, cell: (row) => shown(row.second) },
  ], all, { href: (row) => to("item", { id: row.first.id }).href, key: (row) => `${row.first.id} ${row.second.id}`, class: "items" }),
  answer.more && h("p", { class: "hint" }, `The first ${count(all.length, "example")}; there are more.`)];
}
