// Drawings: lines with axes and gaps, histograms, sparklines. A null is a gap: no line crosses it.

import { extent, marks, responsive, rules, scale, ticks, times } from "./axes.js";
import { h, s } from "./dom.js";
import { moment, number, short } from "./format.js";

export const TONES = 8;
const LEFT = 46;
const RIGHT = 10;
const TOP = 8;
const BOTTOM = 22;

/** The class that gives a series its colour and its dash. */
export function tone(index) {
  return `tone${index % TONES}`;
}

/** A path through points [x, y|null]; a point alone between gaps is none, see `lone`. */
export function path(points, x, y) {
  const parts = [];
  let open = 0;
  points.forEach(([at, value]) => {
    if (value === null || value === undefined) {
      open = 0;
      return;
    }
    parts.push(`${open ? "L" : "M"}${x(at).toFixed(1)} ${y(value).toFixed(1)}`);
    open += 1;
  });
  return parts.join("");
}

/** Points with a gap at either side: a line would not show them. */
function lone(points) {
  const there = (point) => point !== undefined && typeof point[1] === "number";
  return points.filter((point, index) => there(point) && !there(points[index - 1]) && !there(points[index + 1]));
}

/**
 * Lines over steps or time.
 * series: [{key, label, tone, points: [[x, y|null], ...], of: [n, ...] judged at each, where known}]
 * options: unit, time (x is seconds), x (its name), pick(x) on a click, height, low, high, format.
 */
export function lines(title, series, options = {}) {
  const shown = series.filter((each) => each.points.some(([, value]) => typeof value === "number"));
  const readout = h("span", { class: "readout" });
  const plot = area(options.height || 150);
  const head = h("figcaption", {}, options.bare && series.length > 1
    ? h("b", { class: "keys" }, series.map((each) => h("span", { class: `key ${each.tone}` }, swatch(), h("span", {}, each.label)))) : h("b", {}, title), options.unit && h("span", { class: "unit" }, options.unit), readout);
  if (!shown.length) {
    return h("figure", { class: "chart" }, head, h("p", { class: "none" }, "not measured here"));
  }
  responsive(plot, (width) => plot.replaceChildren(drawn(width, title, shown, options, readout)));
  const legend = series.length > 1 && !options.bare && h("p", { class: "legend" }, series.map((each) => h(
    "span", { class: `key ${each.tone}` }, swatch(), each.label)));
  return h("figure", { class: "chart" }, head, plot, legend);
}

/** Where a drawing will stand; as high as it from the beginning, so that nothing jumps. */
function area(height) {
  const plot = h("div", { class: "plot" });
  plot.style.setProperty("min-height", `${height}px`);
  return plot;
}

/** A piece of a line, for legends. */
export function swatch() {
  return s("svg", { class: "swatch", width: 22, height: 8, "aria-hidden": "true" },
    s("path", { class: "line", d: "M1 4H21" }));
}

function drawn(width, title, series, options, readout) {
  const height = options.height || 150;
  const format = options.format || ((value) => number(value));
  const all = series.flatMap((each) => each.points);
  const [low, high] = extent(all.map(([, value]) => value));
  const span = [Math.min(low, options.low ?? low), Math.max(high, options.high ?? high)];
  const pad = (span[1] - span[0]) * 0.04;
  const reach = extent(all.map(([at]) => at));
  const x = scale(reach, [LEFT, width - RIGHT]);
  const y = scale([span[0] - pad, span[1] + pad], [height - BOTTOM, TOP]);
  const below = options.time ? times(reach[0], reach[1], width / 90)
    : ticks(reach[0], reach[1], width / 70).filter((each) => Number.isInteger(each)).map((each) => [each, short(each)]);
  const cursor = s("line", { class: "cursor", y1: TOP, y2: height - BOTTOM, visibility: "hidden" });
  const dots = series.map((each) => s("circle", { class: `dot ${each.tone}`, r: 3, visibility: "hidden" }));
  const picture = s("svg", {
    width, height, viewBox: `0 0 ${width} ${height}`, role: "img", tabindex: 0,
    class: options.pick ? "pickable" : null, "aria-label": described(title, series, options),
  },
  rules(y, ticks(span[0], span[1], 5), LEFT, width - RIGHT),
  marks(x, below, height - BOTTOM, width - RIGHT),
  series.map((each) => [s("path", { class: `line ${each.tone}`, d: path(each.points, x, y) }),
    lone(each.points).map(([at, value]) => s("circle", { class: `lone ${each.tone}`, cx: x(at), cy: y(value), r: 2.5 }))]),
  cursor, dots);
  const places = [...new Set(all.map(([at]) => at))].sort((a, b) => a - b);
  let here = -1;
  const show = (index) => {
    here = index;
    const at = places[index];
    const hidden = at === undefined;
    cursor.setAttribute("visibility", hidden ? "hidden" : "visible");
    if (!hidden) for (const name of ["x1", "x2"]) cursor.setAttribute(name, x(at));
    const told = series.map((each, number_) => {
      const point = hidden ? undefined : each.points.find(([place]) => place === at);
      const value = point ? point[1] : undefined;
      const there = typeof value === "number";
      dots[number_].setAttribute("visibility", there ? "visible" : "hidden");
      if (there) {
        dots[number_].setAttribute("cx", x(at));
        dots[number_].setAttribute("cy", y(value));
      }
      if (!point) return null;
      const judged = each.of ? ` of ${number(each.of[each.points.indexOf(point)])}` : "";
      return `${series.length > 1 ? `${each.label} ` : ""}${there ? format(value) + judged : "no value"}`;
    }).filter(Boolean);
    readout.textContent = hidden ? "" : `${options.x || "step"} ${options.time ? moment(at) : number(at)} · ${told.join(" · ")}`;
  };
  const nearest = (event) => {
    const box = picture.getBoundingClientRect();
    const at = x.back((event.clientX - box.left) * (width / box.width));
    return places.reduce((best, each, index) => (Math.abs(each - at) < Math.abs(places[best] - at) ? index : best), 0);
  };
  picture.addEventListener("pointermove", (event) => show(nearest(event)));
  picture.addEventListener("pointerleave", () => show(-1));
  picture.addEventListener("blur", () => show(-1));
  picture.addEventListener("click", (event) => options.pick && options.pick(places[nearest(event)]));
  picture.addEventListener("keydown", (event) => {
    const move = { ArrowLeft: -1, ArrowRight: 1, Home: -places.length, End: places.length }[event.key];
    if (move) show(Math.max(0, Math.min(places.length - 1, here + move)));
    else if (event.key === "Enter" && here >= 0 && options.pick) options.pick(places[here]);
    else return;
    event.preventDefault();
    event.stopPropagation();
  });
  return picture;
}

