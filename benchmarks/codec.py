"""Compares the wire codec with tritonclient and with JSON lists: ``python benchmarks/codec.py``.

For each case it prints the microseconds of this library, and how many times longer the others take.
A ratio below 1 means that the other is faster. The cases are images, batches of images, strings and
half-precision arrays. BF16 cannot be sent in JSON.

Strings of different lengths are decoded more slowly than from JSON, which C reads in one call. Each
element of BYTES begins with its length, so where it begins is known only after the one before it.
In Python that is two reads for each. Finding the lengths with NumPy and then splitting once was a
tenth faster, not twice.
"""

from __future__ import annotations

import argparse
import json
import math
import time
import timeit
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray
from tritonclient import http as incumbent

from constructs_triton_client.wire import decode_response, encode_request, encode_response

Array = NDArray[Any]


@dataclass(frozen=True)
class Case:
    """One tensor and the name of its datatype on the wire."""

    name: str
    array: Array
    datatype: str


def make_cases() -> list[Case]:
    """Return the tensors, the same in every run."""
    random = np.random.default_rng(0)
    image = random.random((1, 3, 224, 224), dtype=np.float32)
    batch = random.random((64, 3, 224, 224), dtype=np.float32)
    words = [random.bytes(int(size)).hex() for size in random.integers(2, 40, 10_000)]
    codes = [random.bytes(16).hex() for _ in range(10_000)]
    return [
        Case("1 image FP32", image, "FP32"),
        Case("64 images FP32", batch, "FP32"),
        Case("1 image FP16", image.astype(np.float16), "FP16"),
        Case("64 images FP16", batch.astype(np.float16), "FP16"),
        Case("1 image BF16", image.astype(ml_dtypes.bfloat16), "BF16"),
        Case("64 images BF16", batch.astype(ml_dtypes.bfloat16), "BF16"),
        Case("10,000 str, 4-78 long", np.array(words, dtype=object), "BYTES"),
        Case(
            "10,000 bytes, 4-78 long", np.array([w.encode() for w in words], dtype=object), "BYTES"
        ),
        Case("10,000 bytes, all 32", np.array([c.encode() for c in codes], dtype=object), "BYTES"),
        Case("1 FP32 scalar", np.ones((1, 1), np.float32), "FP32"),
    ]


def encode_here(case: Case) -> bytes:
    return encode_request({"X": case.array}, outputs=["Y"]).body


def encode_incumbent(case: Case) -> bytes:
    tensor = incumbent.InferInput("X", list(case.array.shape), case.datatype)
    tensor.set_data_from_numpy(case.array)
    body: bytes
    body, _ = incumbent.InferenceServerClient.generate_request_body(
        [tensor], [incumbent.InferRequestedOutput("Y")]
    )
    return body


def encode_json(case: Case) -> bytes:
    values = case.array.ravel().tolist()
    if case.datatype == "BYTES":
        values = [value.decode() if isinstance(value, bytes) else value for value in values]
    tensor = {"name": "X", "shape": case.array.shape, "datatype": case.datatype, "data": values}
    return json.dumps({"inputs": [tensor]}).encode()


def decode_incumbent(body: bytes, header_size: int) -> Array:
    result = incumbent.InferenceServerClient.parse_response_body(body, header_length=header_size)
    array: Array = result.as_numpy("X")
    return array


def decode_json(text: bytes, dtype: np.dtype[Any]) -> Array:
    tensor = json.loads(text)["inputs"][0]
    return np.array(tensor["data"], dtype=dtype).reshape(tensor["shape"])


def best_microseconds(actions: Sequence[Callable[[], object]], seconds: float) -> list[float]:
    """Return the shortest processor time of many rounds for each action; each takes about
    ``seconds``.

    The actions take turns, so that other load on the machine affects all of them equally.
    """
    timers = [timeit.Timer(action, timer=time.process_time) for action in actions]
    numbers = [max(1, int(0.005 / max(timer.timeit(1), 1e-6))) for timer in timers]
    best = [math.inf] * len(actions)
    deadline = time.monotonic() + seconds * len(actions)
    while time.monotonic() < deadline or math.inf in best:
        for index, (timer, number) in enumerate(zip(timers, numbers, strict=True)):
            best[index] = min(best[index], timer.timeit(number) / number * 1e6)
    return best


def measure(case: Case, seconds: float) -> None:
    response = encode_response({"X": case.array})
    header_size = int(response.content_type.rpartition("=")[2])
    encoders = [lambda: encode_here(case), lambda: encode_incumbent(case)]
    decoders: list[Callable[[], object]] = [
        lambda: decode_response(response.body, response.content_type)["X"],
        lambda: decode_incumbent(response.body, header_size),
    ]
    if case.datatype not in ("FP16", "BF16"):
        text = encode_json(case)
        encoders.append(lambda: encode_json(case))
        decoders.append(lambda: decode_json(text, case.array.dtype))
    for direction, actions in (("encode", encoders), ("decode", decoders)):
        here, *others = best_microseconds(actions, seconds)
        ratios = [f"{other / here:8.1f}x" for other in others]
        print(f"{case.name:26}{direction:8}{here:12.1f}  {'  '.join(ratios)}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--seconds", type=float, default=1.0, help="time for each measurement")
    arguments = parser.parse_args()
    print(f"{'case':26}{'':8}{'µs here':>12}  tritonclient   JSON lists")
    for case in make_cases():
        assert encode_here(case) == encode_incumbent(case), case.name
        measure(case, arguments.seconds)


if __name__ == "__main__":
    main()
