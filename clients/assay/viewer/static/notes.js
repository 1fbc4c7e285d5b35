// Notes on items: right, wrong, exploit, unsure, and a text. They export as a labelled set.

import { FILTER, to } from "./address.js";
import { note } from "./data.js";
import { empty, h } from "./dom.js";
import { ago, number } from "./format.js";
import { item_of } from "./items.js";
import { ways } from "./run.js";
import { flags, reward, table, verdict } from "./table.js";

export const LABELS = ["right", "wrong", "exploit", "unsure"];

/** The editor of one item's note: its element, its keys, and focus(). */
export function editor(whole) {
  const id = whole.item.id;
  const last = (whole.notes || [])[(whole.notes || []).length - 1] || {};
  let label = last.label || "";
  const said = h("span", { class: "hint", role: "status" }, last.label || last.text ? `noted ${ago(last.time_s ?? last.at)}` : "");
  const text = h("textarea", { rows: 2, "aria-label": "note", placeholder: "why  n", value: last.text || "" });
  text.value = last.text || "";
  const buttons = LABELS.map((each, index) => h("button", { type: "button", class: `chip label-${each}`, onclick: () => choose(each) }, each, " ", h("kbd", {}, index + 1)));
  const light = () => buttons.forEach((button, index) => {
    button.classList.toggle("on", LABELS[index] === label);
    button.setAttribute("aria-pressed", LABELS[index] === label ? "true" : "false");
  });
  let stored = JSON.stringify([label, text.value]);
  const save = async () => {
    const next = JSON.stringify([label, text.value]);
    if (next === stored) return;
    said.textContent = "saving…";
    said.classList.remove("bad");
    try {
      await note({ id, label, text: text.value });
      stored = next;
      said.textContent = label || text.value ? "noted" : "note taken back";
    } catch (error) {
      said.classList.add("bad");
      said.textContent = `not noted: ${error.message}`;
    }
  };
  const choose = (each) => {
    label = label === each ? "" : each;
    light();
    save();
  };
  text.addEventListener("change", save);
  text.addEventListener("keydown", (event) => { if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) text.blur(); });
  light();
  return {
    part: h("section", { class: "box", "aria-label": "note" }, h("h2", {}, "Your note"), h("div", { class: "chips", role: "group", "aria-label": "label" }, buttons), text, said),
    keys: Object.fromEntries(LABELS.map((each, index) => [String(index + 1), () => choose(each)])),
    focus: () => text.focus(),
  };
}

export async function show(state, context) {
  const sources = await context.sources();
  const filter = state.filter();
  const source = state.all("source").length === 1 ? sources.get(state.one("source")) : null;
  const asked = filter.with({ note: state.all("note").length ? state.all("note") : "any" });
  const [answer, told] = await Promise.all([
    context.get("api/items", asked.with({ limit: 200, after: state.one("after") })),
    context.get("api/facets", filter.with(Object.fromEntries(FILTER.filter((name) => name !== "source").map((name) => [name, null])))),
  ]);
  const counted = new Map((told.notes || []).map(([label, n]) => [label, n]));
  const chips = h("div", { class: "chips", role: "group", "aria-label": "label" }, [["", "all"], ...LABELS.map((each) => [each, each])].map(([value, label]) => h("a", {
    class: `chip${state.one("note") === value ? " on" : ""}`, href: state.with({ note: value, after: null }).href,
  }, label, value && h("span", { class: "of" }, number(counted.get(value) || 0)))));
  const noted = (row) => row.note || {};
  return {
    title: "Notes", trail: [["Runs", to("sources").href]], live: true,
    parts: [
      source && ways(source, "notes"),
      h("div", { class: "bar" }, chips, h("a", { class: "button", href: `./notes/export?${asked.query}`, download: "assay-notes.jsonl", title: "rows that assay eval-judge and assay audit read" }, "export labelled set")),
      answer.items.length ? table([
        { label: "label", cell: (row) => h("span", { class: `chip on small label-${noted(row).label || "none"}` }, noted(row).label || "text") },
        { label: "note", text: true, class: "half", cell: (row) => noted(row).text || "–" },
        { label: "reward", numeric: true, cell: (row) => reward(row) },
        { label: "verdict", cell: (row) => verdict(row.verdict) },
        { label: "answer", text: true, cell: (row) => h("code", { class: "short" }, row.answer ?? "–") },
        { label: "response", text: true, class: "half", cell: (row) => h("span", { class: "clip" }, row.preview || "–") },
        { label: "where", text: true, cell: (row) => h("span", { class: "short" }, (sources.get(row.source) || { name: row.source }).name, row.step !== null && row.step !== undefined && ` step ${row.step}`) },
        { label: "", cell: (row) => flags({ ...row, note: null }) },
      ], answer.items, { href: (row) => item_of(state, row).href, key: (row) => row.id, class: "items" })
        : empty("No notes yet. Open a sample and press 1 to 4, or n to write. Notes stand beside their source, and export as rows that ",
          h("code", {}, "assay eval-judge"), " reads."),
      answer.more && h("a", { class: "button", href: state.with({ after: answer.more }).href }, "next page →"),
    ],
  };
}
