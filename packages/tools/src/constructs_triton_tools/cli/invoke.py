"""``constructs-triton invoke``: send tensors to an endpoint and print its response."""

from __future__ import annotations

import argparse
import math
import re
from collections.abc import Iterable, Sequence
from datetime import timedelta
from pathlib import Path
from shutil import get_terminal_size
from typing import TYPE_CHECKING, Annotated, Any, TypedDict

# Its names are imported on first use, so --help does not load NumPy.
import constructs_triton_client
from constructs_triton_core.declared_values import Value
from constructs_triton_core.errors import InvocationError
from constructs_triton_core.program.argument_types import add_common
from constructs_triton_core.program.exit_codes import FoundWrongError
from constructs_triton_core.spelling import quoted
from constructs_triton_core.untrusted.drafts import sole_writer
from constructs_triton_core.untrusted.terminal import (
    print_json,
    print_lines,
    print_note,
    print_table,
)
from constructs_triton_tools.cli.invoke_bodies import (
    print_stream,
    print_token,
    read_body,
    send_body,
)
from constructs_triton_tools.cli.next_command import recommend
from constructs_triton_tools.cli.options import (
    Body,
    Requests,
    add_called_endpoint,
    add_connection,
    add_options,
    is_container,
    open_session,
    parse_duration,
    refuse_with,
)
from triton_model_check.cli.tensor_options import read_shapes

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from constructs_triton_client import InferenceResult, TritonClient

#: Triton's words for an input without the batch axis of a model whose max_batch_size is above 0.
_MISSING_BATCH_AXIS = "requires a batch dimension to be prepended"
_TOO_MANY_ROWS = re.compile(r"batch-size must be <= \d+")
_EXPECTED_SHAPE = re.compile(r"Expected \[([^]]{0,500})\], got \[([^]]{0,500})\]")
# Triton names the model and at most the wrong tensors. Source: triton core, infer_request.cc.
_WRONG_NAMES = re.compile(
    r"(?:unexpected inference (?:in|out)put .{0,500}|expected \d+ inputs but got \d+ inputs)"
    r" for model '([^']{1,500})'"
)
_SHOWN_ELEMENTS = 6
_DIGEST = re.compile(r"-[0-9a-f]{8}$")
_EPILOG = """\
inputs:
  IMAGE=@dog.jpg          the bytes of a file: BYTES of shape [1], with --batch [1, 1]
  ids=@ids.npy            a NumPy array with its dtype and shape
  x=1.0,2.0:FP32          values of a datatype: shape [2], with --batch [1, 2]
  'x=[[1,2],[3,4]]:INT64' a nested JSON list: shape [2, 2]

--body sends a JSON object as it is, and prints the response as it is: chat completions, or your own
form. --print-token prints an API key for SageMaker's OpenAI path, signed on your machine with your
credentials, and the base URL. Its owner may call this path of all endpoints in the Region that you
may call.

--random and --zeros read the shapes from a model repository, because SageMaker has no call that
returns them. Random numbers are between 0 and 1, whole numbers between 0 and 9 (UINT8: 255),
strings are words. With --stream, the inputs are fields of Triton's generate extension. The text is
printed as it arrives; --json prints each event as an object on a line. Otherwise, --json prints
only the response; without it, a request of this form in Python is printed too.

examples:
  constructs-triton invoke digits --input image=@seven.png --batch --endpoint-url http://127.0.0.1:8080
  constructs-triton invoke story --stream --input text_input='Once upon':BYTES \
--input max_tokens=9:INT32
  constructs-triton invoke chat --stream --body '{"messages": [...], "stream": true}'
  OPENAI_API_KEY=$(constructs-triton invoke chat --print-token --valid-for 1h)
  constructs-triton invoke resnet --random --repository models --shape image=3,224,224
"""


class _Inputs(TypedDict, total=False):
    inputs: Annotated[
        Sequence[str], Value("an input tensor, see below", flag="--input", metavar="NAME=VALUE")
    ]
    random: Annotated[bool, Value("send random data for every input", default=False)]
    zeros: Annotated[bool, Value("send zeros for every input", default=False)]
    print_token: Annotated[
        bool, Value("send nothing, and print an API key for SageMaker's OpenAI path", default=False)
    ]


