"""Mutated responses: each is decoded or raises an error of this package.

To run it for longer: ``python packages/client/tests/property/test_wire_fuzz.py 1000000``.
"""

from __future__ import annotations

import random
import sys
from collections import Counter
from collections.abc import Callable

import numpy as np
import pytest

from constructs_triton_client.wire import decode_response, encode_response
from constructs_triton_client.wire.content_type import BINARY_CONTENT_TYPE
from constructs_triton_client.wire.server_side import InferenceRequest
from constructs_triton_core.errors import ResponseDecodingError

Response = tuple[bytes, str]
Mutation = Callable[[random.Random, bytes, str], Response]

NASTY = [
    b"-1",
    b"10000000000",
    b"1e999",
    b"NaN",
    b"-Infinity",
    b"null",
    b"[]",
    b"{}",
    b'""',
    b'"BF16"',
    b'"BYTES"',
    b'"FP32"',
    b"9223372036854775808",
    b"[" * 2000,
    b"0",
    b"true",
    b'"\xff"',
    b'"\\ud800"',
    b"1.5",
    b"[-1]",
    b"[0,4611686018427387904,4611686018427387904]",
    b"9" * 5000,
    b"\x00",
    b"\xff\xff\xff\xff",
]


def seeds() -> list[Response]:
    """Return valid responses with every type of tensor, in both formats."""
    arrays = {
        "a": np.arange(6, dtype="f4").reshape(2, 3),
        "b": np.array([b"x", b"", b"long " * 9], dtype=object),
        "c": np.array([True, False]),
        "d": np.zeros((0, 4), dtype="i8"),
        "e": np.array([b"same", b"size"], dtype=object),
        "f": np.array(3, dtype="u1"),
    }
    binary = encode_response(arrays)
    in_json = encode_response(arrays, request=InferenceRequest({}))
    halves = encode_response({"h": np.ones(4, dtype="f2"), "g": np.array([2**63], dtype="u8")})
    return [(r.body, r.content_type) for r in (binary, in_json, halves)]


def flip(rng: random.Random, body: bytes, content_type: str) -> Response:
    changed = bytearray(body)
    for _ in range(rng.randint(1, 4)):
        changed[rng.randrange(len(changed))] = rng.randrange(256)
    return bytes(changed), content_type


def change_digit(rng: random.Random, body: bytes, content_type: str) -> Response:
    """Change a shape, size or version; the JSON stays valid, so later checks are reached."""
    digits = [index for index, byte in enumerate(body) if byte in b"0123456789"]
    changed = bytearray(body)
    for at in rng.sample(digits, min(len(digits), rng.randint(1, 3))):
        changed[at] = rng.choice(b"0123456789")
    return bytes(changed), content_type


def flip_tensor(rng: random.Random, body: bytes, content_type: str) -> Response:
    """Change the tensors after the JSON: lengths of strings, booleans, numbers."""
    start = body.rfind(b"}") + 1
    if start in (0, len(body)):
        return flip(rng, body, content_type)
    changed = bytearray(body)
    changed[rng.randrange(start, len(body))] = rng.randrange(256)
    return bytes(changed), content_type


def cut(rng: random.Random, body: bytes, content_type: str) -> Response:
    return body[: rng.randrange(len(body))], content_type


def insert(rng: random.Random, body: bytes, content_type: str) -> Response:
    at = rng.randrange(len(body))
    return body[:at] + rng.choice(NASTY) + body[at:], content_type


def replace(rng: random.Random, body: bytes, content_type: str) -> Response:
    """Replace digits or a quoted word with an unusual value."""
    at = rng.randrange(len(body))
    return body[:at] + rng.choice(NASTY) + body[at + rng.randint(1, 8) :], content_type


def replace_value(rng: random.Random, body: bytes, content_type: str) -> Response:
    """Replace the value after a colon and correct the header size,
    so that the JSON may be valid.
    """
    size = int(content_type.rpartition("=")[2]) if "=" in content_type else len(body)
    head, rest = body[:size], body[size:]
    colons = [index for index, byte in enumerate(head) if byte == ord(":")]
    if not colons:
        return flip(rng, body, content_type)
    start = rng.choice(colons) + 1
    stops = [index for index in range(start, len(head)) if head[index] in b",}"] or [len(head)]
    head = head[:start] + rng.choice(NASTY) + head[rng.choice(stops[:3]) :]
    return (
        head + rest,
        f"{BINARY_CONTENT_TYPE};json-header-size={len(head)}"
        if "=" in content_type
        else content_type,
    )


def resize_header(rng: random.Random, body: bytes, content_type: str) -> Response:
    size = rng.choice(
        [0, 1, len(body), len(body) + 1, 10**10, -1, 10**30, rng.randrange(len(body))]
    )
    return body, f"{BINARY_CONTENT_TYPE};json-header-size={size}"


MUTATIONS: list[Mutation] = [
    flip,
    change_digit,
    flip_tensor,
    cut,
    insert,
    replace,
    replace_value,
    resize_header,
]


def fuzz(count: int, seed: int) -> Counter[str]:
    """Decode ``count`` mutated responses; only this package's error is caught."""
    rng, starts, seen = random.Random(seed), seeds(), Counter[str]()
    for _ in range(count):
        body, content_type = rng.choice(starts)
        for _ in range(rng.choice([1, 1, 1, 2])):
            body, content_type = rng.choice(MUTATIONS)(rng, body or b"{}:,", content_type)
        try:
            result = decode_response(body, content_type)
        except ResponseDecodingError:
            seen["refused"] += 1
        else:
            assert sum(array.nbytes for array in result.values()) <= 16 * len(body)
            seen["decoded"] += 1
    return seen


@pytest.mark.parametrize("seed", range(4))
def test_mutated_responses_decode_or_raise_one_error(seed: int) -> None:
    """Thousands of mutated responses are decoded or raise ``ResponseDecodingError``,
    and both occur.
    """
    seen = fuzz(2000, seed)
    assert seen["refused"] > 500
    assert seen["decoded"] > 50


if __name__ == "__main__":
    print(fuzz(int(sys.argv[1]), seed=2026))  # noqa: T201 - a command for humans
