// Numbers, times and names as the tables show them.

/** A number in as few digits as tell it apart; "–" for none. */
export function number(value, digits = 3) {
  if (typeof value !== "number" || !Number.isFinite(value)) return "–";
  const size = Math.abs(value);
  if (Number.isInteger(value) && size < 1e15) return thousands(value);
  if (size >= 1e6 || (size > 0 && size < 10 ** -(digits + 1))) return minus(value.toExponential(2));
  if (size >= 1000) return thousands(Math.round(value));
  return minus(value.toFixed(size >= 100 ? 1 : size >= 10 ? 2 : digits));
}

/** Always as many digits, so that a column aligns. */
export function fixed(value, digits = 3) {
  if (typeof value !== "number" || !Number.isFinite(value)) return "–";
  return minus(value.toFixed(digits));
}

/** With its sign. */
export function signed(value, digits = 3) {
  const text = fixed(value, digits);
  return typeof value === "number" && value > 0 ? `+${text}` : text;
}

function minus(text) {
  return text.replace("-", "\u2212").replace("e+", "e");
}

/** A whole number with its thousands apart. */
export function thousands(value) {
  return minus(String(value)).replace(/\B(?=(\d{3})+(?!\d))/g, "\u202f");
}

/** A short number for an axis: 1.2k, 3M. */
export function short(value) {
  const size = Math.abs(value);
  for (const [unit, name] of [[1e9, "G"], [1e6, "M"], [1e3, "k"]]) {
    if (size >= unit) return minus(`${+(value / unit).toPrecision(3)}${name}`);
  }
  return size && size < 1e-3 ? minus(value.toExponential(0)) : minus(String(+value.toPrecision(4)));
}

/** A share as per cent. */
export function share(value) {
  if (typeof value !== "number" || !Number.isFinite(value)) return "–";
  const hundred = value * 100;
  if (Math.abs(hundred) >= 1e6) return number(value);
  return `${hundred > 0 && hundred < 10 ? hundred.toFixed(1) : Math.round(hundred)}\u202f%`;
}

/** Seconds as a length of time. */
export function duration(seconds) {
  if (typeof seconds !== "number" || !Number.isFinite(seconds)) return "–";
  if (seconds === 0) return "0\u202fs";
  if (seconds > 0 && seconds < 0.000995) return `${Math.max(1, Math.round(seconds * 1e6))}\u202fµs`;
  if (seconds < 0.0995) return `${(seconds * 1000).toFixed(seconds < 0.00995 ? 1 : 0)}\u202fms`;
  if (seconds < 99.5) return `${seconds.toFixed(seconds < 9.95 ? 2 : 1)}\u202fs`;
  if (seconds < 5970) return `${Math.round(seconds / 60)}\u202fmin`;
  return `${(seconds / 3600).toFixed(1)}\u202fh`;
}

const two = (value) => String(value).padStart(2, "0");

/** Seconds since 1970 as a time of here. */
export function moment(seconds) {
  if (typeof seconds !== "number" || !Number.isFinite(seconds) || seconds <= 0) return "–";
  const at = new Date(seconds * 1000);
  return `${day(seconds)} ${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}`;
}

/** Its day. */
export function day(seconds) {
  const at = new Date(seconds * 1000);
  return `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())}`;
}

/** How long ago. */
export function ago(seconds, now = Date.now() / 1000) {
  if (typeof seconds !== "number" || seconds <= 0) return "–";
  const past = Math.max(0, now - seconds);
  if (past < 90) return `${Math.round(past)}\u202fs ago`;
  if (past < 5400) return `${Math.round(past / 60)}\u202fmin ago`;
  if (past < 129600) return `${Math.round(past / 3600)}\u202fh ago`;
  return day(seconds);
}

/** One of a thing, or several. */
export function count(n, one, several = `${one}s`) {
  return `${number(n)}\u00a0${n === 1 ? one : several}`;
}

/** Any value on one line. */
export function plain(value) {
  if (value === null || value === undefined) return "–";
  if (typeof value === "number") return number(value);
  return typeof value === "string" ? value : JSON.stringify(value);
}