class _Answer(TypedDict, total=False):
    outputs: Annotated[
        Sequence[str] | None, Value("return only this output", flag="--output", metavar="NAME")
    ]
    stream: Annotated[
        bool,
        Value(
            "call a model that generates, and print its text as it arrives; Triton needs "
            'inference_type generate_stream, and a body "stream": true',
            default=False,
        ),
    ]
    record: Annotated[
        Path,
        Value(
            "add the request and its response to FILE, for `constructs-triton verify`",
            metavar="FILE",
        ),
    ]
    valid_for: Annotated[
        timedelta,
        Value(
            "how long a printed token is valid, at most 12h; it expires with temporary credentials",
            default=timedelta(hours=12),
            default_text="12h",
            metavar="DURATION",
            read=parse_duration,
        ),
    ]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.description = (
        "Send one request to a deployed endpoint, a local endpoint or a container, "
        "and print the response. Say what to send in one of these ways: --input for each tensor, "
        "--random or --zeros for tensors with the shapes of a model repository, or --body for a "
        "whole JSON object. --print-token sends nothing."
    )
    parser.epilog = _EPILOG
    add_called_endpoint(parser)
    values = parser.add_mutually_exclusive_group(required=True)
    add_options(values, _Inputs)
    add_options(values, Body)
    add_options(parser, Requests)
    add_options(parser, _Answer)
    add_connection(parser)
    add_common(parser, "--json")


def run(arguments: argparse.Namespace) -> int:
    """Send one request and print the response."""
    if arguments.print_token:
        print_token(arguments)
        return 0
    if arguments.stream:
        return _stream(arguments)
    if arguments.body:
        return _send_body(arguments)
    _send_tensors(arguments)
    return 0


def _send_tensors(arguments: argparse.Namespace) -> None:
    """Send a request of tensors, record it if asked, and print the response.

    Raises:
        FoundWrongError: the model does not take these inputs, or does not have these outputs.
        InvocationError: the endpoint or the model returned another error.
    """
    inputs = _inputs(arguments)
    arrays = {name: array for name, (array, _) in inputs.items()}
    # NumPy has no type for BF16, so the arrays do not show which inputs have it.
    datatypes = {name: "BF16" for name, (_, datatype) in inputs.items() if datatype == "BF16"}
    result = _infer(arguments, arrays, datatypes)

    if arguments.record is not None:
        _record(arguments, arrays, datatypes, result)
    missing = [name for name in arguments.outputs or () if name not in result]
    if missing:
        raise FoundWrongError(
            f"--output: the response has no output {quoted(missing)}, got "
            f"{quoted(result)}; change --output"
        )
    _note_undeclared(arguments, result)

    if arguments.json:
        print_json(describe(result))
        return
    _print_result(result)
    if not arguments.inputs:
        _print_python_call(arguments, inputs)
    if arguments.record is not None:
        where = f" --endpoint-url {arguments.endpoint_url}" if arguments.endpoint_url else ""
        recommend(f"verify {arguments.endpoint} {arguments.record}{where}")


def _note_undeclared(arguments: argparse.Namespace, result: InferenceResult) -> None:
    """Warn about outputs that are not as the configuration says, if the repository is here."""
    if arguments.repository.is_dir():
        from constructs_triton_tools.measuring.declared_outputs import undeclared

        print_note(*(f"warning: {each}" for each in undeclared(arguments.repository, result)))


def _infer(
    arguments: argparse.Namespace, arrays: dict[str, NDArray[Any]], datatypes: dict[str, str]
) -> InferenceResult:
    """Return the response; an error of Triton that has a fix on the command line names it."""
    try:
        return connect(arguments).infer(
            arrays, arguments.outputs, datatypes=datatypes, **_invoke_options(arguments)
        )
    except InvocationError as error:
        refused = _WRONG_NAMES.search(str(error))
        if refused is not None:
            _raise_unknown_tensor(arguments, refused[1], list(arrays))
        if arguments.batch or not _lacks_batch_axis(str(error), arrays.values()):
            raise
        raise FoundWrongError(
            "--input: this model has a batch axis, and the inputs do not; add --batch"
        ) from None


