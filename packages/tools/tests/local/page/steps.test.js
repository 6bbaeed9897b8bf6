import assert from "node:assert/strict";
import { test } from "node:test";

import { memoryNote } from "../../../src/constructs_triton_tools/local/page/static/steps.js";

test("The note on memory names what is not counted, and the command for the type in AWS.", () => {
  const reasons = ["a: x", "b: x", "c: x", "d: x"];
  const note = memoryNote({ not_counted: reasons, instance_types: ["ml.g5.xlarge", "ml.g6.xlarge"] });
  assert.match(note, /Not counted: a: x; b: x; c: x; and 1 more\./);
  assert.match(note, /constructs-triton memory MODELS --instance-type ml\.g5\.xlarge$/);
  assert.doesNotMatch(memoryNote({ not_counted: [], instance_types: [] }), /Not counted|For AWS/);
});
