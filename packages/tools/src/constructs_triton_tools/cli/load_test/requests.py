"""Requests of a load test: from inputs, from a file of JSON lines, or random."""

from __future__ import annotations

import argparse
import base64
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import Any

import numpy as np

from constructs_triton_client import Invocation, SageMakerTransport, Transport
from constructs_triton_client.generation import encode_generation, read_generation
from constructs_triton_client.transports.model_names import ModelNames
from constructs_triton_client.wire import encode_request
from constructs_triton_client.wire.dtypes import dtype_of
from constructs_triton_core.bounded_json import parse_bounded_json
from constructs_triton_core.datatypes import by_datatype
from constructs_triton_core.errors import InvalidValueError, InvocationError
from constructs_triton_core.untrusted.regular_files import read_regular
from constructs_triton_tools.cli.input_values import read_input
from constructs_triton_tools.measuring.sample_inputs import sample_inputs
from triton_model_check.cli.tensor_options import read_shapes


class BodyForm(StrEnum):
    """How a request is written: as tensors, or as a flat object of Triton's generate extension."""

    BINARY = "binary"
    JSON = "json"
    GENERATE = "generate"


Weighted = tuple[float, Invocation]

#: Random requests that one test chooses from.
RANDOM_REQUESTS = 16
_RANDOM = re.compile(
    r"(?P<name>[^=]+)=(?P<type>\w+)\[(?P<shape>[\d, ]*)\](:(?P<low>-?\d+)\.\.(?P<high>-?\d+))?"
)
_FORMS = {"input", "body", "body_base64"}
_KEYS = {*_FORMS, "content_type", "target_model", "inference_component", "weight"}
_HIGHEST = 100
_MOST_BYTES = 1 << 30


def read_inputs(
    texts: Sequence[str], options: Mapping[str, Any], *, with_batch: bool, form: BodyForm
) -> list[Weighted]:
    """Return one request with these inputs, in the form of ``invoke``.

    Raises:
        InvalidValueError: an input has another form, or cannot be read.
    """
    inputs = dict(read_input(text, with_batch=with_batch) for text in texts)
    return [(1.0, _encode(inputs, options, form))]


def _encode(inputs: Mapping[str, Any], options: Mapping[str, Any], form: BodyForm) -> Invocation:
    """Return a request with these inputs, each an array with its datatype."""
    arrays = {name: array for name, (array, _) in inputs.items()}
    if form is BodyForm.GENERATE:
        # Triton derives the shape from the model's, and counts only the outer length of nested
        # lists.
        fields = {name: array.ravel() for name, array in arrays.items()}
        body = encode_generation(fields).body
        return Invocation(body, "application/json", dict(options))

    # NumPy has no type for BF16, so the arrays do not show which inputs have it.
    datatypes = {name: "BF16" for name, (_, datatype) in inputs.items() if datatype == "BF16"}
    encoded = encode_request(arrays, binary=form is BodyForm.BINARY, datatypes=datatypes)
    return Invocation(encoded.body, encoded.content_type, dict(options))


def whole_request(body: Any, options: Mapping[str, Any]) -> Invocation:
    """Return a request whose body is this JSON value, such as a chat completion."""
    return Invocation(
        json.dumps(body, separators=(",", ":")).encode(), "application/json", dict(options)
    )


def with_archives(
    invocations: Iterable[Weighted], transport: Transport, index: str | None
) -> list[Weighted]:
    """Return the requests with the archive of each model that is called by its name.

    ``index`` is the S3 URI of ``index.json`` (default: that of the endpoint).

    Raises:
        InvalidValueError: a name is unknown, or ``index`` is given for a container.
        InvocationError: the index cannot be read.
    """
    given = None
    if index:
        if not isinstance(transport, SageMakerTransport):
            raise InvalidValueError(
                "--index: applies to an endpoint, and this is a container; remove it"
            )
        given = transport.read_index(index)

    names = ModelNames(transport, given)
    found: list[Weighted] = []
    for weight, invocation in invocations:
        options = names.resolved(invocation.options)
        found.append((weight, replace(invocation, options=options)))
    return found