function described(title, series, options) {
  const told = series.map((each) => {
    const values = each.points.map(([, value]) => value).filter((value) => typeof value === "number");
    const gaps = each.points.length - values.length;
    return `${each.label}: ${values.length} points, first ${number(values[0])}, last ${number(values[values.length - 1])}`
      + (gaps ? `, ${gaps} without a value` : "");
  });
  return `${title} by ${options.x || "step"}. ${told.join(". ")}`;
}

/** A line without axes, for a cell of a table. */
export function spark(points, name, width = 110, height = 22) {
  const range = extent((points || []).map(([, value]) => value));
  if (!range) return h("span", { class: "none" }, "–");
  const x = scale(extent(points.map(([at]) => at)), [2, width - 2]);
  const y = scale(range, [height - 3, 3]);
  return s("svg", { class: "spark", width, height, role: "img", "aria-label": described(name, [{ label: name, points }], {}) },
    s("path", { class: "line tone0", d: path(points, x, y) }));
}

/**
 * Bars of one series of counts.
 * options: pick(from, to) on a click, tone, format, height, faults: how many have no value.
 */
export function histogram(title, edges, counts, options = {}) {
  const readout = h("span", { class: "readout" });
  const plot = area(options.height || 110);
  const total = counts.reduce((sum, each) => sum + each, 0);
  const head = h("figcaption", {}, h("b", {}, title), h("span", { class: "unit" }, `n ${number(total)}`), readout);
  if (!total) return h("figure", { class: "chart" }, head, h("p", { class: "none" }, "nothing to count"));
  const format = options.format || number;
  responsive(plot, (width) => {
    const height = options.height || 110;
    const most = Math.max(...counts);
    const x = scale([edges[0], edges[edges.length - 1]], [LEFT, width - RIGHT]);
    const y = scale([0, most], [height - BOTTOM, TOP]);
    const bars = counts.map((n, index) => {
      const from = edges[index];
      const to = edges[index + 1];
      const text = `${format(from)} to ${format(to)}: ${number(n)}`;
      const pick = options.pick && n > 0 ? () => options.pick(from, to) : null;
      return s("g", {
        class: `bar ${options.tone || "tone0"}${pick ? " pickable" : ""}`, role: pick ? "button" : null,
        tabindex: pick ? 0 : null, "aria-label": pick ? `only ${text}` : null, onclick: pick,
        onkeydown: pick && ((event) => {
          if (event.key === "Enter") {
            event.stopPropagation();
            pick();
          }
        }),
        onpointerenter: () => { readout.textContent = text; }, onpointerleave: () => { readout.textContent = ""; },
        onfocus: () => { readout.textContent = text; },
      },
      s("rect", { class: "area", x: x(from), y: TOP, width: Math.max(1, x(to) - x(from)), height: height - BOTTOM - TOP }),
      s("rect", {
        class: "full", x: x(from) + 0.5, width: Math.max(1, x(to) - x(from) - 1),
        y: n ? Math.min(y(n), height - BOTTOM - 1) : height - BOTTOM, height: n ? Math.max(1, height - BOTTOM - y(n)) : 0,
      }));
    });
    plot.replaceChildren(s("svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "group", "aria-label": title },
      rules(y, ticks(0, most, 2).filter(Number.isInteger), LEFT, width - RIGHT), bars,
      marks(x, ticks(edges[0], edges[edges.length - 1], width / 80).map((each) => [each, short(each)]), height - BOTTOM, width - RIGHT)));
  });
  return h("figure", { class: "chart" }, head, plot);
}
