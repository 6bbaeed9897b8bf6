// The KServe v2 protocol: requests and responses as JSON, or as JSON followed by the tensors' bytes.

const BINARY = "application/vnd.sagemaker-triton.binary+json";
const encoder = new TextEncoder();

/** Bytes of an element, how a DataView calls it, and NumPy's name. BYTES elements vary in length. */
export const DATATYPES = {
  BOOL: { size: 1, view: "Uint8", dtype: "bool" },
  UINT8: { size: 1, view: "Uint8", dtype: "uint8" },
  UINT16: { size: 2, view: "Uint16", dtype: "uint16" },
  UINT32: { size: 4, view: "Uint32", dtype: "uint32" },
  UINT64: { size: 8, view: "BigUint64", dtype: "uint64" },
  INT8: { size: 1, view: "Int8", dtype: "int8" },
  INT16: { size: 2, view: "Int16", dtype: "int16" },
  INT32: { size: 4, view: "Int32", dtype: "int32" },
  INT64: { size: 8, view: "BigInt64", dtype: "int64" },
  FP16: { size: 2, view: "Float16", dtype: "float16" },
  FP32: { size: 4, view: "Float32", dtype: "float32" },
  FP64: { size: 8, view: "Float64", dtype: "float64" },
  BF16: { size: 2, view: "Uint16", dtype: "uint16" },
  BYTES: { size: null, view: null, dtype: "object" },
};

export const isInteger = (datatype) => /^U?INT/.test(datatype);
export const isBinaryOnly = (datatype) => datatype === "FP16" || datatype === "BF16";
export const product = (shape) => shape.reduce((all, each) => all * each, 1);

/** Return the bytes of a tensor. `values` are numbers, booleans, strings or Uint8Arrays, in row-major order. */
export function encodeValues(datatype, values) {
  if (datatype === "BYTES") return encodeByteStrings(values);
  const { size, view } = DATATYPES[datatype];
  const data = new DataView(new ArrayBuffer(size * values.length));
  const set = data[`set${view}`];
  if (!set) throw new Error(`This browser cannot write ${datatype}; use a newer one, or the Python client.`);
  const convert = datatype === "BF16" ? upperHalf : view.startsWith("Big") ? (each) => BigInt(each) : Number;
  values.forEach((value, index) => set.call(data, index * size, convert(value), true));
  return new Uint8Array(data.buffer);
}

/** Return the upper 16 bits of a number as FP32, rounded to even: its BF16. */
function upperHalf(value) {
  const bits = new DataView(new ArrayBuffer(4));
  bits.setFloat32(0, Number(value));
  const all = bits.getUint32(0);
  return ((all + 0x7fff + ((all >>> 16) & 1)) >>> 16) & 0xffff;
}

function encodeByteStrings(values) {
  const parts = values.flatMap((value) => {
    const content = value instanceof Uint8Array ? value : encoder.encode(value);
    const length = new DataView(new ArrayBuffer(4));
    length.setUint32(0, content.length, true);
    return [new Uint8Array(length.buffer), content];
  });
  return concat(parts);
}

export function concat(parts) {
  const whole = new Uint8Array(parts.reduce((all, each) => all + each.length, 0));
  let position = 0;
  for (const part of parts) {
    whole.set(part, position);
    position += part.length;
  }
  return whole;
}

/** Return {contentType, body, text}: JSON if every input can be JSON and none is large, else binary. */
export function encodeRequest(inputs, { binaryOutput }) {
  const isBinary = inputs.some((each) =>
    isBinaryOnly(each.datatype) || each.values.length > 2000 || each.values.some((value) => value instanceof Uint8Array));
  const parameters = binaryOutput ? { parameters: { binary_data_output: true } } : {};
  if (!isBinary) {
    const entries = inputs.map(({ name, datatype, shape, values }) => ({ name, datatype, shape, data: values }));
    const text = JSON.stringify({ inputs: entries, ...parameters });
    return { contentType: "application/json", body: encoder.encode(text), text };
  }
  const payloads = inputs.map((each) => encodeValues(each.datatype, each.values));
  const entries = inputs.map(({ name, datatype, shape }, index) => (
    { name, datatype, shape, parameters: { binary_data_size: payloads[index].length } }));
  const head = encoder.encode(JSON.stringify({ inputs: entries, ...parameters }));
  return { contentType: `${BINARY};json-header-size=${head.length}`, body: concat([head, ...payloads]), text: null };
}

/** A generate request has the inputs as members, a tensor with one value as that value. */
export function generateRequest(inputs) {
  const members = Object.fromEntries(inputs.map((each) => [each.name, each.values.length === 1 ? each.values[0] : each.values]));
  const text = JSON.stringify(members);
  return { contentType: "application/json", body: encoder.encode(text), text };
}

/** Return the outputs of a response: {name, datatype, shape, values}, BYTES as Uint8Arrays. */
export function decodeResponse(contentType, body) {
  const size = /json-header-size=(\d+)/.exec(contentType);
  const head = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(size ? body.subarray(0, Number(size[1])) : body));
  let position = size ? Number(size[1]) : 0;
  const outputs = (head.outputs ?? []).map((each) => {
    const length = each.parameters?.binary_data_size;
    if (length === undefined) return { ...each, values: fromJson(each) };
    const region = body.subarray(position, position + length);
    position += length;
    return { ...each, values: decodeValues(each.datatype, region) };
  });
  return { ...head, outputs };
}

function fromJson({ datatype, data }) {
  const flat = (data ?? []).flat(Infinity);
  return datatype === "BYTES" ? flat.map((each) => encoder.encode(each)) : flat;
}

function decodeValues(datatype, region) {
  const view = new DataView(region.buffer, region.byteOffset, region.byteLength);
  if (datatype === "BYTES") return decodeByteStrings(view, region);
  const { size, view: kind } = DATATYPES[datatype];
  const get = view[`get${kind}`];
  if (!get) throw new Error(`This browser cannot read ${datatype}; use a newer one, or the Python client.`);
  const read = (index) => {
    const value = get.call(view, index * size, true);
    if (datatype === "BF16") return fromUpperHalf(value);
    return datatype === "BOOL" ? value !== 0 : value;
  };
  return Array.from({ length: region.length / size }, (_, index) => read(index));
}

function fromUpperHalf(value) {
  const bits = new DataView(new ArrayBuffer(4));
  bits.setUint32(0, value << 16);
  return bits.getFloat32(0);
}

function decodeByteStrings(view, region) {
  const values = [];
  for (let position = 0; position + 4 <= region.length;) {
    const length = view.getUint32(position, true);
    values.push(region.subarray(position + 4, position + 4 + length));
    position += 4 + length;
  }
  return values;
}

/** Yield the payloads of an AWS event stream as they arrive; an exception event is thrown as an error. */
export async function* eventStream(stream) {
  let rest = new Uint8Array();
  for await (const part of pieces(stream)) {
    rest = concat([rest, part]);
    while (rest.length >= 12) {
      const view = new DataView(rest.buffer, rest.byteOffset, rest.byteLength);
      const total = view.getUint32(0);
      if (rest.length < total) break;
      const headers = view.getUint32(4);
      const payload = rest.slice(12 + headers, total - 4);
      const names = new TextDecoder().decode(rest.subarray(12, 12 + headers));
      if (names.includes(":exception-type")) throw new Error(JSON.parse(new TextDecoder().decode(payload)).Message);
      yield payload;
      rest = rest.slice(total);
    }
  }
}

async function* pieces(stream) {
  const reader = stream.getReader();
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    yield value;
  }
}