def begin_stream(transport: Transport, invocation: Invocation) -> None:
    """Send a request and close its stream at the first event.

    Raises:
        InvocationError: the endpoint or the model returned an error, or no event.
    """
    with closing(read_generation(transport.stream(invocation))) as events:
        if next(events, None) is None:
            raise InvocationError(
                "event stream: has no events; check that the model sends a response"
            )


# --- random ---------------------------------------------------------------------------------------


def random_invocations(
    texts: Sequence[str], options: Mapping[str, Any], *, seed: int, form: BodyForm
) -> list[Weighted]:
    """Return requests with random values, from texts such as ``ids=INT64[1,128]:0..30521``.

    Raises:
        InvalidValueError: a text has another form.
    """
    rng = np.random.default_rng(seed)
    found: list[Weighted] = []
    for _ in range(RANDOM_REQUESTS):
        inputs = dict(_draw(text, rng) for text in texts)
        found.append((1.0, _encode(inputs, options, form)))
    return found


def sample_invocations(
    arguments: argparse.Namespace, options: Mapping[str, Any], *, form: BodyForm
) -> list[Weighted]:
    """Return requests with random values for every input of a model in ``--repository``.

    Raises:
        InvalidValueError: the repository cannot be read, or the model or its inputs are unknown.
    """
    shapes = read_shapes(arguments.shapes)
    found: list[Weighted] = []
    for number in range(RANDOM_REQUESTS):
        inputs = sample_inputs(
            arguments.repository,
            arguments.model,
            [arguments.endpoint],
            shapes,
            is_random=True,
            seed=arguments.seed + number,
        )
        found.append((1.0, _encode(inputs, options, form)))
    return found


def _draw(text: str, rng: Any) -> tuple[str, tuple[Any, str]]:
    """Return the name of an input with random values, and their datatype."""
    match = _RANDOM.fullmatch(text)
    datatype = by_datatype(match["type"].upper()) if match else None
    if match is None or datatype is None:
        raise InvalidValueError(
            f"--random: must have the form NAME=DATATYPE[SHAPE], got {text!r}; "
            "write ids=INT64[1,128]:0..30521 or x=FP32[1,3,224,224]"
        )
    shape = [int(size) for size in match["shape"].replace(" ", "").split(",") if size]
    low = int(match["low"] or 0)
    high = int(match["high"] or _HIGHEST)
    values = _values(datatype.datatype, shape, low, high, rng)
    return match["name"], (values, datatype.datatype)


def _values(datatype: str, shape: list[int], low: int, high: int, rng: Any) -> Any:
    """Return random values: words, numbers from 0 to 1, or whole numbers within the bounds."""
    if datatype == "BYTES":
        count = int(np.prod(shape))
        words = [bytes(rng.integers(97, 123, 16, dtype=np.uint8)) for _ in range(count)]
        array = np.empty(len(words), dtype=object)
        array[:] = words
        return array.reshape(shape)
    if datatype == "BOOL":
        return rng.random(shape) < 0.5
    if datatype in ("FP16", "FP32", "FP64", "BF16"):
        values = rng.random(shape)
    else:
        values = rng.integers(low, high, shape, endpoint=True)
    known = by_datatype(datatype)
    assert known is not None
    return values.astype(dtype_of(known))


# --- JSON lines -----------------------------------------------------------------------------------


def read_lines(
    path: Path, options: Mapping[str, Any], *, with_batch: bool, form: BodyForm
) -> list[Weighted]:
    """Return the requests in a file with one JSON object per line.

    ``{"input": {"image": "@cat.png"}, "target_model": "cats", "weight": 3}``. Values of ``input``
    have the form of ``invoke``, with files relative to this file. ``body`` instead is a whole
    request, and ``body_base64`` with ``content_type`` are its bytes.

    Raises:
        InvalidValueError: the file cannot be read, or a line has another form.
    """
    try:
        lines = read_regular(path).decode("utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidValueError(
            f"--requests: {path} cannot be read ({error}); give a readable file"
        ) from None
    found: list[Weighted] = []
    left = _MOST_BYTES
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        weight, invocation = _read_line(
            path, number, line, options, with_batch=with_batch, form=form
        )
        left = _remaining(left, len(invocation.body), f"{path}: line {number}")
        found.append((weight, invocation))
    if not found:
        raise InvalidValueError(f"--requests: {path} has no lines; write one JSON object per line")
    return found


