// Boxes that a detector found, drawn on the picture that was sent. The outputs are those of `model new --task detect`.

import { h, table, visible } from "./dom.js";
import { pictureType } from "./pictures.js";

const OUTPUTS = ["num_detections", "boxes", "scores", "classes"];
const LARGEST_SIDE = 1600; // of the drawing, in pixels
const COLOURS = ["#e6194b", "#3cb44b", "#0082c8", "#f58231", "#911eb4", "#008080", "#9a6324", "#000075"];

/** Return [{left, top, right, bottom, score, colour, label}], best first, of one picture; null if the outputs are not a detector's. */
export function detectionsOf(outputs) {
  const named = new Map(outputs.map((each) => [each.name, each]));
  if (OUTPUTS.some((name) => !named.has(name)) || named.get("num_detections").values.length !== 1) return null;
  // The classes of other detectors may be INT64, which JavaScript does not mix with numbers.
  const [[count], boxes, scores, classes] = OUTPUTS.map((name) => named.get(name).values.map(Number));
  if (boxes.length < 4 * count || scores.length < count || classes.length < count) return null;
  const labels = named.get("labels")?.values ?? [];
  return Array.from({ length: count }, (_, index) => {
    const [left, top, right, bottom] = boxes.slice(4 * index, 4 * index + 4);
    const label = labels[index]?.length ? new TextDecoder().decode(labels[index]) : String(classes[index]);
    return { left, top, right, bottom, score: scores[index], colour: COLOURS[classes[index] % COLOURS.length], label };
  });
}

/** Return the picture that was sent with the boxes of the answer, and a table of them; null if it is no answer of a detector. */
export function detectionsIn(outputs, inputs) {
  const found = detectionsOf(outputs);
  const picture = inputs.filter((each) => each.datatype === "BYTES" && each.values.length === 1).map((each) => each.values[0])
    .find((each) => each instanceof Uint8Array && pictureType(each));
  if (!found || !picture) return null;
  const title = found.length ? found.map(({ label, score }) => `${label} ${score.toFixed(2)}`).join(", ") : "no object";
  const canvas = h("canvas", { class: "detections", role: "img", "aria-label": `The picture with what was found: ${title}` });
  const note = h("p", { class: "note" }, found.length ? "" : "No object was found.");
  drawOn(canvas, picture, found).catch((error) => { note.textContent = `The picture cannot be shown: ${error.message}`; });
  const rows = found.map(({ label, score, ...box }) => [label, score.toFixed(2), ["left", "top", "right", "bottom"].map((side) => Math.round(box[side])).join(", ")]);
  const listed = rows.length ? h("div", { class: "scrolls" }, table("Objects", [["Object"], ["Score", "number"], ["Left, top, right, bottom in pixels"]], rows)) : null;
  return h("div", {}, canvas, note, listed);
}

async function drawOn(canvas, picture, found) {
  // The camera's orientation is applied, as the model's decoder does.
  const bitmap = await createImageBitmap(new Blob([picture], { type: pictureType(picture) }), { imageOrientation: "from-image" });
  const scale = Math.min(1, LARGEST_SIDE / Math.max(bitmap.width, bitmap.height));
  canvas.width = Math.max(1, Math.round(bitmap.width * scale));
  canvas.height = Math.max(1, Math.round(bitmap.height * scale));
  const context = canvas.getContext("2d");
  context.drawImage(bitmap, 0, 0, canvas.width, canvas.height);
  const line = Math.max(2, Math.round(Math.max(canvas.width, canvas.height) / 200));
  const letters = Math.max(10, line * 5);
  Object.assign(context, { lineWidth: line, font: `${letters}px sans-serif`, textBaseline: "top" });
  // The best comes last, so that it is in front.
  for (const { left, top, right, bottom, score, colour, label } of [...found].reverse()) {
    const text = `${label} ${score.toFixed(2)}`;
    const width = context.measureText(text).width + 2 * line;
    const y = Math.max(0, top * scale - letters - line);
    Object.assign(context, { strokeStyle: colour, fillStyle: colour });
    context.strokeRect(left * scale, top * scale, (right - left) * scale, (bottom - top) * scale);
    context.fillRect(left * scale, y, width, letters + line);
    context.fillStyle = "#fff";
    context.fillText(visible(text), left * scale + line, y + line / 2);
  }
}
