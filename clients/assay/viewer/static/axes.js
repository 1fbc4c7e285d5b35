// Scales and ticks of the drawings.

import { s } from "./dom.js";
import { moment, short } from "./format.js";

/** Up to about `wanted` round numbers from low to high. */
export function ticks(low, high, wanted = 4) {
  if (!(high > low)) return [low];
  const rough = (high - low) / Math.max(1, wanted);
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((times) => times * power).find((each) => each >= rough * 0.999);
  const all = [];
  for (let i = Math.ceil(low / step - 1e-9); i * step <= high + step * 1e-9; i += 1) all.push(i * step);
  return all;
}

/** The least and greatest of finite numbers, a little apart; null of none. */
export function extent(values) {
  let low = Infinity;
  let high = -Infinity;
  for (const value of values) {
    if (typeof value !== "number" || !Number.isFinite(value)) continue;
    if (value < low) low = value;
    if (value > high) high = value;
  }
  if (low > high) return null;
  if (low === high) return low === 0 ? [0, 1] : [low - Math.abs(low) * 0.1, high + Math.abs(high) * 0.1];
  return [low, high];
}

/** From numbers to pixels. */
export function scale([low, high], [from, to]) {
  const per = (to - from) / (high - low || 1);
  const at = (value) => from + (value - low) * per;
  at.back = (pixel) => low + (pixel - from) / (per || 1);
  return at;
}

/** Clock times that a person would choose, as [seconds, text]. */
export function times(low, high, wanted) {
  const steps = [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200,
    14400, 21600, 43200, 86400, 172800, 604800, 2592000];
  const step = steps.find((each) => (high - low) / each <= wanted) || 31536000;
  const shift = new Date(low * 1000).getTimezoneOffset() * 60;
  const all = [];
  for (let i = Math.ceil((low - shift) / step); i * step + shift <= high; i += 1) {
    const at = i * step + shift;
    const text = moment(at);
    all.push([at, step >= 86400 ? text.slice(5, 10) : step >= 60 ? text.slice(11, 16)
      : step >= 1 ? text.slice(11) : `${text.slice(17)}${(at % 1).toFixed(2).slice(1)}`]);
  }
  return all;
}

/** Horizontal rules with their numbers at the left. */
export function rules(y, values, left, right) {
  return values.map((value) => s("g", { class: "rule" },
    s("line", { x1: left, x2: right, y1: y(value), y2: y(value) }),
    s("text", { x: left - 6, y: y(value) + 3.5, "text-anchor": "end" }, short(value))));
}

/** Marks below, [value, text]; what would overlap is left out. */
export function marks(x, values, bottom, right) {
  let free = -Infinity;
  let last = null;
  return values.map(([value, text]) => {
    const at = x(value);
    const half = text.length * 3.2;
    const place = Math.min(at, right - half);
    const shown = place - half > free && text !== last;
    if (shown) [free, last] = [place + half + 8, text];
    return s("g", { class: "mark" },
      s("line", { x1: at, x2: at, y1: bottom, y2: bottom + 4 }),
      shown && s("text", { x: place, y: bottom + 15, "text-anchor": "middle" }, text));
  });
}

/** Calls draw(width) now and whenever the element's width is another one. */
export function responsive(element, draw) {
  let width = 0;
  const fit = () => {
    const now = Math.floor(element.clientWidth);
    if (now > 0 && now !== width) {
      width = now;
      draw(width);
    }
  };
  new ResizeObserver(fit).observe(element);
  return element;
}
