// The fields of a form for one input of a model, made from its configuration.

import { h, setText } from "./dom.js";
import { LAYOUTS, SCALES, choice, drawingPad, fileBox, pictureType, pictureValues } from "./pictures.js";
import { encodeValues, isInteger, product } from "./tensors.js";

const MOST_SHOWN = 1000;
const WORDS = ["blue", "green", "red", "white"];
const FREE_SIZE = 4;
const DRAWING = "drawing.png";

let numberOfFields = 0;

/** A tensor's fields. `read()` returns {name, datatype, shape, values, ...}, or null for an empty optional one. */
export class InputFields {
  constructor(tensor, { hasBatch, isGenerate }) {
    this.tensor = tensor;
    this.isGenerate = isGenerate;
    this.isText = tensor.datatype === "BYTES";
    this.dims = [...(hasBatch ? [-1] : []), ...tensor.dims];
    this.hasBatch = hasBatch;
    this.content = null; // the bytes of a file or a drawing
    this.hidden = null; // values that are too many to be shown
    this.fileName = null;
    this.id = `input-${(numberOfFields += 1)}`;
    this.element = this.#build();
  }

  #build() {
    const { name, datatype, dims, optional } = this.tensor;
    const shape = this.dims.map((size, index) => (size < 0 ? (index === 0 && this.hasBatch ? 1 : this.isText ? 1 : FREE_SIZE) : size));
    this.shapeField = h("input", { id: `${this.id}-shape`, value: shape.join(", "), size: 12, inputmode: "numeric",
      readonly: !this.dims.some((size) => size < 0), autocomplete: "off" });
    this.text = h("textarea", { id: this.id, rows: this.isText ? 2 : 3, spellcheck: "false", oninput: () => this.#forget() });
    this.note = h("p", { class: "note", "aria-live": "polite" });
    const title = h("legend", {}, h("code", {}, name), ` ${datatype} [${dims}]${optional ? ", optional" : ""}`);
    return h("fieldset", {}, title, ...this.#sources(), this.note,
      this.isGenerate ? null : h("div", { class: "field short" }, h("label", { for: `${this.id}-shape` }, "Shape"), this.shapeField));
  }

  #sources() {
    if (!this.isText) return [this.#values("Numbers"), this.#buttons(), this.#picture()];
    const draw = h("details", { class: "source" }, h("summary", {}, "Draw a picture"),
      drawingPad(`Pad for ${this.tensor.name}`, (body) => this.#take(body && { name: DRAWING, body }, "your drawing, a PNG")));
    const file = this.isGenerate ? [] : [
      fileBox(`${this.id}-file`, "File or picture", (chosen) => this.#take(chosen, `${chosen.name}, ${chosen.body.length} bytes as they are`)),
      draw,
    ];
    return [this.#values("Text, or a JSON list of strings"), ...file];
  }

  #values(label) {
    return h("div", { class: "field" }, h("label", { for: this.id }, label), this.text);
  }

  #buttons() {
    const button = (text, value) => h("button", { type: "button", class: "quiet", onclick: () => this.fill(value) }, text);
    return h("div", { class: "controls" }, button("Random", "random"), button("Zeros", "zeros"));
  }

  #picture() {
    const declared = { FORMAT_NCHW: "NCHW", FORMAT_NHWC: "NHWC" }[this.tensor.format];
    if (this.tensor.dims.length < 3 && !declared) return null;
    const convert = () => this.#convert();
    const box = fileBox(`${this.id}-file`, "Picture", (file) => { this.picture = file; convert(); });
    const pad = drawingPad(`Pad for ${this.tensor.name}`, (body) => { this.picture = body && { name: DRAWING, body }; convert(); });
    this.layout = choice(`${this.id}-layout`, "Layout", LAYOUTS, declared, convert);
    this.scale = choice(`${this.id}-scale`, "Scale", SCALES, null, convert);
    return h("details", { class: "source" }, h("summary", {}, "Fill from a picture"), box, pad,
      h("div", { class: "choices" }, this.layout, this.scale));
  }

  async #convert() {
    const [layout, scale] = [this.layout, this.scale].map((each) => each.querySelector("select").value);
    if (!this.picture) return;
    if (!layout || !scale) {
      this.note.textContent = "Choose the layout and the scale that the model expects.";
      return;
    }
    try {
      const { values, height, width } = await pictureValues(this.picture.body, this.tensor.dims, layout, scale, isInteger(this.tensor.datatype));
      const own = this.tensor.dims.slice(-3).map((size, index) => {
        const which = layout === "NHWC" ? ["height", "width", "channels"][index] : ["channels", "height", "width"][index];
        return { channels: values.length / height / width, height, width }[which];
      });
      this.shapeField.value = [...(this.hasBatch ? [1] : []), ...this.tensor.dims.slice(0, -3).map(() => 1), ...own].join(", ");
      this.#show(values, `${this.picture.name} as ${width} × ${height} pixels`);
    } catch (error) {
      setText(this.note, error.message ?? error);
    }
  }

  #take(file, note) {
    this.content = file ? file.body : null;
    this.fileName = file ? file.name : null;
    this.text.disabled = Boolean(file);
    setText(this.note, file ? note : "");
    if (!file) return;
    const type = file.name === DRAWING ? null : pictureType(file.body);
    if (type) this.note.append(h("img", { class: "preview", alt: "The picture that is sent", src: URL.createObjectURL(new Blob([file.body], { type })) }));
    this.note.append(h("button", { type: "button", class: "quiet", onclick: () => this.#take(null, "") }, "Use text"));
  }

  #forget() {
    this.hidden = null;
    this.note.textContent = "";
  }

  fill(kind) {
    const count = product(this.#shape());
    const { datatype } = this.tensor;
    const draw = () => {
      if (kind === "zeros") return datatype === "BOOL" ? false : 0;
      if (datatype === "BOOL") return Math.random() < 0.5;
      if (isInteger(datatype)) return Math.floor(Math.random() * (datatype === "UINT8" ? 256 : 10));
      return Math.round(Math.random() * 1000) / 1000;
    };
    if (this.isText) this.text.value = WORDS[Math.floor(Math.random() * WORDS.length)];
    else this.#show(Array.from({ length: count }, draw), `${count} ${kind === "zeros" ? "zeros" : "random values"}`);
  }

  #show(values, note) {
    const isLong = values.length > MOST_SHOWN;
    this.hidden = isLong ? values : null;
    this.text.value = isLong ? "" : JSON.stringify(values);
    setText(this.note, isLong ? `${note}, not shown` : note);
  }

  #shape() {
    const sizes = this.shapeField.value.split(/[\s,×]+/).filter(Boolean).map(Number);
    if (sizes.some((size) => !Number.isInteger(size) || size < 0)) throw new Error(`${this.tensor.name}: the shape must be whole numbers, such as 1, ${FREE_SIZE}`);
    return sizes;
  }

  read() {
    const text = this.text.value.trim();
    if (this.tensor.optional && !text && !this.hidden && !this.content) return null;
    const values = this.content ? [this.content] : this.hidden ?? this.#parse(text);
    const shape = this.#fit(values);
    const { name, datatype } = this.tensor;
    return { name, datatype, shape, values: values.flat(Infinity), fileName: this.fileName,
      encoded: () => encodeValues(datatype, values.flat(Infinity)) };
  }

  #parse(text) {
    const { name, datatype } = this.tensor;
    if (this.isText && !text.startsWith("[")) return [this.text.value];
    if (!text) throw new Error(`${name}: needs values; write them, or press Random`);
    let parsed;
    try {
      parsed = JSON.parse(text.startsWith("[") || text === "true" || text === "false" ? text : `[${text}]`);
    } catch {
      if (this.isText) return [this.text.value];
      throw new Error(`${name}: the values must be JSON, such as [1, 2, 3]`);
    }
    const values = Array.isArray(parsed) ? parsed : [parsed];
    const wanted = this.isText ? "string" : datatype === "BOOL" ? "boolean" : "number";
    const wrong = values.flat(Infinity).find((each) => typeof each !== wanted);
    if (wrong !== undefined) throw new Error(`${name}: each value must be a ${wanted}, got ${JSON.stringify(wrong)}`);
    return values;
  }

  /** Return the shape of the values: that of nested lists, else the field's, with one free size adapted. */
  #fit(values) {
    const { name } = this.tensor;
    const count = values.flat(Infinity).length;
    if (Array.isArray(values[0])) {
      const shape = nestedShape(values);
      if (product(shape) !== count) throw new Error(`${name}: the nested lists must have equal lengths`);
      this.shapeField.value = shape.join(", ");
      return shape;
    }
    const shape = this.#shape();
    if (product(shape) === count) return shape;
    const free = this.dims.findLastIndex((size) => size < 0);
    const others = product(shape.filter((_, index) => index !== free));
    if (free >= 0 && others > 0 && count % others === 0) {
      shape[free] = count / others;
      this.shapeField.value = shape.join(", ");
      return shape;
    }
    throw new Error(`${name}: the shape [${shape.join(", ")}] has ${product(shape)} values, got ${count}`);
  }
}

function nestedShape(values) {
  return Array.isArray(values) ? [values.length, ...(values.length ? nestedShape(values[0]) : [])] : [];
}
