// Pictures: a pad to draw on, and pixels as numbers in a layout and on a scale that the user chooses.

import { h } from "./dom.js";

const PAD_SIDE = 256;
const LINE_WIDTH = 24;

export const LAYOUTS = { NCHW: "channels, height, width (NCHW)", NHWC: "height, width, channels (NHWC)" };
export const SCALES = {
  bytes: "0 to 255",
  unit: "0 to 1",
  signed: "−1 to 1",
  imagenet: "mean and deviation of ImageNet",
};
const MEAN = [0.485, 0.456, 0.406];
const DEVIATION = [0.229, 0.224, 0.225];

/** Return a pad to draw on with a finger, a pen or a mouse. `onChange` gets a PNG, or null once it is empty. */
export function drawingPad(label, onChange) {
  const canvas = h("canvas", { width: PAD_SIDE, height: PAD_SIDE, class: "pad", role: "img", "aria-label": label });
  const context = canvas.getContext("2d");
  let isDrawing = false;
  const clear = () => {
    context.fillStyle = "#000";
    context.fillRect(0, 0, PAD_SIDE, PAD_SIDE);
  };
  const position = (event) => {
    const box = canvas.getBoundingClientRect();
    return [(event.clientX - box.left) * PAD_SIDE / box.width, (event.clientY - box.top) * PAD_SIDE / box.height];
  };
  const end = () => {
    if (isDrawing) canvas.toBlob(async (blob) => onChange(new Uint8Array(await blob.arrayBuffer())), "image/png");
    isDrawing = false;
  };
  canvas.addEventListener("pointerdown", (event) => {
    isDrawing = true;
    canvas.setPointerCapture(event.pointerId);
    Object.assign(context, { lineWidth: LINE_WIDTH, lineCap: "round", lineJoin: "round", strokeStyle: "#fff" });
    context.beginPath();
    context.moveTo(...position(event));
    context.lineTo(...position(event));
    context.stroke();
  });
  canvas.addEventListener("pointermove", (event) => {
    if (!isDrawing) return;
    context.lineTo(...position(event));
    context.stroke();
  });
  canvas.addEventListener("pointerup", end);
  canvas.addEventListener("pointercancel", end);
  clear();
  const button = h("button", { type: "button", class: "quiet", onclick: () => { clear(); onChange(null); } }, "Clear");
  return h("div", { class: "pad-row" }, canvas,
    h("div", {}, h("p", { class: "note" }, "Draw here: light on dark, as large as the square."), button));
}

/** Return a box that takes a dropped or chosen file; `onFile` gets {name, type, body}. */
export function fileBox(id, label, onFile) {
  const input = h("input", { type: "file", id, onchange: () => take(input.files[0]) });
  const take = async (file) => {
    if (file) onFile({ name: file.name, type: file.type, body: new Uint8Array(await file.arrayBuffer()) });
  };
  const box = h("div", { class: "drop" }, h("label", { for: id }, label), input);
  box.addEventListener("dragover", (event) => { event.preventDefault(); box.classList.add("over"); });
  box.addEventListener("dragleave", () => box.classList.remove("over"));
  box.addEventListener("drop", (event) => {
    event.preventDefault();
    box.classList.remove("over");
    take(event.dataTransfer.files[0]);
  });
  return box;
}

/** Return a select without a choice, unless `chosen` is one: a layout or scale is never guessed. */
export function choice(id, label, options, chosen, onChange) {
  const select = h("select", { id, required: true, onchange: onChange },
    h("option", { value: "" }, "choose"),
    ...Object.entries(options).map(([value, text]) => h("option", { value, selected: value === chosen }, text)));
  return h("div", { class: "field" }, h("label", { for: id }, label), select);
}

/** Return the sizes of a picture's dims: {height, width, channels}; -1 is free, null if dims are no picture. */
export function pictureDims(dims, layout) {
  const all = dims.slice(-3);
  if (all.length < 3) return null;
  const [channels, height, width] = layout === "NHWC" ? [all[2], all[0], all[1]] : all;
  return [1, 3, -1].includes(channels) ? { channels: channels === -1 ? 3 : channels, height, width } : null;
}

