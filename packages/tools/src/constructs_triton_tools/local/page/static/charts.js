// Two charts of the last five minutes, by uPlot, each with a table of the same figures.

import { byId, clock, h, milliseconds, table, zone } from "./dom.js";

const HEIGHT = 150;
const SHOWN_ROWS = 6;
/** Columns of a row that the server sends: time, calls, errors and the percentiles in milliseconds. */
const [TIME, CALLS, ERRORS, P50, P95, P99] = [0, 1, 2, 3, 4, 5];

const chartsOf = (requests, latency) => [
  { title: requests, lines: [["requests", CALLS, "--line-1"], ["errors", ERRORS, "--bad"]], format: (value) => String(value), empty: 0 },
  { title: latency, lines: [["p50", P50, "--line-1"], ["p95", P95, "--line-2"], ["p99", P99, "--line-3"]], format: milliseconds, empty: null },
];

export class Charts {
  /** `seconds` is the time that the charts show, `step` that of a row; the last `late` rows may come later. */
  constructor({ seconds = 300, step = 1, late = 0, requests = "Requests per second", latency = "Latency at the gateway" } = {}) {
    Object.assign(this, { seconds, step, late, charts: chartsOf(requests, latency) });
    this.rows = new Map(); // by endpoint: rows by second
    this.plots = [];
    this.places = this.charts.map((chart) => {
      const plot = h("div", { class: "plot", role: "img", "aria-label": chart.title });
      const figures = h("div", { class: "scrolls" });
      byId("charts").append(h("div", { class: "chart" }, h("h3", {}, chart.title, legend(chart)), h("div", { class: "chart-row" }, plot, figures)));
      return { plot, figures };
    });
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.#create());
    const observer = new ResizeObserver(() => this.#resize());
    this.places.forEach(({ plot }) => observer.observe(plot));
  }

  add(rowsByEndpoint) {
    for (const [name, rows] of Object.entries(rowsByEndpoint)) {
      const known = this.rows.get(name) ?? new Map();
      rows.forEach((row) => known.set(Math.floor(row[TIME] / this.step) * this.step, row));
      for (const second of known.keys()) if (second < Date.now() / 1000 - this.seconds) known.delete(second);
      this.rows.set(name, known);
    }
  }

  show(endpoint) {
    const known = this.rows.get(endpoint) ?? new Map();
    const last = (Math.floor(Date.now() / 1000 / this.step) - 1) * this.step;
    const count = this.seconds / this.step;
    const seconds = Array.from({ length: count }, (_, index) => last - (count - 1 - index) * this.step);
    if (!this.plots.length) this.#create();
    this.charts.forEach((chart, index) => {
      const lines = drawn(chart).map(([, column]) => valuesOf(seconds, known, column, chart.empty, this.late));
      this.plots[index].setData([seconds, ...lines]);
      this.#table(chart, index, known);
    });
  }

  #table(chart, index, known) {
    const rows = [...known.values()].sort((one, other) => other[TIME] - one[TIME]).slice(0, SHOWN_ROWS);
    const columns = [[`Time, ${zone()}`], ...chart.lines.map(([name]) => [name, "number"])];
    const cells = rows.map((row) => [clock(row[TIME]), ...chart.lines.map(([, column]) => chart.format(row[column]))]);
    const { figures, plot } = this.places[index];
    figures.replaceChildren(rows.length ? table(`${chart.title}, last rows with requests`, columns, cells) : h("p", { class: "note" }, "No requests yet."));
    plot.setAttribute("aria-label", `${chart.title} over time; the table has the last rows`);
  }

  #create() {
    this.plots.forEach((plot) => plot.destroy());
    this.plots = this.charts.map((chart, index) => new uPlot(options(chart, this.#width(index)), [[], ...chart.lines.map(() => [])], this.places[index].plot));
  }

  #width(index) {
    return Math.max(200, this.places[index].plot.clientWidth);
  }

  #resize() {
    this.plots.forEach((plot, index) => {
      if (plot.width !== this.#width(index)) plot.setSize({ width: this.#width(index), height: HEIGHT });
    });
  }
}

/** Return the value of each time: `empty` without a row, and nothing where the row of the last times may come later. */
export function valuesOf(times, rows, column, empty, late) {
  const known = times.length - late;
  return times.map((time, index) => rows.get(time)?.[column] ?? (index < known ? empty : null));
}

const isMissing = (value) => value === null;

/** Return the indices of values without a value before or after them: a line alone does not show those. */
export function ends(values) {
  return [...values.keys()].filter((index) => !isMissing(values[index]) && (isMissing(values[index - 1]) || isMissing(values[index + 1])));
}

/** Return the range of the axis of values; without a value it is that of an idle endpoint. */
export function rangeOf(high, empty) {
  return [0, (empty === 0 ? Math.max(high ?? 0, 1) : (high ?? 100)) * 1.1];
}

/** The most important line of a chart is drawn last, so that no other hides it: errors, or the lowest percentile. */
const drawn = (chart) => (chart.lines.at(-1)[1] === ERRORS ? chart.lines : [...chart.lines].reverse());

const color = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

function legend(chart) {
  return h("span", { class: "legend" }, ...chart.lines.map(([name, , variable]) => h("span", { class: `key key${variable}` }, name)));
}

function options(chart, width) {
  const axis = { stroke: color("--quiet"), grid: { stroke: color("--rule"), width: 1 }, ticks: { show: false }, font: "11px system-ui" };
  return {
    width,
    height: HEIGHT,
    legend: { show: false },
    cursor: { show: false },
    axes: [
      { ...axis, size: 26, space: 90, values: (_, times) => times.map(clock) },
      { ...axis, size: 58, space: 28, values: (_, values) => values.map((value) => (value === null ? "" : chart.format(value))) },
    ],
    scales: { y: { range: (_, __, high) => rangeOf(high, chart.empty) } },
    series: [{}, ...drawn(chart).map(([label, , variable]) => ({ label, stroke: color(variable), width: 1.5, spanGaps: false, points: pointsOf(color(variable)) }))],
  };
}

function pointsOf(fill) {
  return { show: false, filter: (plot, series) => ends(plot.data[series]), fill, stroke: fill, size: 6 };
}
