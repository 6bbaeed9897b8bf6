"""``constructs-triton capture``: read the requests that an endpoint has captured."""

from __future__ import annotations

import argparse
import base64
import json
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypedDict

from constructs_triton_core.declared_values import Value
from constructs_triton_core.errors import ConstructsTritonError
from constructs_triton_core.facts.limits import RangeLimit
from constructs_triton_core.program.argument_types import add_common
from constructs_triton_core.untrusted.terminal import print_json, print_note, print_table
from constructs_triton_core.untrusted.written_files import write_whole
from constructs_triton_tools.cli.next_command import recommend
from constructs_triton_tools.cli.options import (
    add_actions,
    add_options,
    open_session,
    parse_duration,
)

if TYPE_CHECKING:
    from constructs_triton_client import RecordedRequest
    from constructs_triton_client.wire.responses import InferenceResult
    from constructs_triton_client.wire.server_side import InferenceRequest
    from constructs_triton_tools.operations.captured_requests import CapturedRequest


def _since(text: str) -> datetime:
    return datetime.now(UTC) - parse_duration(text)


class _Captured(TypedDict, total=False):
    variant: Annotated[str, Value("only requests of this variant", metavar="NAME")]
    since: Annotated[
        datetime, Value("only requests of this age, such as 2h or 1d", metavar="AGE", read=_since)
    ]
    limit: Annotated[
        int,
        Value(
            "read at most this many requests", default=1000, limit=RangeLimit(1, None), metavar="N"
        ),
    ]
    target_model: Annotated[
        str, Value("TargetModel of the requests that are written", metavar="NAME")
    ]
    record: Annotated[Path, Value("write requests and responses for verify", metavar="FILE")]
    requests: Annotated[Path, Value("write the requests for load-test", metavar="FILE")]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of ``capture`` and its only action, ``read``."""
    parser.description = "Use the traffic that an endpoint with data capture has written to S3."
    (read,) = add_actions(
        parser,
        read=(
            "print captured requests, and write them for verify and load-test",
            (
                "Print the captured requests with the tensors of each request and response. "
                "--record writes them for `constructs-triton verify`, --requests for `load-test "
                "--requests`. Needs s3:ListBucket and s3:GetObject for the prefix, and kms:Decrypt "
                "if its objects have a key."
            ),
        ),
    )
    read.add_argument(
        "source",
        metavar="SOURCE",
        help="s3://BUCKET/PREFIX of the data capture, a folder or a file",
    )
    add_options(read, _Captured)
    add_common(read, "--region", "--profile", "--json")


def run(arguments: argparse.Namespace) -> int:
    """Print the requests, and write the files that are asked for."""
    from constructs_triton_tools.operations.captured_requests import read_capture_files

    found = read_capture_files(
        arguments.source,
        lambda: open_session(arguments),
        variant=arguments.variant,
        since=arguments.since,
        left_out=lambda place: print_note(
            f"{place}: left out, because SageMaker has not written this line to its end"
        ),
    )
    requests = [_Read(item) for item in islice(found, arguments.limit)]
    is_cut = next(found, None) is not None
    if arguments.json:
        print_json({"requests": [request.to_dict() for request in requests], "has_more": is_cut})
    else:
        print_table(
            ("time", "event", "request", "response"), [request.row() for request in requests]
        )
    if is_cut:
        print_note(f"stopped after {arguments.limit} requests; use --limit to read more")
    if arguments.record:
        _record(arguments.record, requests, arguments.target_model)
    if arguments.requests:
        _write_lines(arguments.requests, requests, arguments.target_model)
    return 0


class _Read:
    """A captured request, decoded as far as it can be."""

    def __init__(self, captured: CapturedRequest) -> None:
        self.captured = captured
        self.inputs: InferenceRequest | None = None
        self.result: InferenceResult | None = None
        self.request_problem = self.response_problem = ""
        try:
            self.inputs = captured.decode_request()
        except ConstructsTritonError as error:
            self.request_problem = "not captured" if captured.request is None else str(error)
        try:
            self.result = captured.decode_response()
        except ConstructsTritonError as error:
            self.response_problem = "not captured" if captured.response is None else str(error)

    def row(self) -> Iterable[str]:
        time = self.captured.time
        yield f"{time:%Y-%m-%d %H:%M:%S}" if time else ""
        yield self.captured.event_id
        yield self.request_problem or self._request()
        yield self.response_problem or ", ".join(_shown(tensor) for tensor in self._outputs())

    def to_dict(self) -> dict[str, Any]:
        captured = self.captured
        return {
            "place": captured.place,
            "event_id": captured.event_id,
            "time": captured.time.isoformat() if captured.time else None,
            "inference_id": captured.inference_id,
            "inputs": list(self._inputs()),
            "outputs": list(self._outputs()),
            "problems": [
                problem for problem in (self.request_problem, self.response_problem) if problem
            ],
        }

    def _request(self) -> str:
        if self.inputs is not None and self.inputs.raw is not None:
            return f"{len(self.inputs.raw)} bytes"
        return ", ".join(_shown(tensor) for tensor in self._inputs())

    def _inputs(self) -> Iterator[dict[str, Any]]:
        if self.inputs is not None:
            yield from _tensors(self.inputs.inputs, self.inputs.datatypes)

    def _outputs(self) -> Iterator[dict[str, Any]]:
        if self.result is not None:
            yield from _tensors(self.result, self.result.datatypes)


def _tensors(arrays: Mapping[str, Any], datatypes: Mapping[str, str]) -> Iterator[dict[str, Any]]:
    for name, array in arrays.items():
        yield {"name": name, "datatype": datatypes[name], "shape": list(array.shape)}


def _shown(tensor: Mapping[str, Any]) -> str:
    return f"{tensor['name']} {tensor['datatype']}{tensor['shape']}"


def _record(path: Path, requests: Iterable[_Read], target_model: str | None) -> None:
    """Write what ``verify`` compares: tensors of requests that were answered."""
    from constructs_triton_client.recorded_requests import RecordedRequests

    all_requests = list(requests)
    complete = [
        _recorded(item, number, target_model)
        for number, item in enumerate(all_requests)
        if item.inputs is not None and item.inputs.inputs and item.result is not None
    ]
    RecordedRequests(complete).save(path)
    print_note(
        f"wrote {path}: {len(complete)} requests, {len(all_requests) - len(complete)} left out"
    )
    recommend(f"verify NAME {path}")


def _recorded(read: _Read, number: int, target_model: str | None) -> RecordedRequest:
    from constructs_triton_client.recorded_requests import RecordedRequest, RecordedTensor

    assert read.inputs is not None
    assert read.result is not None
    name = read.captured.event_id or f"request-{number}"
    recorded = RecordedRequest.of(name, read.inputs.inputs, read.result, target_model=target_model)
    inputs = {
        key: RecordedTensor(array, read.inputs.datatypes[key])
        for key, array in read.inputs.inputs.items()
    }
    return RecordedRequest(recorded.name, inputs, recorded.outputs, target_model)


def _write_lines(path: Path, requests: Iterable[_Read], target_model: str | None) -> None:
    """Write what ``load-test`` sends: the bytes of every request."""
    bodies = [
        request.captured.request for request in requests if request.captured.request is not None
    ]
    target = {"target_model": target_model} if target_model else {}
    lines = (
        json.dumps(
            {
                "body_base64": base64.b64encode(body.content).decode(),
                "content_type": body.content_type,
                **target,
            }
        )
        for body in bodies
    )
    write_whole(path, "".join(f"{line}\n" for line in lines))
    print_note(f"wrote {path}: {len(bodies)} requests")
    recommend(f"load-test NAME --requests {path}")
