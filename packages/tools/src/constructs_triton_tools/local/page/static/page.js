// Ties the parts of the page together: the events of the run, the selected model, its form and its answer.

import { answerOf, showStream } from "./answer.js";
import { callTexts, targetHeaders } from "./calls.js";
import { Charts } from "./charts.js";
import { byId, clock, h, setState, setText, table } from "./dom.js";
import { Waits, healthOf, hintOf, lostConnection } from "./health.js";
import { InputFields } from "./inputs.js";
import { Overview, kindOf, targetsOf, titleOf } from "./overview.js";
import { Steps } from "./steps.js";
import { decodeResponse, encodeRequest, generateRequest } from "./tensors.js";

const MOST_LOG_LINES = 2000;
const FAILED = 424;

const charts = new Charts();
const overview = new Overview(select);
const steps = new Steps();
const waits = new Waits();
const logs = new Map();
let state = { endpoints: [] };
let selected = null; // {key, endpoint, server, target} of the latest state
let form = null;
let fields = [];
let turns = 0; // how often a model was selected

setText(byId("address"), location.host);

// The events of the run.

const RETRY_MS = 2000;
const SILENCE_MS = 15000;
let events = null;
let heardAt = 0;
let stateAt = 0; // when the run was last heard

/** Connect again and again: a browser itself gives up after a response that is no event stream. */
function connect() {
  events?.close();
  heardAt = Date.now();
  events = new EventSource("events");
  events.addEventListener("open", () => {
    showConnection("live");
    logs.forEach((lines) => lines.splice(0)); // a new connection sends the log from its beginning
  });
  events.addEventListener("error", () => {
    showConnection("not connected");
    if (events.readyState === EventSource.CLOSED) setTimeout(connect, RETRY_MS);
  });
  on("state", showState);
  on("rows", (rows) => { charts.add(rows); if (selected) charts.show(selected.endpoint.name); });
  on("errors", showErrors);
  on("log", addLog);
}

function on(name, handle) {
  events.addEventListener(name, (event) => {
    heardAt = Date.now();
    if (stateAt) stateAt = heardAt;
    handle(JSON.parse(event.data));
  });
}

connect();
setInterval(() => {
  if (Date.now() - heardAt < SILENCE_MS) return;
  showConnection("not answering");
  connect();
}, RETRY_MS);

/** Without a connection the page keeps what it has shown, and says from when that is. */
function showConnection(connection) {
  const isLost = connection !== "live";
  setState(byId("connection"), connection);
  if (isLost && stateAt) showHealth({ text: lostConnection(stateAt), isBad: true });
  document.body.classList.toggle("lost", isLost && stateAt > 0);
}

function showState(latest) {
  state = latest;
  stateAt = Date.now();
  waits.add(state, stateAt);
  overview.show(state);
  showHealth(healthOf(state, waits.longest()));
  const targets = targetsOf(state);
  const found = targets.find((each) => each.key === selected?.key);
  if (!found && targets.length) select(remembered(targets) ?? targets[0].key);
  else if (found) {
    const isReplaced = startOf(found.server) !== startOf(selected.server);
    showSelected(found);
    if (isReplaced) refresh();
  }
  showDiagnoses();
}

const startOf = (server) => JSON.stringify([server.process_id ?? server.container, server.starts]);

/** Read the form again after a server was replaced; the fields keep what was written if they are the same. */
async function refresh() {
  const key = selected.key;
  const { read, isRead } = await readForm(selected);
  if (!isRead || selected.key !== key || JSON.stringify(read) === JSON.stringify(form)) return;
  form = read;
  const written = new Map(fields.map((each) => [each.tensor.name, each.text.value]));
  buildForm();
  for (const each of fields) each.text.value = written.get(each.tensor.name) ?? "";
}

async function readForm({ endpoint, server, target }) {
  const query = new URLSearchParams({ endpoint: endpoint.name, server: server.name, target: target.name });
  try {
    const response = await fetch(`form?${query}`, { signal: AbortSignal.timeout(SILENCE_MS) });
    const read = await response.json();
    return { read, isRead: response.ok, error: read.error };
  } catch (error) {
    return { read: null, isRead: false, error: `The run does not answer (${error.message}).` };
  }
}

/** Return the target that was selected before the page was loaded again. */
function remembered(targets) {
  const found = targets.find((each) => location.hash === `#${encodeURIComponent(each.key)}`);
  return found ? found.key : null;
}

// The selected model.

async function select(key) {
  const found = targetsOf(state).find((each) => each.key === key);
  if (!found) return;
  history.replaceState(null, "", `#${encodeURIComponent(key)}`);
  overview.mark(key);
  form = null;
  byId("answer").replaceChildren();
  byId("calls").replaceChildren();
  byId("form").replaceChildren(h("p", { class: "note" }, "Reading the configuration …"));
  showSelected(found);
  const isSelected = await readUntilRead(key);
  if (!isSelected) return;
  buildForm();
  steps.show(selected, form);
  showFailure();
  charts.show(selected.endpoint.name);
}

