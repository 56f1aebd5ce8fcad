// Making elements. Text always stays text: nothing here parses a string as markup except `fragmentOf`, and no character of a
// text reverses the order in which others are read.

import { formatMoment, showDirections } from "./format.js";

/**
 * @typedef {string | number | Node | null | undefined | false | Child[]} Child
 */

/**
 * Makes an HTML element. Attributes that are functions are listeners (`onclick`), `true` is an empty attribute, and
 * `false`, `null` and `undefined` leave the attribute out.
 * @param {string} tag
 * @param {Record<string, any>} [attributes]
 * @param {...Child} children
 * @returns {any} the element
 */
export function h(tag, attributes = {}, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

/**
 * Makes an SVG element.
 * @param {string} tag
 * @param {Record<string, any>} [attributes]
 * @param {...Child} children
 * @returns {SVGElement}
 */
export function svg(tag, attributes = {}, ...children) {
  return fill(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);
}

/** @type {(element: any, attributes: Record<string, any>, children: Child[]) => any} */
function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") element.addEventListener(name.slice(2), value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) element.setAttribute(name, String(value));
  }
  append(element, children);
  return element;
}

/** @type {(parent: Node, children: Child[]) => void} */
function append(parent, children) {
  for (const child of children) {
    if (Array.isArray(child)) append(parent, child);
    else if (child instanceof Node) parent.appendChild(child);
    else if (child !== null && child !== undefined && child !== false) {
      parent.appendChild(document.createTextNode(showDirections(String(child))));
    }
  }
}

/** @type {(parent: Element, ...children: Child[]) => void} */
export function replaceChildren(parent, ...children) {
  parent.replaceChildren();
  append(parent, children);
}

/** The same, but what is there already stays, with the keyboard in it. @type {(parent: Element, ...children: Child[]) => void} */
export function redraw(parent, ...children) {
  const next = parent.cloneNode(false);
  append(next, children);
  if (!next.isEqualNode(parent)) parent.replaceChildren(...next.childNodes);
}

// The one place where a string becomes markup. Only fragments that the server rendered get here; it escapes all text.
const policy = /** @type {any} */ (window).trustedTypes?.createPolicy("console", { createHTML: (/** @type {string} */ html) => html });

/**
 * The nodes of a fragment that the server rendered.
 * @param {string} html
 */
export function fragmentOf(html) {
  const template = document.createElement("template");
  template.innerHTML = policy ? policy.createHTML(html) : html;
  // The server writes times of its own zone.
  for (const time of template.content.querySelectorAll("time[datetime]")) {
    time.textContent = formatMoment(time.getAttribute("datetime") ?? "");
  }
  return template.content;
}

/**
 * Tells people who use a screen reader.
 * @param {string} text
 */
export function announce(text) {
  const place = document.getElementById("announcements");
  if (place) place.textContent = text;
}

/**
 * A heading and a sentence for a page or a part of it that has nothing to show.
 * @param {string} title
 * @param {...Child} text
 */
export function emptyState(title, ...text) {
  return h("div", { class: "empty" }, h("h2", {}, title), h("p", {}, ...text));
}

/** The text of an error. @param {unknown} error */
export function errorText(error) {
  return error instanceof Error ? error.message : String(error);
}