def _raise_unknown_tensor(arguments: argparse.Namespace, model: str, inputs: list[str]) -> None:
    """Raise an error with the right names, if the model is in the repository and
    has no tensor of a name.
    """
    from constructs_triton_tools.measuring.sample_inputs import unknown_tensor

    problem = unknown_tensor(arguments.repository, model, inputs, arguments.outputs or ())
    if problem is not None:
        raise FoundWrongError(problem) from None


def _stream(arguments: argparse.Namespace) -> int:
    """Send a request to a model that generates, and print what arrives."""
    unfit = {
        "--batch": (arguments.batch, "the generate extension derives shapes itself; remove it"),
        "--output": (arguments.outputs, "a stream has all outputs; remove it"),
        "--record": (arguments.record, "`verify` sends no streams; remove it"),
        "--target-model": (
            arguments.target_model,
            "multi-model endpoints cannot stream; remove it",
        ),
    }
    refuse_with("--stream", unfit)
    if arguments.body:
        fields = read_body(arguments.body)
    else:
        fields = {name: array.ravel() for name, (array, _) in _inputs(arguments).items()}
    events = connect(arguments).infer_stream(fields, **_invoke_options(arguments))
    print_stream(events, as_json=arguments.json)
    return 0


def _send_body(arguments: argparse.Namespace) -> int:
    """Send a whole request, and print the response as it is."""
    unfit = {
        "--batch": (arguments.batch, "the body is sent as it is; remove it"),
        "--output": (arguments.outputs, "the body is sent as it is; remove it"),
        "--record": (arguments.record, "`verify` sends tensors; remove it"),
    }
    refuse_with("--body", unfit)
    send_body(arguments, connect(arguments), _invoke_options(arguments))
    return 0


def _inputs(arguments: argparse.Namespace) -> dict[str, tuple[NDArray[Any], str | None]]:
    """Return each input with its datatype, as given or with the shapes of a repository."""
    if arguments.inputs:
        from constructs_triton_tools.cli.input_values import read_input

        return dict(read_input(text, with_batch=arguments.batch) for text in arguments.inputs)
    from constructs_triton_tools.measuring.sample_inputs import sample_inputs

    likely = [*_names_of_archive(arguments.target_model or ""), arguments.endpoint]
    samples = sample_inputs(
        arguments.repository,
        arguments.model,
        likely,
        read_shapes(arguments.shapes),
        is_random=arguments.random,
    )
    return dict(samples)


def _names_of_archive(target_model: str) -> list[str]:
    """Return the names of models whose archive this may be:
    ``resnet`` for ``resnet-3f9c2a1b.tar.gz``.
    """
    name = target_model.removesuffix(".tar.gz")
    return [name, _DIGEST.sub("", name)]


def _print_python_call(arguments: argparse.Namespace, inputs: Any) -> None:
    """Print the request as a user's own code would send it."""
    from constructs_triton_tools.measuring.sample_inputs import python_call

    print_lines("A request of this form in Python, with zeros:", "")
    options = {**_client_options(arguments), "session": None, "region_name": arguments.region}
    call = python_call(arguments.endpoint, options, inputs, _invoke_options(arguments))
    print_lines(*call.split("\n"))


def _lacks_batch_axis(message: str, arrays: Iterable[NDArray[Any]]) -> bool:
    """Return whether Triton expects one dimension more.

    Its note about batches is in every such message. The only dimension of a single row counts as
    more rows than a batch may have.
    """
    if _TOO_MANY_ROWS.search(message) is not None:
        return all(array.ndim == 1 for array in arrays)
    shapes = _EXPECTED_SHAPE.search(message)
    if shapes is None or _MISSING_BATCH_AXIS not in message:
        return False
    expected, got = shapes.groups()
    return len(got.split(",")) == len(expected.split(",")) - 1


