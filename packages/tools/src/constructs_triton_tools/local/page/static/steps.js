// The steps of a call with their times in the queue and in compute, and the batch sizes of the models.

import { byId, bytes, h, milliseconds, setText, table } from "./dom.js";

const COUNTS = ["requests", "failures", "queue_ms", "compute_ms"];

export class Steps {
  constructor() {
    this.begin = new Map(); // counters at the time of "Count from now", by server and model
    this.selected = null; // {server, target} of the latest state
    this.form = null;
    this.ended = new Map(); // requests that ended at a step, by model
    byId("restart-counts").addEventListener("click", () => this.#restart());
  }

  #restart() {
    for (const model of this.selected?.server.models ?? []) this.begin.set(this.#key(model), model);
    if (this.selected) this.show(this.selected, this.form);
  }

  #key(model) {
    return JSON.stringify([this.selected.server.process_id, model.name, model.version]);
  }

  /** Return a model's counters since the begin; a model that was loaded again counts from zero. */
  #since(model) {
    const begin = this.begin.get(this.#key(model));
    if (!begin || COUNTS.some((name) => model[name] < begin[name])) return model;
    const batches = Object.entries(model.batches).map(([size, count]) => [size, count - (begin.batches[size] ?? 0)]);
    return { ...model, ...Object.fromEntries(COUNTS.map((name) => [name, model[name] - begin[name]])), batches: Object.fromEntries(batches.filter(([, count]) => count > 0)) };
  }

  /** Return the step of an ensemble that failed the last call: what the error names, else where requests end. */
  failed(target) {
    if (!this.#isEnsemble() || target.state !== "failed") return "";
    return target.failed_step || (this.ended.size ? [...this.ended].sort(([, one], [, other]) => other - one)[0][0] : "");
  }

  #isEnsemble() {
    const steps = this.form?.steps ?? [];
    return steps.some((each) => each.model !== this.form.model) && steps.every((each) => !each.called_by);
  }

