import assert from "node:assert/strict";
import { test } from "node:test";

import { Waits, healthOf, hintOf, lostConnection } from "../../../src/constructs_triton_tools/local/page/static/health.js";

const MODEL = { name: "digits", version: "1", requests: 0, queue_ms: 0, compute_ms: 0 };

function stateOf(target, { sums = {}, model = {} } = {}) {
  const server = { name: "v", kind: "variant", process_id: 1, targets: [{ name: "v", model: "digits", recent_failures: 0, state: "ready", ...target }], models: [{ ...MODEL, ...model }] };
  return { endpoints: [{ name: "e", recent_calls: 0, recent_failures: 0, recent_errors: 0, ...sums, servers: [server] }] };
}

test("A run without calls needs no words, and one without failures says so.", () => {
  assert.deepEqual(healthOf(stateOf(), null), { text: "", isBad: false });
  const well = healthOf(stateOf({}, { sums: { recent_calls: 40 } }), null);
  assert.deepEqual(well, { text: "No model failed in 40 calls of the last minute", isBad: false });
});

test("Failures are counted with the names of their models, and wrong requests apart.", () => {
  const sums = { recent_calls: 9, recent_failures: 3, recent_errors: 4 };
  const { text, isBad } = healthOf(stateOf({ recent_failures: 3, state: "failed" }, { sums }), null);
  assert.equal(text, "3 of 9 calls failed in the last minute: digits; 1 wrong request was refused");
  assert.ok(isBad);
});

test("Calls that are all refused are no good news: nothing is known of the models.", () => {
  const { text, isBad } = healthOf(stateOf({}, { sums: { recent_calls: 9, recent_errors: 9 } }), null);
  assert.equal(text, "All 9 calls of the last minute were refused as wrong requests, the message is below");
  assert.ok(isBad);
});

test("A model that is not ready yet is named, and its state says what the next call does.", () => {
  assert.deepEqual(healthOf(stateOf({ state: "starting" }), null), { text: "Not ready yet: digits", isBad: false });
  assert.equal(healthOf(stateOf({ state: "not loaded" }), null).text, "1 model is not loaded yet, until the first call");
  assert.match(hintOf("not loaded"), /the first call loads it/);
  assert.equal(hintOf("ready"), "");
});

test("A model is overloaded if the requests of the last minute wait longer than they run.", () => {
  const waits = new Waits();
  waits.add(stateOf({}, { model: { requests: 100, queue_ms: 100, compute_ms: 1000 } }), 0);
  assert.equal(waits.longest(), null);
  waits.add(stateOf({}, { model: { requests: 200, queue_ms: 180_100, compute_ms: 5000 } }), 30_000);
  assert.deepEqual(waits.longest(), { name: "digits", queue: 1800, compute: 40 });
  const { text, isBad } = healthOf(stateOf(), waits.longest());
  assert.equal(text.replaceAll("\u00a0", " "), "Requests wait 1.80 s for digits, which computes for 40 ms: it is overloaded");
  assert.ok(isBad);
  waits.add(stateOf({}, { model: { requests: 200, queue_ms: 180_100, compute_ms: 5000 } }), 120_000);
  assert.equal(waits.longest(), null);
});

test("A short wait is no overload.", () => {
  const waits = new Waits();
  waits.add(stateOf(), 0);
  waits.add(stateOf({}, { model: { requests: 10, queue_ms: 500, compute_ms: 10 } }), 1000);
  assert.equal(waits.longest(), null);
});

test("A lost connection says from when the page is, and how long ago that was.", () => {
  assert.match(lostConnection(0, 50_000), /does not answer\. Everything below is from \d\d:00:00 UTC.*, less than a minute ago\.$/);
  assert.match(lostConnection(0, 60_000), /, 1 minute ago\.$/);
  assert.match(lostConnection(0, 200_000), /, 3 minutes ago\.$/);
});
