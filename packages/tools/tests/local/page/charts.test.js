import assert from "node:assert/strict";
import { test } from "node:test";

import { ends, rangeOf, valuesOf } from "../../../src/constructs_triton_tools/local/page/static/charts.js";

const ROWS = new Map([[1, [1, 40, 2]], [4, [4, 41, 0]]]);

test("A minute without a row has no requests, unless its row may come later.", () => {
  const times = [1, 2, 3, 4, 5, 6, 7];
  assert.deepEqual(valuesOf(times, ROWS, 1, 0, 2), [40, 0, 0, 41, 0, null, null]);
  assert.deepEqual(valuesOf(times, ROWS, 1, 0, 0), [40, 0, 0, 41, 0, 0, 0]);
});

test("A latency without a row is never drawn.", () => {
  assert.deepEqual(valuesOf([1, 2], ROWS, 2, null, 0), [2, null]);
});

test("A value without one before or after it has a point, also a single one.", () => {
  assert.deepEqual(ends([null, 5, null, 7, 8, 9, null]), [1, 3, 5]);
  assert.deepEqual(ends([null, 5]), [1]);
  assert.deepEqual(ends([5, 6, 7]), []);
});

test("The axis begins at zero and has room above the highest value, also without a value.", () => {
  assert.deepEqual(rangeOf(200, null).map(Math.round), [0, 220]);
  assert.deepEqual(rangeOf(null, null).map(Math.round), [0, 110]);
  assert.deepEqual(rangeOf(0, 0).map((each) => each.toFixed(1)), ["0.0", "1.1"]);
});
