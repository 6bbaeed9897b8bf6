"""A small program in place of ``trtexec``: reads arguments as the real one does, and writes a
plan's header.

The file ``model.onnx`` decides what happens: a file that contains ``FAIL_`` and a word fails with
the message of that failure. ``TENSORRT_VERSION`` is the version of the TensorRT that it claims to
be.
"""

# ruff: noqa: T201 - it prints its log, as the real one does.

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path

REMOVED_IN_11 = ("--fp16", "--bf16", "--int8", "--fp8", "--int4", "--best", "--calib")
KNOWN = (
    "--onnx",
    "--saveEngine",
    "--minShapes",
    "--optShapes",
    "--maxShapes",
    "--memPoolSize",
    "--skipInference",
    "--timingCacheFile",
    "--builderOptimizationLevel",
    "--versionCompatible",
    "--hardwareCompatibilityLevel",
    "--staticPlugins",
    "--dynamicPlugins",
    "--profilingVerbosity",
)
FAILURES = {
    b"FAIL_operator": "[E] [TRT] ModelImporter.cpp: No importer registered for op: Mystery",
    b"FAIL_memory": "[E] Error[2]: [virtualMemoryBuffer.cpp] Error Code 2: OutOfMemory",
    b"FAIL_driver": "[E] CUDA initialization failure with error: 35",
}


def main() -> int:
    version = tuple(map(int, os.environ.get("TENSORRT_VERSION", "10.16.1.11").split(".")))
    options = dict(each.partition("=")[::2] for each in sys.argv[1:])
    print(
        f"&&&& RUNNING TensorRT.trtexec [TensorRT v{version[0]}"
        f"{version[1]:02}{version[2]:02}] # trtexec",
        flush=True,
    )
    known = {*KNOWN, *(REMOVED_IN_11 if version[0] < 11 else ())}
    known |= {"--stronglyTyped"} if version[0] >= 10 else set()
    unknown = options.keys() - known
    if unknown:
        print(f"[E] Unknown option: {sorted(unknown)[0]}")
        return 1
    return build(options, version)


def build(options: dict[str, str], version: tuple[int, ...]) -> int:
    content = Path(options["--onnx"]).read_bytes()
    for mark, message in FAILURES.items():
        if mark in content:
            print(message)
            print("&&&& FAILED TensorRT.trtexec")
            return 1
    if b"HANG" in content:
        signal.pause()
    print("[I] Engine built in 0.1 sec.", flush=True)
    time.sleep(float(os.environ.get("TRTEXEC_SECONDS", "0")))
    header = b"ftrt" + bytes(20) + bytes(version)
    Path(options["--saveEngine"]).write_bytes(header + content)
    Path(options["--timingCacheFile"]).write_bytes(b"timing")
    print("&&&& PASSED TensorRT.trtexec")
    return 0


if __name__ == "__main__":
    sys.exit(main())
