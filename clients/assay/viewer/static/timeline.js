// When each process generated, called tools, scored and updated. Lanes by process; zoom in and out.

import { go, State, to } from "./address.js";
import { marks, responsive, scale, times } from "./axes.js";
import { empty, h, s } from "./dom.js";
import { count, duration, moment } from "./format.js";
import { source_of, ways } from "./run.js";
import { table } from "./table.js";

const ROWS = [["step"], ["collect", "update", "old_logps", "values", "reference"], ["generate", "score"], ["tools"]];
const MOST = 4000;
const LEFT = 78;
const BAR = 16;
const THIN = 5;
const LANES = 24;

export async function show(state, context) {
  const source = await source_of(state, context);
  const step = state.one("step");
  const ask = (low, high) => context.get("api/timeline", new State().with({ source: source.id, from: low, to: high }));
  let told = await ask(step, step);
  if (state.one("from") && told.spans.length) { // tools are told of the newest steps alone, unless steps are named
    const inside = told.spans.filter((each) => each.end > Number(state.one("from")) && each.start < Number(state.one("to"))).map((each) => each.step);
    if (inside.length) told = await ask(Math.min(...inside), Math.max(...inside)).then((near) => ({ ...near, spans: told.spans }));
  }
  let spans = told.spans || [];
  const trail = [["Runs", to("sources").href], [source.name, to("run", { source: source.id }).href]];
  if (!spans.length) {
    return { title: "timeline", trail, live: true, parts: [ways(source, "timeline"),
      empty("This run has no rollouts/timeline.jsonl for this range: it is written with run.rollouts other than \"none\".")] };
  }
  const all = [Math.min(...spans.map((each) => each.start)), Math.max(...spans.map((each) => each.end))];
  if (step && !state.one("from")) spans = spans.filter((each) => String(each.step) === step);
  if (!spans.length) return { title: "timeline", trail, parts: [ways(source, "timeline"), empty(`Step ${step} is not in the timeline.`)] };
  let from = Number(state.one("from"));
  let until = Number(state.one("to"));
  if (!(until > from)) {
    const newest = step ? spans : newest_steps(spans, 6);
    from = Math.min(...newest.map((each) => each.start));
    until = Math.max(...newest.map((each) => each.end));
  }
  const width = until - from;
  const zoom = (low, high) => state.with({ from: low.toFixed(3), to: high.toFixed(3), step: null });
  const look = (label, title, target) => h("a", { class: "button", href: target.href, title }, label);
  const tools = (told.tools || []).map((each) => ({ ...each, what: "tools", process: each.process ?? 0 }));
  const seen = [...spans, ...tools].filter((each) => each.end > from && each.start < until).sort((a, b) => a.start - b.start);
  return {
    title: "timeline", trail, live: !state.one("from"),
    keys: {
      "+": () => go(zoom(from + width / 4, until - width / 4), true), "-": () => go(zoom(from - width / 2, until + width / 2), true),
      ArrowLeft: () => go(zoom(from - width / 4, until - width / 4), true), ArrowRight: () => go(zoom(from + width / 4, until + width / 4), true),
    },
    parts: [
      ways(source, "timeline"),
      h("div", { class: "bar" }, look("−", "wider: key -", zoom(from - width / 2, until + width / 2)), look("+", "closer: key +", zoom(from + width / 4, until - width / 4)),
        look("←", "earlier", zoom(from - width / 4, until - width / 4)), look("→", "later", zoom(from + width / 4, until + width / 4)),
        look("whole run", "from beginning to end", zoom(...all)), look("newest steps", "", state.with({ from: null, to: null, step: null })),
        h("span", { class: "sum" }, `${moment(from)} and ${duration(width)}; drag over a part to see it closer`)),
      lanes(seen.slice(0, MOST), from, until, (low, high) => go(zoom(low, high)), source),
      seen.length > MOST && h("p", { class: "hint" }, `The first ${count(MOST, "bar")} of ${count(seen.length, "bar")}: look closer for all.`),
      sums(seen, from, until),
    ],
  };
}

/** The class that colours a kind of work; none of one that is not ours. */
function tone_of(what) {
  return what === "tools" || ROWS.flat().includes(what) ? what : "";
}

function newest_steps(spans, wanted) {
  const steps = [...new Set(spans.map((each) => each.step))].sort((a, b) => b - a).slice(0, wanted);
  return spans.filter((each) => steps.includes(each.step));
}

