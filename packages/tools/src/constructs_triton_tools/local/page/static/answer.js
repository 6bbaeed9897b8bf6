// Shows a response: tensors as a table, scores with their labels, pictures, and streams as they come.

import { detectionsIn } from "./detections.js";
import { h, milliseconds, rate, table, visible } from "./dom.js";
import { LAYOUTS, SCALES, choice, pictureDims, pictureType, tensorPicture } from "./pictures.js";
import { eventStream } from "./tensors.js";

const MOST_VALUES = 12;
const MOST_SCORES = 5;
const MOST_CLASSES = 100_000;

/** Return an element for an answer; `outputs` are those of the configuration, `inputs` those of the request. */
export function answerOf(response, outputs, inputs, seconds) {
  const title = h("h3", {}, `Answer of ${response.model_name ?? "the model"}`, h("span", { class: "note" }, ` ${milliseconds(seconds * 1000)}, measured in this page`));
  const rows = response.outputs.map((each) => [h("code", {}, each.name), `${each.datatype} [${each.shape.join(", ")}]`, shortValues(each)]);
  const declared = new Map(outputs.map((each) => [each.name, each]));
  return h("div", { class: "answer" }, title, detectionsIn(response.outputs, inputs),
    h("div", { class: "scrolls" }, table("Outputs", [["Output"], ["Type and shape"], ["Values"]], rows)),
    ...response.outputs.flatMap((each) => [scores(each, declared.get(each.name)?.labels ?? []), pictures(each)]));
}

function textOf(value) {
  return value instanceof Uint8Array ? new TextDecoder().decode(value.subarray(0, 2000)) : String(value);
}

function number(value) {
  return typeof value === "number" && !Number.isInteger(value) ? String(Number(value.toPrecision(6))) : textOf(value);
}

function shortValues({ datatype, values }) {
  const shown = values.slice(0, MOST_VALUES).map((each) => {
    if (datatype !== "BYTES") return number(each);
    const type = pictureType(each);
    return type ? `${type}, ${each.length} bytes` : textOf(each);
  });
  const more = values.length > MOST_VALUES ? `, … ${values.length - MOST_VALUES} more` : "";
  return h("span", { class: "values" }, shown.join(", ") + more);
}

/** Return the highest values of a vector that has labels, or whose values are shares of 1. */
function scores(output, labels) {
  const size = output.shape.at(-1);
  const isVector = /^(FP|BF)/.test(output.datatype) && size > 1 && size <= MOST_CLASSES && output.values.length === size;
  const isShare = isVector && output.values.every((each) => each >= 0 && each <= 1);
  const total = isShare ? output.values.reduce((all, each) => all + each, 0) : 0;
  if (!isVector || (!labels.length && Math.abs(total - 1) > 0.01)) return null;
  const order = output.values.map((value, index) => [value, index]).sort((one, other) => other[0] - one[0]).slice(0, MOST_SCORES);
  const top = order[0][0];
  const rows = order.map(([value, index]) => [
    labels[index] ?? String(index),
    number(value),
    h("meter", { min: 0, max: isShare ? 1 : Math.max(top, 1e-9), value: Math.max(0, value), "aria-label": `Share of ${labels[index] ?? index}` }),
  ]);
  return h("div", { class: "scores" }, table(`Highest values of ${output.name}`, [[labels.length ? "Label" : `Index of ${output.name}`], ["Value", "number"], [""]], rows));
}

function pictures(output) {
  if (output.datatype === "BYTES") {
    return output.values.filter(pictureType).slice(0, 8).map((each) =>
      h("img", { class: "output", alt: `Picture of ${output.name}`, src: URL.createObjectURL(new Blob([each], { type: pictureType(each) })) }));
  }
  const isPicture = output.shape.length >= 3 && ["NCHW", "NHWC"].some((layout) => {
    const size = pictureDims(output.shape, layout);
    return size && size.height > 3 && size.width > 3 && size.channels * size.height * size.width === output.values.length;
  });
  if (!isPicture) return null;
  const place = h("div", {});
  const draw = () => {
    const [layout, scale] = [...box.querySelectorAll("select")].map((each) => each.value);
    if (layout && scale) place.replaceChildren(tensorPicture(output.values, output.shape, layout, scale));
  };
  const box = h("details", { class: "source" }, h("summary", {}, `Show ${output.name} as a picture`), h("div", { class: "choices" },
    choice(`layout-${output.name}`, "Layout", LAYOUTS, null, draw), choice(`scale-${output.name}`, "Scale", SCALES, null, draw)), place);
  return box;
}

/** Counts and times the events of a stream from when its request was sent, in milliseconds. */
export class StreamTimes {
  constructor(sentAt) {
    this.sentAt = sentAt;
    this.events = 0;
    this.tokens = 0; // null once an event has no number of its tokens
    this.first = null; // when the first text came, and how much there was then
  }

  add(event, now) {
    this.events += 1;
    const counts = [event.num_output_tokens].flat();
    const isCounted = counts.every((each) => Number.isInteger(each) && each >= 0);
    const hasText = event.text_output === undefined || [event.text_output].flat().join("") !== "";
    if (!isCounted && hasText) this.tokens = null;
    if (isCounted && this.tokens !== null) this.tokens += counts.reduce((all, each) => all + each, 0);
    if (hasText && !this.first) this.first = { at: now, events: this.events, tokens: this.tokens };
  }

  describe(now) {
    const whole = `${this.events} event${this.events === 1 ? "" : "s"} in ${milliseconds(now - this.sentAt)}`;
    if (!this.first) return whole;
    const unit = this.tokens === null ? "events" : "tokens";
    const seconds = (now - this.first.at) / 1000;
    const rest = this[unit] - this.first[unit];
    const speed = rest > 0 && seconds > 0 ? `, then ${rate(rest / seconds)} ${unit} a second` : "";
    return `first token after ${milliseconds(this.first.at - this.sentAt)}${speed}; ${whole}`;
  }
}

/** Show the events of a stream as they come; `sentAt` is when its request was sent. */
export async function showStream(response, place, sentAt) {
  const text = h("p", { class: "stream" });
  const note = h("p", { class: "note" });
  place.replaceChildren(h("div", { class: "answer" }, h("h3", {}, "Answer as it comes"), text, note));
  const times = new StreamTimes(sentAt);
  let last = sentAt;
  let rest = "";
  const decoder = new TextDecoder();
  for await (const payload of eventStream(response.body)) {
    last = performance.now();
    rest += decoder.decode(payload, { stream: true });
    const lines = rest.split("\n");
    rest = lines.pop();
    for (const line of lines.filter((each) => each.startsWith("data:"))) {
      const event = JSON.parse(line.slice(5));
      show(event, text);
      times.add(event, last);
      note.textContent = times.describe(last);
    }
  }
  if (rest.trim()) show(JSON.parse(rest), text);
  note.textContent = `${times.describe(last)}, complete`;
}

function show(event, place) {
  if (event.error) throw new Error(event.error);
  const { model_name: _model, model_version: _version, ...outputs } = event;
  const { text_output: text } = outputs;
  place.append(visible(text === undefined ? `${JSON.stringify(outputs)}\n` : [text].flat().join("")));
}