def _record(
    arguments: argparse.Namespace,
    inputs: dict[str, NDArray[Any]],
    datatypes: dict[str, str],
    result: InferenceResult,
) -> None:
    """Add the request to the file, which is created if it does not exist."""
    from constructs_triton_client.recorded_requests import RecordedRequest, RecordedRequests

    path = arguments.record
    with sole_writer(path.parent):
        before = list(RecordedRequests.from_file(path).requests) if path.exists() else []
        request = RecordedRequest.of(
            f"request-{len(before) + 1}",
            inputs,
            result,
            datatypes=datatypes,
            target_model=arguments.target_model,
        )
        RecordedRequests([*before, request]).save(path)


def connect(arguments: argparse.Namespace) -> TritonClient:
    """Return a client of the endpoint or of the container that the arguments name."""
    client = constructs_triton_client.TritonClient
    if is_container(arguments):
        transport = constructs_triton_client.HttpTransport(arguments.endpoint)
        return client(transport, target_model=arguments.target_model)
    return client.for_endpoint(arguments.endpoint, **_client_options(arguments))


def _client_options(arguments: argparse.Namespace) -> dict[str, Any]:
    return {
        "endpoint_url": arguments.endpoint_url,
        "session": open_session(arguments),
        "target_model": arguments.target_model,
        "index": arguments.index,
        "inference_component": arguments.inference_component,
        "wake_timeout": arguments.wake_timeout,
    }


def _invoke_options(arguments: argparse.Namespace) -> dict[str, Any]:
    """Return the parameters of InvokeEndpoint that belong to a request and not to the client."""
    return {"TargetVariant": arguments.target_variant} if arguments.target_variant else {}


def describe(result: InferenceResult) -> dict[str, Any]:
    """Return a result as values for JSON. Bytes that are not UTF-8 are shown as escapes."""
    outputs = [
        {
            "name": name,
            "datatype": result.datatypes[name],
            "shape": list(array.shape),
            "data": _to_values(array),
        }
        for name, array in result.items()
    ]
    return {
        "model_name": result.model_name,
        "model_version": result.model_version,
        "latency_seconds": result.latency_seconds,
        "outputs": outputs,
    }


def _to_values(array: NDArray[Any]) -> Any:
    """Return an array as nested lists that JSON can have."""
    if array.dtype.kind == "O":
        texts = [value.decode("utf-8", errors="backslashreplace") for value in array.ravel()]
        return _nest(texts, array.shape)
    if array.dtype.kind in "fV":
        # JSON has no NaN and no infinity, so their names are printed.
        numbers = array.ravel().astype("f8").tolist()
        shown = [number if math.isfinite(number) else str(number) for number in numbers]
        return _nest(shown, array.shape)
    return array.tolist()


def _nest(values: list[Any], shape: tuple[int, ...]) -> Any:
    """Return values as nested lists of a shape."""
    import numpy as np

    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array.reshape(shape).tolist()


def _print_result(result: InferenceResult) -> None:
    """Print a row for each output."""
    title = f"{result.model_name} version {result.model_version}"
    if result.latency_seconds is not None:
        title += f", {result.latency_seconds * 1e3:.1f} ms"
    if not result:
        print_lines(f"{title}: the response has no outputs")
        return

    rows = [
        (name, result.datatypes[name], list(array.shape), _shorten(array))
        for name, array in result.items()
    ]
    columns = ("output", "datatype", "shape", "values")
    print_table(columns, rows, title=title, box="HEAVY_HEAD", width=get_terminal_size().columns)


def _shorten(array: NDArray[Any]) -> str:
    """Return the first values of an array, and their number if there are more."""
    first = _to_values(array.ravel()[:_SHOWN_ELEMENTS])
    shown = [f"{value:.6g}" if isinstance(value, float) else str(value) for value in first]
    values = ", ".join(shown)
    if array.size > _SHOWN_ELEMENTS:
        return f"{values}, ... ({array.size} in all)"
    return values
