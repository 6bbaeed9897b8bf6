"""Files of users other than models: JSON, arrays, recorded requests, tables and patterns."""

from __future__ import annotations

import io
import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from constructs_triton_client.bounded_files import ArrayFolder
from constructs_triton_client.generation import read_generation
from constructs_triton_client.recorded_requests import RecordedRequests
from constructs_triton_core.bounded_json import parse_bounded_json
from constructs_triton_core.errors import ConstructsTritonError
from constructs_triton_core.visible_text import visible
from constructs_triton_tools.cli.load_test.requests import BodyForm, read_lines
from constructs_triton_tools.measuring.generated_text import (
    count_all_tokens,
    count_tokens,
    generated_text,
)
from constructs_triton_tools.operations.diagnosis import diagnose_log, format_diagnoses
from constructs_triton_tools.planning.prices import read_prices
from triton_model_check.untrusted.ignore_patterns import compile_patterns

VALUES = (
    b'{"a": [1, 2.5e3, -0, null, true, "x\\u20ac"], "b": {"c": [[[]]], "d": {}}}',
    b"[1e308]",
    b'"\xc3\xbc"',
)
RECORDED = (
    b'{"version": 1, "requests": [{"name": "a", "target_model": "t", '
    b'"inputs": [{"name": "x", "datatype": "FP32", "shape": [1, 2], "data": [1.0, 2.0]}, '
    b'{"name": "f", "datatype": "FP32", "shape": [2], "file": "a.npy"}], '
    b'"outputs": [{"name": "y", "datatype": "BYTES", "shape": [1], "data": ["a"], '
    b'"absolute_tolerance": 1e-6, "relative_tolerance": 0}]}]}'
)
LINES = (
    b'{"input": {"x": "1.5,2:FP32", "y": "[[1, 2], [3, 4]]:FP32", "z": "@a.npy"}, "weight": 2}\n'
    b'{"target_model": "a.tar.gz", "body": {"inputs": [{"name": "x", "data": ["a"]}]}}\n'
)
PRICES = b"instance_type,price_per_hour\nml.g5.xlarge,1.408\nml.c5.large,0.1\n"
PATTERNS = b"*.log\n!keep/*.log\n/build/\n**/cache/**\n[a-z]*?.tmp\n\\#x\n"
GENERATION = b"""data: {"text_output": "a"}

data: {"choices": [{"delta": {"content": "a"}, "finish_reason": "stop"}], \
"usage": {"completion_tokens": 1}}

{"token": {"id": 1, "text": "a"}, "generated_text": null, "details": null}
data: [DONE]

data: {"error": "no"}

"""
LOG = (
    b"E1122 10:00:00.1 1 model_lifecycle.cc:654] failed to load 'm' version 1: "
    b"Internal: unable to load\n"
    b"CUDA out of memory. Tried to allocate 2.00 GiB\n"
)
NAMES = (b"model", b"a\x1b[31m\n::error::x\r", "\u202e\u2028\x9b".encode(), b"\xff##[error]")


def arrays() -> list[bytes]:
    """Arrays in each version of the format."""
    found = []
    for version in ((1, 0), (2, 0)):
        stream = io.BytesIO()
        formats: Any = np.lib.format  # NumPy 1 has no types for it
        formats.write_array(stream, np.arange(6, dtype="<f4").reshape(2, 3), version)
        found.append(stream.getvalue())
    return found


def read_values(content: bytes, _: Path) -> None:
    """What is accepted can be written again."""
    with suppress(ValueError):
        json.dumps(parse_bounded_json(content), allow_nan=False)


def read_array_file(content: bytes, folder: Path) -> None:
    """An array has the size of its file."""
    (folder / "a.npy").write_bytes(content)
    with suppress(ValueError, OSError):
        assert ArrayFolder(folder).read("a.npy").nbytes <= len(content)


def read_recorded(content: bytes, folder: Path) -> None:
    """Recorded requests can be compiled."""
    (folder / "a.npy").write_bytes(arrays()[0])
    (folder / "a.json").write_bytes(content)
    RecordedRequests.from_file(folder / "a.json").compile()


def read_line_file(content: bytes, folder: Path) -> None:
    """Requests of a load test."""
    (folder / "a.npy").write_bytes(arrays()[0])
    (folder / "a").write_bytes(content)
    for form in BodyForm:
        with suppress(ConstructsTritonError):
            read_lines(folder / "a", {}, with_batch=False, form=form)


def read_price_file(content: bytes, folder: Path) -> None:
    """Prices of instances."""
    (folder / "a.csv").write_bytes(content)
    read_prices(folder / "a.csv")


def read_patterns(content: bytes, _: Path) -> None:
    """Patterns of a .tritonignore, each matched with a long name."""
    for line in content.decode("utf-8", "replace").splitlines():
        with suppress(ValueError):
            compile_patterns([line]).check_file("/".join(["a" * 200] * 3))


def read_generation_events(content: bytes, _: Path) -> None:
    """Events of a model that generates text."""
    for event in read_generation([content]):
        generated_text(event)
        assert (count_tokens(event) or 0) >= 0
        assert (count_all_tokens(event) or 0) >= 0


def read_log(content: bytes, _: Path) -> None:
    """The log of a container."""
    if found := diagnose_log(content.decode("utf-8", "replace")):
        format_diagnoses(found)


def read_name(content: bytes, _: Path) -> None:
    """A name is shown as one line of printable characters that is no command."""
    shown = visible(content.decode("utf-8", "surrogateescape"))
    assert shown.isprintable()
    assert not shown.lstrip().startswith(("::", "##[", "##vso["))
