"""The program of docs/guides/batch.md, with a job that follows AWS's documentation
and the real server.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import numpy as np
import pytest
from programs import PROJECT
from triton_server import needs_server

from constructs_triton_tools.local import LocalEndpoint

pytestmark = [pytest.mark.e2e, needs_server, pytest.mark.xdist_group("local_endpoints")]


@pytest.fixture(scope="module")
def program() -> dict[str, Any]:
    """The names of the page's program ``records.py``."""
    page = (PROJECT / "docs/guides/batch.md").read_text()
    (code,) = re.findall(r'```python title="records.py"\n(.*?)```', page, re.DOTALL)
    names: dict[str, Any] = {}
    exec(compile(code, "records.py", "exec"), names)
    return names


def records(path: Path) -> Iterator[bytes]:
    """Split a file as SageMaker does: RecordIO of MXNet, whose padding SingleRecord removes."""
    data = path.read_bytes()
    while data:
        magic, size = struct.unpack_from("<II", data)
        assert magic == 0xCED7230A
        size &= (1 << 29) - 1
        yield data[8 : 8 + size]
        data = data[8 + size + -size % 4 :]


def test_a_job_returns_all_arrays_in_order(
    shared: LocalEndpoint, program: dict[str, Any], tmp_path: Path
) -> None:
    """Each of 50 requests of different lengths is answered by its own array,
    in the order of the file.
    """
    arrays = [np.arange(1 + number % 8, dtype=np.float32) + number for number in range(50)]
    program["write_records"](str(tmp_path / "in.rec"), ({"X": array} for array in arrays))
    runtime = boto3.client("sagemaker-runtime", "us-east-1", endpoint_url=shared.endpoint_url)
    answers = [
        runtime.invoke_endpoint(
            EndpointName="adder", Body=body, ContentType=program["INPUT"]["ContentType"]
        )["Body"].read()
        for body in records(tmp_path / "in.rec")
    ]
    found = list(program["read_answers"](b"".join(answers)))
    assert [each.id for each in found] == [str(number) for number in range(50)]
    for answer, array in zip(found, arrays, strict=True):
        np.testing.assert_array_equal(answer["Y"], array + 5)
