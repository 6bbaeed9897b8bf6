// The table of endpoints, and of what callers choose in them: variants, components and target models.

import { byId, bytes, h, milliseconds, rate, setState, setText } from "./dom.js";

const COLUMNS = [["Model"], ["State"], ["Requests/s", "number"], ["p50", "number"], ["p95", "number"], ["Calls", "number"], ["Errors", "number"], ["Memory", "number"]];
/** The first column in which the row of an endpoint has sums. */
const SUMS_FROM = COLUMNS.findIndex(([title]) => title === "Calls");
const FILTERED_FROM = 12;

export const keyOf = (endpoint, server, target) => JSON.stringify([endpoint, server, target]);

/** Return every target of the state with its endpoint and server. */
export function targetsOf(state) {
  return state.endpoints.flatMap((endpoint) => endpoint.servers.flatMap((server) =>
    server.targets.map((target) => ({ endpoint, server, target, key: keyOf(endpoint.name, server.name, target.name) }))));
}

/** Return the name of a target for people: its model, unless callers name a component. */
export const titleOf = (server, target) => (server.kind === "component" ? target.name : target.model || target.name);

/** Return what a target is, besides its title. */
export function kindOf(server, target) {
  if (server.is_multi_model) return "";
  const name = server.kind === "component" ? target.model : target.name;
  return server.kind === "variant" ? name : `${server.kind} ${name}`;
}

export class Overview {
  constructor(onSelect) {
    this.onSelect = onSelect;
    this.rows = new Map();
    this.heads = new Map();
    this.selected = null;
    byId("filter").addEventListener("input", () => this.#filter());
  }

  show(state) {
    const targets = targetsOf(state);
    const keys = state.endpoints.flatMap((endpoint) => [endpoint.name, ...targets.filter((each) => each.endpoint === endpoint).map((each) => each.key)]);
    if (JSON.stringify(keys) !== JSON.stringify(this.keys)) this.#build(state, targets, keys);
    state.endpoints.forEach((endpoint) => this.#head(endpoint));
    targets.forEach((each) => this.#row(each));
    this.#filter();
    byId("filter-label").hidden = targets.length < FILTERED_FROM;
  }

  #build(state, targets, keys) {
    const focused = document.activeElement?.dataset.key;
    this.keys = keys;
    this.rows.clear();
    this.heads.clear();
    const bodies = state.endpoints.map((endpoint) => {
      const own = targets.filter((each) => each.endpoint === endpoint);
      return h("tbody", {}, this.#newHead(endpoint), ...own.map((each) => this.#newRow(each)));
    });
    const heads = COLUMNS.map(([title, kind]) => h("th", { scope: "col", class: kind }, title));
    byId("endpoints").replaceChildren(h("table", {}, h("caption", { class: "hidden" }, "Endpoints and their models"), h("thead", {}, h("tr", {}, ...heads)), ...bodies));
    if (focused) this.rows.get(focused)?.button.focus({ preventScroll: true });
    this.mark(this.selected);
  }

  #newHead(endpoint) {
    const sums = COLUMNS.slice(SUMS_FROM).map(([, kind]) => h("td", { class: kind }));
    const note = h("span", { class: "note" });
    this.heads.set(endpoint.name, { sums, note });
    return h("tr", { class: "endpoint" }, h("th", { scope: "rowgroup", colspan: SUMS_FROM }, endpoint.name, " ", note), ...sums);
  }

  #newRow({ target, server, key }) {
    const button = h("button", { type: "button", class: "row", "data-key": key, onclick: () => this.onSelect(key) }, titleOf(server, target));
    const cells = COLUMNS.slice(1).map(([, kind]) => h("td", { class: kind }));
    const state = h("span", { class: "state" });
    cells[0].append(state);
    const kind = kindOf(server, target);
    const element = h("tr", {}, h("th", { scope: "row" }, button, kind ? h("span", { class: "note" }, ` ${kind}`) : null), ...cells);
    this.rows.set(key, { button, cells, state, element, name: titleOf(server, target).toLowerCase() });
    return element;
  }

  #head(endpoint) {
    const { sums, note } = this.heads.get(endpoint.name);
    const memory = bytes(endpoint.servers.reduce((all, each) => all + each.memory_bytes, 0));
    [endpoint.calls, endpoint.errors, memory].forEach((text, index) => setText(sums[index], text));
    sums[1].classList.toggle("bad", endpoint.failures > 0);
    const count = endpoint.servers.reduce((all, each) => all + each.targets.length, 0);
    const starts = endpoint.servers.reduce((all, each) => all + each.starts - 1, 0);
    const left = endpoint.servers.reduce((all, each) => all + each.targets_left_out, 0);
    const parts = [endpoint.stack, count > 1 ? `${count} models` : "", left ? `${left} more are not listed` : "", endpoint.is_asynchronous ? "asynchronous" : "", starts > 0 ? `started again ${starts} ×` : ""];
    setText(note, parts.filter(Boolean).join(", "));
  }

  #row({ server, target, key }) {
    const { cells, state } = this.rows.get(key);
    setState(state, target.state);
    const [p50, p95] = target.milliseconds;
    const model = server.models.find((each) => each.name === target.name);
    const memory = server.targets.length === 1 ? server.memory_bytes : model?.memory_bytes;
    const texts = [rate(target.calls_per_second), milliseconds(p50), milliseconds(p95), target.calls, target.errors, bytes(memory)];
    texts.forEach((text, index) => setText(cells[index + 1], text));
    cells[5].classList.toggle("bad", target.failures > 0);
  }

  mark(key) {
    this.selected = key;
    for (const [each, { button, element }] of this.rows) {
      element.classList.toggle("selected", each === key);
      if (each === key) button.setAttribute("aria-current", "true");
      else button.removeAttribute("aria-current");
    }
  }

  #filter() {
    const wanted = byId("filter").value.trim().toLowerCase();
    for (const { element, name, state } of this.rows.values()) element.hidden = !`${name} ${state.textContent}`.includes(wanted);
  }
}
