import assert from "node:assert/strict";
import process from "node:process";
import { test } from "node:test";

import { bytes, milliseconds, moment, rate, visible, zone } from "../../../src/constructs_triton_tools/local/page/static/dom.js";

function inZone(name, work) {
  const before = process.env.TZ;
  process.env.TZ = name;
  try {
    return work();
  } finally {
    if (before === undefined) delete process.env.TZ;
    else process.env.TZ = before;
  }
}

const JULY = Date.parse("2026-07-23T19:16:09Z") / 1000;

test("A time has its zone, which is that of its own day.", () => {
  assert.equal(inZone("UTC", () => moment(JULY)), "2026-07-23 19:16:09 UTC");
  assert.equal(inZone("Europe/Berlin", () => moment(JULY)), "2026-07-23 21:16:09 UTC+02:00");
  assert.equal(inZone("America/St_Johns", () => zone(JULY)), "UTC-02:30");
});

test("A figure has as many digits as a person reads, and no value is a dash.", () => {
  const texts = [0, 0.1234, 99.6, 1200, null].map((each) => milliseconds(each).replace("\u00a0", " "));
  assert.deepEqual(texts, ["0 ms", "0.12 ms", "100 ms", "1.20 s", "–"]);
  assert.deepEqual([0, 2048, 5 * 2 ** 30].map(bytes), ["–", "2.0 KiB", "5.0 GiB"]);
  assert.deepEqual([0, 2.25, 12.4].map(rate), ["0", "2.3", "12"]);
});

test("Control characters and marks of direction are shown as escapes, and all other text as it is.", () => {
  assert.equal(visible("a\u202egnp.exe\u2066\u0000\x1b[31m\x9b\u200b\ufeff"), "a\\u202egnp.exe\\u2066\\u0000\\u001b[31m\\u009b\\u200b\\ufeff");
  assert.equal(visible("\u{e0041}"), "\\udb40\\udc41");
  const plain = "Größe\t<b>\n\u05e9\u05dc\u05d5\u05dd \ud83d\udc68\u200d\ud83d\udc69 \u0645\u06cc\u200c";
  assert.equal(visible(plain), plain);
});
