import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";

import { callTexts, targetHeaders } from "../../../src/constructs_triton_tools/local/page/static/calls.js";

const CALL = { kind: "infer", url: "http://127.0.0.1:8080", endpoint: "e", region: "eu-west-1" };
const request = (text) => ({ contentType: "application/json", body: new TextEncoder().encode(text), text, binaryOutput: false });

test("A quote in a request ends no string of the shell.", () => {
  const { curl, cli } = callTexts(CALL, request('{"a":"it\'s"}'), []);
  assert.match(curl, /--data-binary '\{"a":"it'\\''s"\}'/);
  assert.match(cli, /^printf %s '\{"a":"it'\\''s"\}' > request\.json\n/);
});

test("A long request is a file that the calls read.", () => {
  const { files, curl } = callTexts(CALL, request("x".repeat(5000)), []);
  assert.deepEqual(files.map((each) => each.name), ["request.json"]);
  assert.match(curl, /--data-binary @request\.json/);
});

test("The Python call has the inputs as arrays of their data types.", () => {
  const input = { name: "x", datatype: "INT32", shape: [1, 2], values: [1, 2] };
  const { python } = callTexts({ ...CALL, variant: "Green" }, request("{}"), [input]);
  assert.match(python, /"x": np\.array\(\[1, 2\], dtype="int32"\)\.reshape\(\(1, 2\)\)/);
  assert.match(python, /TargetVariant="Green"/);
});

test("A call chooses a component, a target model or a variant by SageMaker's headers.", () => {
  const headers = targetHeaders({ component: "c", targetModel: "m.tar.gz", variant: "v" });
  assert.deepEqual(Object.values(headers), ["c", "m.tar.gz", "v"]);
  assert.ok(Object.keys(headers).every((each) => each.startsWith("X-Amzn-SageMaker-")));
});

test("No name of an endpoint, variant or model is a command of the shell.", () => {
  const call = { ...CALL, endpoint: "$(touch RAN)", variant: "`touch RAN`", targetModel: "';touch RAN;'" };
  const { curl, cli } = callTexts(call, request("{}"), []);
  const folder = mkdtempSync(join(tmpdir(), "calls-"));
  for (const text of [curl, cli]) execFileSync("bash", ["-c", `curl() { :; }; aws() { :; }\n${text}`], { cwd: folder });
  const written = readdirSync(folder);
  rmSync(folder, { recursive: true });
  assert.deepEqual(written, ["request.json"]);
});