  /**
   * Set how many requests each step answered with an error of its own making. The server counts a TritonError
   * as a success, so these are the requests that no step after it received.
   */
  #countEnded(models) {
    this.ended = new Map();
    for (const step of this.#isEnsemble() ? this.form.steps : []) {
      const readers = this.form.steps.filter((each) => each.reads.some((name) => step.writes.includes(name)));
      const received = readers.map(({ model }) => (models.get(model)?.requests ?? 0) + (models.get(model)?.failures ?? 0));
      const lost = readers.length ? (models.get(step.model)?.requests ?? 0) - Math.max(...received) : 0;
      if (lost > 0) this.ended.set(step.model, lost);
    }
  }

  /** Return a model with its counts as a caller sees them; Triton counts a failed call of an ensemble twice. */
  #counted(model) {
    const ended = this.ended.get(model.name) ?? 0;
    const isOwnEnsemble = this.#isEnsemble() && [this.form.model, this.selected.target.name].includes(model.name);
    return { ...model, answered: model.requests - ended, failed: isOwnEnsemble ? "–" : model.failures + ended };
  }

  show(selected, form) {
    this.selected = selected;
    this.form = form;
    const { server, target } = selected;
    const models = new Map(server.models.map((each) => [each.name, this.#since(each)]));
    this.#countEnded(models);
    const failed = this.failed(target);
    // Triton calls a model of a multi-model container by the name of its archive.
    if (server.is_multi_model && form && models.has(target.name)) models.set(form.model, models.get(target.name));
    setText(byId("steps-note"), server.no_statistics ? `Times are not available: ${server.no_statistics}` : "Means of a request in the server, from its own statistics. The gateway also counts the connection to the server, and this page the way to the gateway.");
    byId("restart-counts").hidden = Boolean(server.no_statistics);
    const layers = [];
    for (const step of form?.steps ?? []) (layers[step.layer] ??= []).push(step);
    const longest = Math.max(...[...models.values()].map((each) => (each.queue_ms + each.compute_ms) / (each.requests || 1)), 1e-9);
    byId("graph").replaceChildren(h("ol", { class: "layers" }, ...layers.filter(Boolean).map((layer) =>
      h("li", {}, ...layer.map((step) => stepCard(step, models.get(step.model), longest, server, step.model === failed))))));
    byId("batches").replaceChildren(batchTable(server, server.models.map((each) => this.#counted(models.get(each.name)))), ...memoryParts(server));
  }
}

function stepCard(step, model, longest, server, hasFailed) {
  const runsAs = server.stand_ins[step.model];
  const standIn = runsAs ? h("p", { class: "tensors" }, `stand-in: ${runsAs}`) : null;
  const reads = step.reads.length ? h("p", { class: "tensors" }, `${step.reads.join(", ")} → ${step.writes.join(", ")}`) : null;
  const called = step.called_by ? h("p", { class: "tensors" }, `called by ${step.called_by}`) : null;
  const times = server.no_statistics || !model ? h("p", { class: "note" }, "not available") : stepTimes(model, longest);
  const failure = hasFailed ? h("p", { class: "bad" }, "failed the last call") : null;
  return h("div", { class: hasFailed ? "step failed" : "step" }, h("h3", {}, step.model), failure, reads, called, standIn, times);
}

function stepTimes(model, longest) {
  const [queue, compute] = [model.queue_ms, model.compute_ms].map((each) => each / (model.requests || 1));
  const bar = svgBar([["queue", queue / longest], ["compute", compute / longest]]);
  const none = model.requests ? null : "no requests yet";
  return h("div", {}, bar, h("p", { class: "times" }, none ?? `queue ${milliseconds(queue)}, compute ${milliseconds(compute)}`));
}

function svgElement(tag, attributes) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  Object.entries(attributes).forEach(([name, value]) => element.setAttribute(name, value));
  return element;
}

/** A bar of two parts. Its widths are attributes of SVG, which need no style in the HTML. */
function svgBar(parts) {
  const svg = svgElement("svg", { class: "bar", viewBox: "0 0 100 4", preserveAspectRatio: "none", "aria-hidden": "true" });
  let x = 0;
  for (const [name, share] of parts) {
    svg.append(svgElement("rect", { class: name, x, y: 0, height: 4, width: Math.max(0, 100 * share) }));
    x += 100 * share;
  }
  return svg;
}

function batchTable(server, models) {
  const why = server.no_statistics;
  const titles = new Map(server.targets.map((each) => [each.name, each.model || each.name]));
  if (why || !models.length) return h("p", { class: "note" }, why ? "Batch sizes are not available." : "No model is loaded yet.");
  const rows = models.map((each) => {
    const counts = Object.entries(each.batches);
    const executions = counts.reduce((all, [, count]) => all + count, 0);
    const mean = counts.reduce((all, [size, count]) => all + Number(size) * count, 0) / executions;
    const sizes = counts.map(([size, count]) => `${size}\u00a0×\u00a0${count}`).join(", ");
    const per = (sum) => (each.requests ? milliseconds(sum / each.requests) : "–");
    return [titles.get(each.name) ?? each.name, each.answered, each.failed, per(each.queue_ms), per(each.compute_ms), executions ? mean.toFixed(1) : "–", sizes || "–", bytes(each.memory_bytes)];
  });
  const columns = [["Model"], ["Requests", "number"], ["Failed", "number"], ["Queue", "number"], ["Compute", "number"], ["Mean batch", "number"], ["Batch size × executions"], ["Own process", "number"]];
  return table("Models of this server", columns, rows);
}

/** Return the table of memory: what the models take at least, beside what is measured. */
function memoryParts({ memory }) {
  if (!memory.places.length) return [];
  const rows = memory.places.map((each) => [each.place, bytes(each.at_least_bytes), each.measured_bytes === null ? "not measured" : bytes(each.measured_bytes)]);
  const columns = [["Memory of"], ["At least", "number"], ["Measured", "number"]];
  return [table("Memory of this server", columns, rows), h("p", { class: "note" }, memoryNote(memory))];
}

/** Return what the estimate leaves out, and the command that estimates for the instances in AWS. */
export function memoryNote({ not_counted: reasons, instance_types: types }) {
  const left = reasons.length ? ` Not counted: ${reasons.slice(0, 3).join("; ")}${reasons.length > 3 ? `; and ${reasons.length - 3} more` : ""}.` : "";
  const command = types.length ? ` For AWS: constructs-triton memory MODELS --instance-type ${types[0]}` : "";
  return `At least: what the loaded models and the server take on this machine, as calculated.${left}${command}`;
}
