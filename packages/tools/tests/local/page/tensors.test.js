import assert from "node:assert/strict";
import { test } from "node:test";

import { concat, decodeResponse, encodeRequest, encodeValues, eventStream } from "../../../src/constructs_triton_tools/local/page/static/tensors.js";

const encoder = new TextEncoder();

for (const [datatype, values] of [["INT8", [-1, 2]], ["INT64", [-3n, 4n]], ["FP32", [0.5, -2]], ["BOOL", [true, false]], ["BF16", [1.5, -2]]]) {
  test(`The bytes of ${datatype} are read as the values that were written.`, () => {
    const payload = encodeValues(datatype, values);
    const head = encoder.encode(JSON.stringify({ outputs: [{ name: "y", datatype, shape: [2], parameters: { binary_data_size: payload.length } }] }));
    const response = decodeResponse(`application/vnd.sagemaker-triton.binary+json;json-header-size=${head.length}`, concat([head, payload]));
    assert.deepEqual(response.outputs[0].values, values);
  });
}

test("Elements of BYTES have their length in front, and come back as bytes.", () => {
  const payload = encodeValues("BYTES", ["é", new Uint8Array([1, 2, 3])]);
  assert.deepEqual([...payload], [2, 0, 0, 0, 0xc3, 0xa9, 3, 0, 0, 0, 1, 2, 3]);
});

test("A request is JSON unless an input has bytes, a type without JSON or many values.", () => {
  const input = { name: "x", datatype: "FP32", shape: [1], values: [1] };
  assert.equal(encodeRequest([input], { binaryOutput: false }).text, '{"inputs":[{"name":"x","datatype":"FP32","shape":[1],"data":[1]}]}');
  const large = { ...input, shape: [2001], values: Array.from({ length: 2001 }, () => 0) };
  assert.match(encodeRequest([large], { binaryOutput: true }).contentType, /json-header-size=\d+$/);
});

function message(payload, headers = "") {
  const names = encoder.encode(headers);
  const view = new DataView(new ArrayBuffer(12));
  view.setUint32(0, 16 + names.length + payload.length);
  view.setUint32(4, names.length);
  return concat([new Uint8Array(view.buffer), names, payload, new Uint8Array(4)]);
}

async function payloads(parts) {
  const found = [];
  for await (const each of eventStream(new Blob(parts).stream())) found.push(new TextDecoder().decode(each));
  return found;
}

test("The payloads of an event stream are read, and an exception is an error.", async () => {
  const whole = concat([message(encoder.encode("one")), message(encoder.encode("two"))]);
  assert.deepEqual(await payloads([whole.slice(0, 15), whole.slice(15)]), ["one", "two"]);
  const failed = message(encoder.encode('{"Message":"no memory"}'), ":exception-type");
  await assert.rejects(payloads([failed]), /no memory/);
});