/** Return {values, height, width} of a picture for dims, in row-major order. */
export async function pictureValues(body, dims, layout, scale, isInteger) {
  const size = pictureDims(dims, layout);
  if (!size) throw new Error(`A picture needs 1 or 3 channels; the dims [${dims}] have another number in this layout.`);
  const bitmap = await createImageBitmap(new Blob([body]));
  const width = size.width > 0 ? size.width : bitmap.width;
  const height = size.height > 0 ? size.height : bitmap.height;
  const canvas = new OffscreenCanvas(width, height);
  const context = canvas.getContext("2d");
  context.imageSmoothingQuality = "high";
  context.drawImage(bitmap, 0, 0, width, height);
  const { data } = context.getImageData(0, 0, width, height);
  const values = Array.from({ length: size.channels * height * width });
  for (let pixel = 0; pixel < height * width; pixel += 1) {
    for (let channel = 0; channel < size.channels; channel += 1) {
      const index = layout === "NHWC" ? pixel * size.channels + channel : channel * height * width + pixel;
      const value = scaled(channelOf(data, pixel, channel, size.channels), channel, scale);
      values[index] = isInteger ? Math.round(value) : Math.fround(value);
    }
  }
  return { values, height, width };
}

/** Grey is the luma of ITU-R BT.601, the weights that most libraries use. */
function channelOf(data, pixel, channel, channels) {
  const [red, green, blue] = data.subarray(pixel * 4, pixel * 4 + 3);
  return channels === 1 ? 0.299 * red + 0.587 * green + 0.114 * blue : data[pixel * 4 + channel];
}

function scaled(value, channel, scale) {
  if (scale === "unit") return value / 255;
  if (scale === "signed") return value / 127.5 - 1;
  if (scale === "imagenet") return (value / 255 - MEAN[channel]) / DEVIATION[channel];
  return value;
}

/** Draw a tensor as a picture. */
export function tensorPicture(values, shape, layout, scale) {
  const size = pictureDims(shape, layout);
  if (!size) return h("p", { class: "note" }, `The shape [${shape}] has neither 1 nor 3 channels in this layout.`);
  const { channels, height, width } = size;
  const canvas = h("canvas", { width, height, class: "tensor", role: "img", "aria-label": "The output as a picture" });
  const image = canvas.getContext("2d").createImageData(width, height);
  for (let pixel = 0; pixel < height * width; pixel += 1) {
    for (let channel = 0; channel < 3; channel += 1) {
      const own = channels === 1 ? 0 : channel;
      const index = layout === "NHWC" ? pixel * channels + own : own * height * width + pixel;
      image.data[pixel * 4 + channel] = unscaled(Number(values[index]), own, scale);
    }
    image.data[pixel * 4 + 3] = 255;
  }
  canvas.getContext("2d").putImageData(image, 0, 0);
  return canvas;
}

function unscaled(value, channel, scale) {
  if (scale === "unit") return value * 255;
  if (scale === "signed") return (value + 1) * 127.5;
  if (scale === "imagenet") return (value * DEVIATION[channel] + MEAN[channel]) * 255;
  return value;
}

const SIGNATURES = [["image/png", [0x89, 0x50, 0x4e, 0x47]], ["image/jpeg", [0xff, 0xd8, 0xff]], ["image/gif", [0x47, 0x49, 0x46, 0x38]]];

/** Return the type of a picture file by its first bytes, or null. */
export function pictureType(body) {
  const found = SIGNATURES.find(([, signature]) => signature.every((byte, index) => body[index] === byte));
  const isWebp = body.length > 12 && String.fromCharCode(...body.subarray(8, 12)) === "WEBP";
  return found ? found[0] : isWebp ? "image/webp" : null;
}