function lanes(spans, from, until, zoom, source) {
  const processes = [...new Set(spans.map((each) => each.process))].sort((a, b) => a - b);
  const readout = h("p", { class: "token-readout" }, "Point at a bar.");
  const plot = h("div", { class: "plot lanes" });
  responsive(plot, (width) => {
    const x = scale([from, until], [LEFT, width - 8]);
    const clamp = (value) => Math.max(LEFT, Math.min(width - 8, x(value)));
    let top = 6;
    const parts = [];
    for (const process of processes) {
      const own = spans.filter((each) => each.process === process);
      parts.push(s("text", { x: 0, y: top + 12, class: "process" }, `process ${process}`));
      for (const names of ROWS) {
        const row = own.filter((each) => names.includes(each.what) || (names.includes("tools") && !ROWS.flat().includes(each.what)));
        if (!row.length) continue;
        const thin = names.includes("tools");
        const free = [];
        const high = thin ? THIN : BAR;
        for (const each of row) {
          let lane = 0;
          if (thin) {
            lane = free.findIndex((until_) => until_ <= each.start);
            if (lane < 0) lane = free.length < LANES ? free.length : free.indexOf(Math.min(...free));
            free[lane] = Math.max(each.end, free[lane] || 0);
          }
          const wide = Math.max(1, clamp(each.end) - clamp(each.start));
          const text = `${each.what === "tools" ? `tool ${each.name}` : each.what}${each.step === undefined ? "" : `, step ${each.step}`}: ${duration(each.end - each.start)} from ${moment(each.start)}`;
          const words = each.what === "step" ? `step ${each.step}` : each.what;
          const target = each.what === "tools" && each.item ? to("item", { id: each.item }) : each.step !== undefined ? to("step", { source: source.id, step: each.step, phase: "train" }) : null;
          parts.push(s("g", {
            class: `span ${tone_of(each.what)}`, "aria-label": text,
            onpointerenter: () => { readout.textContent = text; }, onclick: () => target && go(target),
          }, s("rect", { x: clamp(each.start), y: top + lane * (THIN + 1), width: wide, height: high }),
          !thin && wide > words.length * 6.4 + 8 && s("text", { x: clamp(each.start) + 4, y: top + 12 }, words)));
        }
        top += thin ? free.length * (THIN + 1) + 3 : BAR + 3;
      }
      top += 10;
    }
    const height = top + 24;
    const band = s("rect", { class: "band", y: 0, height: top, visibility: "hidden" });
    const picture = s("svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": `timeline of ${count(processes.length, "process", "processes")}` },
      parts, marks(x, times(from, until, width / 90), top, width - 8), band);
    drag(picture, band, x, zoom);
    plot.replaceChildren(picture);
  });
  const kinds = [...new Set(spans.map((each) => each.what))];
  return h("figure", { class: "chart" }, plot, h("p", { class: "legend" }, kinds.map((each) => h("span", {}, h("span", { class: `block ${tone_of(each)}`, "aria-hidden": "true" }), each))), readout);
}

function drag(picture, band, x, zoom) {
  let began = null;
  const at = (event) => event.clientX - picture.getBoundingClientRect().left;
  picture.addEventListener("pointerdown", (event) => { began = at(event); });
  picture.addEventListener("pointermove", (event) => {
    if (began === null || Math.abs(at(event) - began) < 4) return;
    band.setAttribute("visibility", "visible");
    band.setAttribute("x", Math.min(began, at(event)));
    band.setAttribute("width", Math.abs(at(event) - began));
  });
  picture.addEventListener("pointerleave", () => { began = null; band.setAttribute("visibility", "hidden"); });
  picture.addEventListener("pointerup", (event) => {
    const ends = began === null ? null : [began, at(event)].sort((a, b) => a - b);
    began = null;
    band.setAttribute("visibility", "hidden");
    if (ends && ends[1] - ends[0] > 8) {
      addEventListener("click", (click) => click.stopPropagation(), { capture: true, once: true });
      zoom(x.back(ends[0]), x.back(ends[1]));
    }
  });
}

function sums(spans, from, until) {
  const by = new Map();
  for (const each of spans) {
    const seconds = Math.min(each.end, until) - Math.max(each.start, from);
    const key = `${each.process} ${each.what}`;
    const row = by.get(key) || { process: each.process, what: each.what, n: 0, seconds: 0, longest: 0 };
    by.set(key, { ...row, n: row.n + 1, seconds: row.seconds + seconds, longest: Math.max(row.longest, each.end - each.start) });
  }
  return table([
    { label: "process", numeric: true, cell: (row) => row.process },
    { label: "what", cell: (row) => [h("span", { class: `block ${tone_of(row.what)}`, "aria-hidden": "true" }), row.what] },
    { label: "times", numeric: true, cell: (row) => row.n },
    { label: "seconds", numeric: true, cell: (row) => duration(row.seconds) },
    { label: "of the range", numeric: true, title: "above 100 %: several at once", cell: (row) => `${Math.round((row.seconds / (until - from)) * 100)}\u202f%` },
    { label: "longest", numeric: true, cell: (row) => duration(row.longest) },
  ], [...by.values()].sort((a, b) => a.process - b.process || b.seconds - a.seconds), { class: "slim" });
}
