import assert from "node:assert/strict";
import { test } from "node:test";

import { kindOf, targetsOf, titleOf } from "../../../src/constructs_triton_tools/local/page/static/overview.js";

const VARIANT = { name: "Blue", kind: "variant", is_multi_model: false, targets: [{ name: "Blue", model: "digits" }] };

test("Each target of each server has a key of its own.", () => {
  const state = { endpoints: [{ name: "a", servers: [VARIANT, { ...VARIANT, name: "Green" }] }] };
  const keys = targetsOf(state).map((each) => each.key);
  assert.deepEqual(keys, ['["a","Blue","Blue"]', '["a","Green","Blue"]']);
});

test("A target is named by its model, and a component by its own name.", () => {
  const [target] = VARIANT.targets;
  assert.equal(titleOf(VARIANT, target), "digits");
  assert.equal(titleOf({ ...VARIANT, kind: "component" }, { name: "c", model: "m" }), "c");
  assert.equal(kindOf({ ...VARIANT, kind: "shadow" }, target), "shadow Blue");
  assert.equal(kindOf({ ...VARIANT, is_multi_model: true }, target), "");
});
