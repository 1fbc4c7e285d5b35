// The keyboard: rows up and down, in and out, and what the view at hand adds.

import { current, go, State } from "./address.js";
import { h } from "./dom.js";

const HELP = [
  ["j k  ↓ ↑", "next or previous row"],
  ["Enter", "open it"],
  ["Esc  Backspace", "up: from a sample to its group, step, run"],
  ["[ ]", "previous or next sample"],
  ["t", "tokens of the sample: log-prob, advantage, entropy"],
  ["1 2 3 4", "note on a sample: right, wrong, exploit, unsure"],
  ["n", "write a note"],
  ["/", "search"],
  ["g r  g i  g v  g c  g n", "go to runs, items, verdicts, compare, notes"],
  ["← →", "in a chart: read point by point; Enter opens the step"],
  ["?", "this help"],
];
const GO = { r: "sources", i: "items", v: "verdicts", c: "compare", n: "notes" };

let page = () => null;
let main = () => document.body;
let after_g = false;

export function closeHelp() {
  const box = document.getElementById("help");
  if (box.open) box.close();
}

export const keys = {
  start(the_page, the_main) {
    page = the_page;
    main = the_main;
    document.addEventListener("keydown", pressed);
  },

  help() {
    const box = document.getElementById("help");
    box.replaceChildren(
      h("h2", { id: "help-title" }, "Keys"),
      h("dl", {}, HELP.map(([key, text]) => [h("dt", {}, key.split(" ").filter(Boolean).map((each) => [h("kbd", {}, each), " "])), h("dd", {}, text)])),
      h("p", {}, "Every state of a page is in its address: copy it to show somebody what you see."),
      h("form", { method: "dialog" }, h("button", { type: "button", onclick: closeHelp, autofocus: true }, "Close")),
    );
    if (!box.open) box.showModal();
  },
};

function typing(target) {
  return target.isContentEditable || ["INPUT", "TEXTAREA", "SELECT"].includes(target.tagName);
}

function pressed(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
  if (document.getElementById("help").open) return;
  if (typing(event.target)) {
    if (event.key === "Escape") event.target.blur();
    return;
  }
  const shown = page();
  if (!shown) return;
  if (after_g) {
    after_g = false;
    if (GO[event.key]) {
      event.preventDefault();
      go(new State().with({ view: GO[event.key], source: current().all("source") }));
      return;
    }
  }
  const own = shown.keys && shown.keys[event.key];
  const act = own || COMMON[event.key];
  if (!act) return;
  if (act(event, shown) !== false) event.preventDefault();
}

const COMMON = {
  j: () => move(1),
  ArrowDown: () => move(1),
  k: () => move(-1),
  ArrowUp: () => move(-1),
  g: () => { after_g = true; },
  Escape: (_, shown) => up(shown),
  Backspace: (_, shown) => up(shown),
  "?": () => keys.help(),
  "/": () => {
    const field = main().querySelector("input[type=search]");
    if (field) {
      field.focus();
      field.select();
      return true;
    }
    go(new State().with({ view: "items", source: current().all("source"), search: "1" }));
    return true;
  },
};

function up(shown) {
  const way = shown.trail && shown.trail.length ? shown.trail[shown.trail.length - 1][1] : null;
  if (!way) return false;
  go(new State(way.slice(3)));
  return true;
}

function move(by) {
  const rows = [...main().querySelectorAll("a.row")].filter((each) => each.offsetParent !== null);
  if (!rows.length) return false;
  const here = rows.indexOf(document.activeElement);
  const next = here < 0 ? (by > 0 ? 0 : rows.length - 1) : Math.max(0, Math.min(rows.length - 1, here + by));
  rows[next].focus({ preventScroll: true });
  rows[next].scrollIntoView({ block: "nearest" });
  return true;
}
