// Builds and updates elements. Text is always set as text: nothing here, or elsewhere in the page, parses HTML.

export const byId = (id) => document.getElementById(id);

/**
 * Control characters, marks that change the direction of text, and characters that cannot be seen. A name with
 * such a mark could show the text around it in another order. Tabs and line ends are layout; joiners are part of
 * emoji and of Persian.
 */
// oxlint-disable-next-line no-control-regex
const INVISIBLE = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]|\udb40[\udc00-\udc7f]/g;

const escaped = (found) => Array.from({ length: found.length }, (_, index) => `\\u${found.charCodeAt(index).toString(16).padStart(4, "0")}`).join("");

/** Return a text in which everything can be seen: escapes, as in JSON, in place of invisible characters. */
export const visible = (text) => String(text).replace(INVISIBLE, escaped);

const shown = (child) => (child instanceof Node ? child : visible(child));

/** Return an element with attributes and children; a property that starts with "on" is a listener. */
export function h(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) element.setAttribute(name, value);
  }
  element.append(...children.flat().filter((each) => each !== null && each !== undefined).map(shown));
  return element;
}

/** Set the text of an element if it differs, so that a screen reader is not told the same again. */
export function setText(element, content) {
  const text = visible(content);
  if (element.textContent !== text) element.textContent = text;
}

export function setState(element, state) {
  if (element.dataset.state !== state) element.dataset.state = state;
  setText(element, state);
}

/** Return a table. A column is [heading, "number"] for right-aligned figures, else [heading]. */
export function table(caption, columns, rows) {
  const heads = columns.map(([title, kind]) => h("th", { scope: "col", class: kind }, title));
  const body = rows.map((row) =>
    h("tr", {}, ...row.map((cell, index) => cellOf(cell, columns[index][1], index === 0))));
  return h("table", {}, h("caption", { class: "hidden" }, caption), h("thead", {}, h("tr", {}, ...heads)),
    h("tbody", {}, ...body));
}

function cellOf(content, kind, isHead) {
  const cell = isHead ? h("th", { scope: "row", class: kind }) : h("td", { class: kind });
  cell.append(shown(content));
  return cell;
}

const UNITS = ["B", "KiB", "MiB", "GiB", "TiB"];

export function bytes(count) {
  if (!count) return "–";
  const power = Math.min(UNITS.length - 1, Math.floor(Math.log2(count) / 10));
  const value = count / 2 ** (10 * power);
  return `${value >= 100 || power === 0 ? Math.round(value) : value.toFixed(1)} ${UNITS[power]}`;
}

export function milliseconds(value) {
  if (value === null || value === undefined || Number.isNaN(value)) return "–";
  if (value === 0) return "0\u00a0ms";
  if (value >= 1000) return `${(value / 1000).toFixed(2)}\u00a0s`;
  return `${value >= 99.5 ? Math.round(value) : value.toPrecision(2)}\u00a0ms`;
}

export const rate = (value) => (value === 0 ? "0" : value >= 10 ? value.toFixed(0) : value.toFixed(1));

export const clock = (seconds) => new Date(seconds * 1000).toLocaleTimeString([], { hour12: false });

/** Return the browser's distance from UTC at a time, such as "UTC+02:00". */
export function zone(seconds = Date.now() / 1000) {
  const minutes = -new Date(seconds * 1000).getTimezoneOffset();
  if (!minutes) return "UTC";
  const [hours, rest] = [Math.floor(Math.abs(minutes) / 60), Math.abs(minutes) % 60].map((each) => String(each).padStart(2, "0"));
  return `UTC${minutes < 0 ? "-" : "+"}${hours}:${rest}`;
}

/** Return a date and time with its time zone, in the form that the commands print. */
export function moment(seconds) {
  const date = new Date(seconds * 1000);
  const day = [date.getFullYear(), date.getMonth() + 1, date.getDate()].map((each) => String(each).padStart(2, "0")).join("-");
  return `${day} ${clock(seconds)} ${zone(seconds)}`;
}
