// Makes elements and text nodes, and nothing else: a text of a run can never become markup.

const SVG = "http://www.w3.org/2000/svg";

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (name === "value" || name === "checked" || name === "selected") node[name] = value;
    else node.setAttribute(name, value === true ? "" : String(value));
  }
  add(node, children);
  return node;
}

/** Appends nodes and texts, of lists too; null and false are left out. */
export function add(node, children) {
  for (const child of children.flat(Infinity)) {
    if (child === null || child === undefined || child === false) continue;
    node.append(child instanceof Node ? child : document.createTextNode(String(child)));
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
