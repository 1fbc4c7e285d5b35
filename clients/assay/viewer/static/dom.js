// Makes elements and text nodes, and nothing else: a text of a run can never become markup.

const SVG = "http://www.w3.org/2000/svg";

// characters that turn the order of a line around, or that nobody sees: shown by their numbers
const UNSEEN = /[\0-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u202a-\u202e\u2060\u2066-\u2069\ufeff\ufff9-\ufffb]|\udb40[\udc00-\udc7f]/g;
const MOST_UNSEEN = 2000;
const SHOWN = new Set(["title", "aria-label", "placeholder"]);
const FLAT = new Set(["OPTION", "TITLE", "TEXTAREA"]);

/** A text on one place where it can have no element in it: an attribute, a title, a drawing. */
export function seen(text) {
  return String(text).replace(UNSEEN, "\ufffd");
}

/** Text nodes, with an element of its own around each character that nobody sees. */
function texts(text) {
  if (text.search(UNSEEN) < 0) return [document.createTextNode(text)];
  const nodes = [];
  let from = 0;
  for (const found of text.matchAll(UNSEEN)) {
    if (nodes.length > MOST_UNSEEN) break;
    nodes.push(document.createTextNode(text.slice(from, found.index)));
    const mark = document.createElement("span");
    mark.className = "unseen";
    mark.dataset.code = `U+${found[0].codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}`;
    mark.append(document.createTextNode(found[0]));
    nodes.push(mark);
    from = found.index + found[0].length;
  }
  nodes.push(document.createTextNode(from && nodes.length > MOST_UNSEEN ? seen(text.slice(from)) : text.slice(from)));
  return nodes;
}

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (name === "value" || name === "checked" || name === "selected") node[name] = value;
    else node.setAttribute(name, value === true ? "" : SHOWN.has(name) ? seen(value) : String(value));
  }
  add(node, children);
  return node;
}

/** Appends nodes and texts, of lists too; null and false are left out. */
export function add(node, children) {
  for (const child of children.flat(Infinity)) {
    if (child === null || child === undefined || child === false) continue;
    if (child instanceof Node) node.append(child);
    else if (node.namespaceURI === SVG || FLAT.has(node.tagName)) node.append(document.createTextNode(seen(child)));
    else node.append(...texts(String(child)));
  }
  return node;
}

/** An element. `attributes` may hold listeners as functions: onclick, oninput. */
export function h(tag, attributes, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

/** An element of a drawing. */
export function s(tag, attributes, ...children) {
  return fill(document.createElementNS(SVG, tag), attributes, children);
}

/** A section with a heading of its own. */
export function section(title, ...children) {
  const heading = h("h2", {}, title);
  return h("section", { "aria-label": heading.textContent }, heading, ...children);
}

/** What is said where there is nothing to show. */
export function empty(...children) {
  return h("p", { class: "empty" }, ...children);
}

/** A text cut by code points, as spans of a judgement are counted. */
export class Points {
  constructor(text) {
    this.points = /[\ud800-\udfff]/.test(text) ? Array.from(text) : text;
    this.length = this.points.length;
  }

  slice(start, end) {
    const part = this.points.slice(start, end);
    return typeof part === "string" ? part : part.join("");
  }
}