def _remaining(left: int, size: int, place: str) -> int:
    """Return how many bytes the requests may still have:
    lines may name the same file many times.
    """
    if size > left:
        raise InvalidValueError(
            f"{place}: the requests up to this line must have at most {_MOST_BYTES >> 30} GiB "
            "together; write fewer or smaller requests"
        )
    return left - size


def _read_arrays(place: str, texts: Iterable[str], *, with_batch: bool) -> dict[str, Any]:
    """Return each input of a line with its datatype.

    Raises:
        InvalidValueError: an input cannot be read, or all together are too large.
    """
    inputs: dict[str, Any] = {}
    left = _MOST_BYTES
    for text in texts:
        name, (array, datatype) = read_input(text, with_batch=with_batch)
        size = array.nbytes
        # An array of objects has only the references to the contents of files.
        if array.dtype == object:
            size += sum(len(element) for element in array.flat if isinstance(element, bytes))
        left = _remaining(left, size, place)
        inputs[name] = array, datatype
    return inputs


def _read_line(
    path: Path,
    number: int,
    line: str,
    options: Mapping[str, Any],
    *,
    with_batch: bool,
    form: BodyForm,
) -> Weighted:
    """Return the request of a line, and how often it is sent."""
    place = f"{path}: line {number}"
    entry = _parse(place, line)
    options = dict(options)
    if entry.get("target_model") is not None:
        options["TargetModel"] = str(entry["target_model"])
    if entry.get("inference_component") is not None:
        options["InferenceComponentName"] = str(entry["inference_component"])

    weight = entry.get("weight", 1)
    if isinstance(weight, bool) or not isinstance(weight, int | float) or not weight > 0:
        raise InvalidValueError(
            f"{place}: weight must be a number above 0, got {weight!r}; raise it"
        )

    if "body" in entry:
        return weight, whole_request(entry["body"], options)
    if "body_base64" in entry:
        return weight, _exact(place, entry, options)
    texts = _input_texts(place, path.parent, entry)
    inputs = _read_arrays(place, texts, with_batch=with_batch)
    return weight, _encode(inputs, options, form)


def _exact(place: str, entry: Mapping[str, Any], options: Mapping[str, Any]) -> Invocation:
    """Return a request with the bytes of a captured one."""
    content_type = entry.get("content_type")
    try:
        body = base64.b64decode(entry["body_base64"], validate=True)
        if not isinstance(content_type, str):
            raise TypeError("content_type is missing")
    except (TypeError, ValueError) as error:
        raise InvalidValueError(
            f"{place}: must have body_base64 and content_type ({error}); write the line again with "
            "`constructs-triton capture read --requests`"
        ) from None
    return Invocation(body, content_type, dict(options))


def _parse(place: str, line: str) -> dict[str, Any]:
    """Return the object of a line, which has one of the forms of a request."""
    try:
        entry = parse_bounded_json(line)
    except ValueError as error:
        raise InvalidValueError(
            f"{place}: must be JSON ({error}); write one object per line"
        ) from None
    if not isinstance(entry, dict) or not entry.keys() <= _KEYS or len(entry.keys() & _FORMS) != 1:
        raise InvalidValueError(
            f'{place}: must be an object with "input", "body" or "body_base64", and optionally '
            f"target_model, inference_component and weight, got {line[:80]!r}; correct its keys"
        )
    return entry


def _input_texts(place: str, folder: Path, entry: Mapping[str, Any]) -> Iterator[str]:
    """Yield the inputs of a line as ``invoke`` takes them; files are relative to ``folder``."""
    if not isinstance(entry["input"], dict):
        raise InvalidValueError(
            f'{place}: "input" must map names to strings; write {{"image": "@cat.png"}}'
        )
    for name, value in entry["input"].items():
        text = str(value)
        yield f"{name}=@{folder / text[1:]}" if text.startswith("@") else f"{name}={text}"
