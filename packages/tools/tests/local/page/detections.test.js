import assert from "node:assert/strict";
import { test } from "node:test";

import { detectionsOf } from "../../../src/constructs_triton_tools/local/page/static/detections.js";

const ENCODER = new TextEncoder();

function outputs(changes = {}) {
  const values = {
    num_detections: [2],
    boxes: [1, 2, 30, 40, 5, 6, 7, 8, 0, 0, 0, 0],
    scores: [0.9, 0.5, 0],
    classes: [3, 0, -1],
    labels: [ENCODER.encode("dog"), ENCODER.encode(""), ENCODER.encode("")],
    ...changes,
  };
  return Object.entries(values).filter(([, each]) => each).map(([name, each]) => ({ name, values: each }));
}

test("Only as many boxes are returned as were found, each with its corners, score and label.", () => {
  const [first, second, ...others] = detectionsOf(outputs());
  const { left, top, right, bottom, score, label } = first;
  assert.deepEqual([left, top, right, bottom, score, label], [1, 2, 30, 40, 0.9, "dog"]);
  assert.equal(second.left, 5);
  assert.deepEqual(others, []);
});

test("A class without labels has its number.", () => {
  assert.equal(detectionsOf(outputs({ labels: null }))[0].label, "3");
});

test("Nothing is found: an empty list.", () => {
  assert.deepEqual(detectionsOf(outputs({ num_detections: [0] })), []);
});

test("Outputs of other models, of several pictures, or of other lengths are not drawn.", () => {
  assert.equal(detectionsOf(outputs({ boxes: null })), null);
  assert.equal(detectionsOf(outputs({ num_detections: [1, 1] })), null);
  assert.equal(detectionsOf(outputs({ num_detections: [9] })), null);
});

test("Classes and numbers of INT64 are read.", () => {
  const [first] = detectionsOf(outputs({ num_detections: [1n], classes: [3n, 0n, 0n], labels: null }));
  assert.deepEqual([first.label, typeof first.colour], ["3", "string"]);
});