/** Read the form of the selected model, again after each failure; return whether it is still selected. */
async function readUntilRead(key) {
  for (const turn = ++turns; ;) {
    const { read, isRead, error } = await readForm(selected);
    if (turn !== turns || selected.key !== key) return false;
    if (isRead) {
      form = read;
      return true;
    }
    byId("form").replaceChildren(h("p", { class: "bad" }, `${error} Trying again …`));
    await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
  }
}

function showSelected(found) {
  selected = found;
  const { endpoint, server, target } = found;
  const title = titleOf(server, target);
  const of = title === endpoint.name ? "" : ` of ${endpoint.name}`;
  setText(byId("try-title"), `Try ${title}${of}${endpoint.servers.length > 1 ? `, ${kindOf(server, target)}` : ""}`);
  setState(byId("selected-state"), target.state);
  setText(byId("hint"), hintOf(target.state));
  steps.show(found, form);
  showFailure();
}

function showHealth({ text, isBad }) {
  setText(byId("health"), text);
  byId("health").classList.toggle("bad", isBad);
}

function showFailure() {
  const { target } = selected;
  const place = byId("failure");
  const step = steps.failed(target);
  const text = JSON.stringify([target.name, target.failed, target.diagnosis, step]);
  if (place.dataset.shown === text) return;
  place.dataset.shown = text;
  const where = [["Step", step], ["Your file", target.place]].filter(([, each]) => each);
  const known = diagnosis(target.diagnosis, where);
  place.replaceChildren(...(target.state === "failed" ? [h("div", { class: "failure" }, h("h3", {}, "The last call failed"), h("pre", {}, target.failed), known)] : []));
}

function diagnosis(found, where = []) {
  const rows = found ? [[found.meaning ? "Often" : "Cause", found.cause], ["Fix", found.fix], ...found.other_causes.map((each) => ["Or", each])] : [];
  if (found?.meaning) rows.unshift(["Not certain", found.meaning]);
  if (found?.if_none_fits) rows.push(["If it is something else", found.if_none_fits]);
  if (!rows.length && !where.length) return null;
  return h("dl", { class: "diagnosis" }, ...[...where, ...rows].flatMap(([title, text]) => [h("dt", {}, title), h("dd", {}, text)]));
}

// The form.

function buildForm() {
  const place = byId("form");
  if (selected.endpoint.is_asynchronous || form.is_shadow) {
    const why = form.is_shadow ? "A shadow variant receives copies of requests. It has no requests of its own." : "This endpoint is asynchronous: its requests are objects in S3. Call it as local up printed.";
    place.replaceChildren(h("p", { class: "note" }, why));
    fields = [];
    return;
  }
  const isGenerate = form.inference_type !== "infer";
  fields = form.inputs.map((each) => new InputFields(each, { hasBatch: form.max_batch_size > 0 && !isGenerate, isGenerate }));
  const notes = [...form.notes, ...(form.is_decoupled ? ["The model is decoupled. SageMaker answers its calls with status 501 unless inference_type is generate or generate_stream."] : []),
    ...(form.inputs.length ? [] : ["The configuration has no inputs, so the form has no fields."])];
  const binary = h("label", { class: "inline" }, h("input", { type: "checkbox", id: "binary-output" }), " answer in binary");
  const needsBinary = form.outputs.some((each) => ["FP16", "BF16"].includes(each.datatype));
  binary.querySelector("input").checked = needsBinary;
  place.replaceChildren(h("p", { class: "note" }, `Model ${form.model}, ${form.max_batch_size > 0 ? `up to ${form.max_batch_size} in a batch` : "no batching"}.`),
    ...fields.map((each) => each.element), ...notes.map((each) => h("p", { class: "note" }, each)),
    h("div", { class: "controls" }, h("button", { type: "submit", id: "send" }, "Send"), h("button", { type: "button", class: "quiet", onclick: showCalls }, "Show as code"), ...(isGenerate ? [] : [binary])));
}

function readCall() {
  const inputs = fields.map((each) => each.read()).filter(Boolean);
  const kind = form.inference_type;
  const binaryOutput = kind === "infer" && byId("binary-output").checked;
  const request = kind === "infer" ? { ...encodeRequest(inputs, { binaryOutput }), binaryOutput } : generateRequest(inputs);
  const call = { kind, url: location.origin, endpoint: selected.endpoint.name, region: form.region, component: form.component, variant: form.variant, targetModel: form.is_multi_model ? selected.target.name : null, modelName: form.is_multi_model ? selected.target.model : null };
  return { call, request, inputs };
}

byId("form").addEventListener("submit", async (event) => {
  event.preventDefault();
  if (!form) return;
  const place = byId("answer");
  const key = selected.key;
  byId("send").disabled = true;
  try {
    const made = readCall();
    showCalls();
    place.replaceChildren(h("p", { class: "note" }, "Waiting for the answer …"));
    await send(made, place);
  } catch (error) {
    if (selected.key === key) showError(place, String(error.message ?? error));
  } finally {
    if (byId("send")) byId("send").disabled = false;
  }
});

