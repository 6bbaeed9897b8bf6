import assert from "node:assert/strict";
import { test } from "node:test";

import { StreamTimes } from "../../../src/constructs_triton_tools/local/page/static/answer.js";

function described(sentAt, events) {
  const times = new StreamTimes(sentAt);
  for (const [event, at] of events) times.add(event, at);
  return times.describe(events.at(-1)[1]).replaceAll("\u00a0", " ");
}

test("Times count from the moment of sending, and the rate from the first token.", () => {
  const events = [[{ text_output: "a" }, 1300], [{ text_output: "b" }, 1800], [{ text_output: "c" }, 2300]];
  assert.equal(described(1000, events), "first token after 300 ms, then 2.0 events a second; 3 events in 1.30 s");
});

test("Tokens are counted if each event with text has their number.", () => {
  const events = [
    [{ text_output: "" }, 1100],
    [{ text_output: "ab", num_output_tokens: 2 }, 1500],
    [{ text_output: "c", num_output_tokens: [20] }, 2500],
  ];
  assert.equal(described(1000, events), "first token after 500 ms, then 20 tokens a second; 3 events in 1.50 s");
});

test("A stream of one event has no rate, and one without text has no first token.", () => {
  assert.equal(described(0, [[{ text_output: "a" }, 500]]), "first token after 500 ms; 1 event in 500 ms");
  assert.equal(described(0, [[{ text_output: [""] }, 500]]), "1 event in 500 ms");
});
