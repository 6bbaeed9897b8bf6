// Shows endpoints in AWS. The page asks once a minute while it can be seen; the server bounds the readings.

import { Charts } from "./charts.js";
import { byId, clock, h, moment, setText, table, zone } from "./dom.js";

const INTERVAL = 60_000;
/** CloudWatch delivers the figures of a minute some minutes later. */
const LATE_MINUTES = 3;
const SERVING = new Set(["InService", "Updating", "SystemUpdating", "RollingBack"]);

const charts = new Charts({ seconds: 3600, step: 60, late: LATE_MINUTES, requests: "Requests per minute", latency: "Model latency" });
let series = [];

byId("series").addEventListener("change", showCharts);
document.addEventListener("visibilitychange", () => { if (!document.hidden) read(); });
setInterval(() => { if (!document.hidden) read(); }, INTERVAL);
read();

async function read() {
  try {
    const response = await fetch("state");
    show(await response.json());
  } catch {
    setText(byId("connection"), "not connected: the command has ended");
  }
}

function show(state) {
  byId("failure").replaceChildren(...(state.error ? [h("div", { class: "failure" }, h("pre", {}, state.error))] : []));
  const endpoints = state.endpoints ?? [];
  const when = state.read_at ? `read at ${clock(state.read_at)} ${zone()}` : "not read";
  setText(byId("connection"), `${when}, ${state.metrics_read} metrics so far, ${state.readings_left} readings left`);
  setText(byId("address"), state.region ?? "");
  byId("endpoints").replaceChildren(...endpoints.map(endpointOf));
  byId("alarm-list").replaceChildren(listOf(endpoints.flatMap((each) => each.alarms.map((line) => ["bad", line])), "No alarm is in state ALARM."));
  byId("scaling-list").replaceChildren(...orNote(endpoints.flatMap((each) => each.scaling.map((scaling) => scalingOf(each, scaling))), "Nothing scales."));
  byId("deployment-list").replaceChildren(...endpoints.map(deploymentOf));
  showSeries(endpoints);
}

function endpointOf(endpoint) {
  const isServing = SERVING.has(endpoint.status);
  const shown = endpoint.status === "InService" ? "ready" : isServing ? "loading" : "failed";
  const status = h("span", { class: "state", "data-state": shown }, endpoint.status);
  const alarms = endpoint.alarms.length;
  const alarm = alarms ? h("span", { class: "state", "data-state": "failed" }, `${alarms} alarm${alarms === 1 ? "" : "s"}`) : "";
  const missing = endpoint.types_without_price;
  const cost = endpoint.cost_per_hour === null ? `not known: no price of ${missing.join(", ")}; use --prices` : `${endpoint.cost_per_hour} ${endpoint.currency || "in the currency of --prices"} an hour`;
  const rows = endpoint.variants.map((each) => [`${each.name}${each.is_shadow ? " (shadow)" : ""}`, typesOf(each), `${each.current_instances ?? "?"} of ${each.desired_instances ?? "?"}`, each.weight ?? "–", each.triton_version ?? "–"]);
  const copies = endpoint.components.map((each) => [each.name, each.status, `${each.current_copies ?? "?"} of ${each.desired_copies ?? "?"}`]);
  return h("div", { class: "deployed" }, h("h3", {}, endpoint.name, " ", status, " ", alarm), h("p", { class: "note" }, `Instances cost ${cost}.`),
    endpoint.failure_reason ? h("pre", { class: "bad" }, endpoint.failure_reason) : "",
    scrolled(`Variants of ${endpoint.name}`, [["Variant"], ["Instances by type"], ["Running", "number"], ["Weight", "number"], ["Triton", "number"]], rows),
    copies.length ? scrolled(`Inference components of ${endpoint.name}`, [["Component"], ["Status"], ["Copies", "number"]], copies) : "",
    listOf(endpoint.not_read.map((line) => ["note", `Not read: ${line}`])));
}

function typesOf(variant) {
  const pools = Object.entries(variant.instance_pools).map(([name, count]) => `${name} × ${count}`);
  return pools.length ? pools.join(", ") : `${variant.instance_type ?? "unknown"} × ${variant.current_instances ?? "?"}`;
}

function scalingOf(endpoint, scaling) {
  return h("div", {}, h("h3", {}, `${scaling.name} of ${endpoint.name}`), h("p", {}, `${scaling.minimum} to ${scaling.maximum} ${scaling.unit}`),
    listOf(scaling.policies.map((line) => ["", line]), "no policy"), listOf(scaling.activities.map((line) => ["note", line])));
}

function deploymentOf(endpoint) {
  const when = endpoint.last_modified ? moment(Date.parse(endpoint.last_modified) / 1000) : "unknown time";
  return h("div", {}, h("h3", {}, endpoint.name), h("p", {}, `${endpoint.deployment}, ${when}`), h("p", { class: "note" }, `configuration ${endpoint.endpoint_config}`), listOf(endpoint.pending.map((line) => ["", line])));
}

function scrolled(caption, columns, rows) {
  return h("div", { class: "scrolls", tabindex: "0", role: "region", "aria-label": caption }, table(caption, columns, rows));
}

const orNote = (elements, note) => (elements.length ? elements : [h("p", { class: "note" }, note)]);

function listOf(lines, none = "") {
  return lines.length ? h("ul", { class: "lines" }, ...lines.map(([kind, line]) => h("li", { class: kind }, line))) : none ? h("p", { class: "note" }, none) : "";
}

function showSeries(endpoints) {
  const found = endpoints.flatMap((endpoint) => Object.keys(endpoint.rows).map((name) => `${endpoint.name}/${name}`));
  if (JSON.stringify(found) !== JSON.stringify(series)) {
    series = found;
    byId("series").replaceChildren(...series.map((name) => h("option", { value: name }, name)));
  }
  for (const endpoint of endpoints) charts.add(Object.fromEntries(Object.entries(endpoint.rows).map(([name, rows]) => [`${endpoint.name}/${name}`, rows])));
  showCharts();
}

function showCharts() {
  charts.show(byId("series").value);
}