async function send({ call, request, inputs }, place) {
  const path = call.kind === "generate_stream" ? "invocations-response-stream" : "invocations";
  const start = performance.now();
  const response = await fetch(`/endpoints/${encodeURIComponent(call.endpoint)}/${path}`, { method: "POST", body: request.body, headers: { "Content-Type": request.contentType, ...targetHeaders(call) } });
  if (!response.ok) throw new Error(errorText(response.status, await response.text()));
  if (call.kind === "generate_stream") {
    await showStream(response, place, start);
    return;
  }
  const body = new Uint8Array(await response.arrayBuffer());
  const seconds = (performance.now() - start) / 1000;
  if (call.kind === "generate") {
    place.replaceChildren(h("div", { class: "answer" }, h("h3", {}, "Answer"), h("pre", {}, new TextDecoder().decode(body))));
    return;
  }
  place.replaceChildren(answerOf(decoded(response, body), form.outputs, inputs, seconds));
}

function decoded(response, body) {
  try {
    return decodeResponse(response.headers.get("Content-Type") ?? "", body);
  } catch (error) {
    throw new Error(`The answer cannot be read (${error.message}). If an output has bytes that are no text, such as a picture, choose "answer in binary".`, { cause: error });
  }
}

function errorText(status, text) {
  try {
    const members = JSON.parse(text);
    const own = members.OriginalMessage ?? members.Message ?? text;
    return `Status ${status}: ${status === FAILED ? JSON.parse(own).error : own}`;
  } catch {
    return `Status ${status}: ${text}`;
  }
}

function showError(place, text) {
  place.replaceChildren(h("div", { class: "failure", role: "alert" }, h("h3", {}, "No answer"), h("pre", {}, text)));
}

function showCalls() {
  let made;
  try {
    made = readCall();
  } catch (error) {
    showError(byId("answer"), String(error.message ?? error));
    return;
  }
  const texts = callTexts(made.call, made.request, made.inputs);
  const files = texts.files.map(({ name, body }) => h("a", { class: "save", download: name, href: URL.createObjectURL(new Blob([body])) }, `Save ${name}`));
  const note = files.length ? h("p", { class: "note" }, "Save the files first: ", ...files) : null;
  byId("calls").replaceChildren(h("h3", {}, "The same call"), ...(note ? [note] : []), ...[["Python", "python"], ["curl", "curl"], ["AWS CLI", "cli"]].map(([title, name]) => codeBlock(title, name, texts[name])));
}

function codeBlock(title, name, text) {
  const button = h("button", { type: "button", class: "quiet", onclick: async () => {
    await navigator.clipboard.writeText(text);
    setText(button, "Copied");
    setTimeout(() => setText(button, "Copy"), 1500);
  } }, "Copy");
  return h("details", { class: "source", open: name === "python" }, h("summary", {}, title), button, h("pre", { id: `call-${name}`, tabindex: "0" }, text));
}

// Errors, log and diagnoses.

function showErrors(errors) {
  const rows = errors.map((each) => [clock(each.time), each.endpoint, each.target || "–", each.status, each.fault, each.message]);
  const columns = [["Time"], ["Endpoint"], ["Target"], ["Status", "number"], ["Fault of the"], ["Message"]];
  byId("error-list").replaceChildren(rows.length ? table("Last errors", columns, rows) : h("p", { class: "note" }, "No call has failed."));
}

function addLog(added) {
  for (const [label, lines] of Object.entries(added)) {
    if (!logs.has(label)) {
      logs.set(label, []);
      byId("log-source").append(h("option", { value: label }, label));
    }
    const known = logs.get(label);
    known.push(...lines);
    known.splice(0, known.length - MOST_LOG_LINES);
  }
  showLog();
}

function showLog() {
  const isAll = byId("log-all").checked;
  const source = byId("log-source").value;
  const lines = (logs.get(source) ?? []).filter(([, , isProblem]) => isAll || isProblem || source === "local up");
  const place = byId("log");
  const isAtEnd = place.scrollHeight - place.scrollTop - place.clientHeight < 30;
  setText(place, lines.length ? lines.map(([, text]) => text).join("\n") : "No errors and no unknown lines. Choose “all lines” for the rest.");
  if (isAtEnd) place.scrollTop = place.scrollHeight;
}

byId("log-all").addEventListener("change", showLog);
byId("log-source").addEventListener("change", showLog);

function showDiagnoses() {
  const found = state.endpoints.flatMap((endpoint) => endpoint.servers.flatMap((server) => server.diagnoses.map((each) => ({ label: `${endpoint.name}/${server.name}`, ...each }))));
  const text = JSON.stringify(found);
  if (byId("diagnoses").dataset.shown === text) return;
  byId("diagnoses").dataset.shown = text;
  byId("diagnoses").replaceChildren(...found.map((each) => h("div", { class: "failure" }, h("h3", {}, each.label), h("pre", {}, each.line), diagnosis(each))));
}
