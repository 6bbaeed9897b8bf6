"""The function that sends recorded requests: what it repeats, what is final,
and when it sends nothing.
"""

from __future__ import annotations

import base64
import io
import json
from typing import Any

import numpy as np
import pytest
from botocore.exceptions import ClientError, ReadTimeoutError

from constructs_triton_client.wire import encode_response
from constructs_triton_functions.response import CustomResourceError
from constructs_triton_functions.verification import handler

PROPERTIES = {
    "EndpointName": "digits",
    "EndpointConfigName": "new",
    "RequestsBucket": "assets",
    "RequestsKey": "requests.json",
    "TargetModels": {"alpha": "alpha-1234.tar.gz"},
    "Variants": ["AllTraffic"],
}
EXPECTED = {
    "name": "y",
    "datatype": "FP32",
    "shape": [1],
    "content": base64.b64encode(np.float32(2).tobytes()).decode(),
    "absolute_tolerance": 0.0,
    "relative_tolerance": 0.0,
}
REQUEST = {
    "name": "one",
    "target_model": "alpha",
    "content_type": "x",
    "body": "",
    "expected": [EXPECTED],
}


class Aws:
    """Stands for all three services; answers InvokeEndpoint with what the test lists."""

    def __init__(self, *answers: Exception | float, status: str = "UPDATE_IN_PROGRESS") -> None:
        self.answers = list(answers)
        self.status = status
        self.calls: list[dict[str, Any]] = []

    def describe_stacks(self, **_: Any) -> dict[str, Any]:
        return {"Stacks": [{"StackStatus": self.status}]}

    def get_object(self, **_: Any) -> dict[str, Any]:
        return {"Body": io.BytesIO(json.dumps({"requests": [REQUEST]}).encode())}

    def invoke_endpoint(self, **request: Any) -> dict[str, Any]:
        self.calls.append(request)
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        response = encode_response({"y": np.array([answer], dtype=np.float32)})
        return {"Body": io.BytesIO(response.body), "ContentType": response.content_type}


def refused(code: str) -> ClientError:
    return ClientError({"Error": {"Code": code, "Message": "no"}}, "InvokeEndpoint")


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    found: list[float] = []
    monkeypatch.setattr("time.sleep", found.append)
    return found


def verify(aws: Aws, monkeypatch: pytest.MonkeyPatch, kind: str = "Update", **changes: Any) -> None:
    monkeypatch.setattr(handler, "make_client", lambda _: aws)
    monkeypatch.setattr(handler, "_runtime", lambda: aws)
    event = {
        "RequestType": kind,
        "StackId": "stack",
        "LogicalResourceId": "Verification",
        "ResourceProperties": {**PROPERTIES, **changes},
    }
    handler._verify(event, "id")


def test_an_equal_response_succeeds(monkeypatch: pytest.MonkeyPatch) -> None:
    """The model's name becomes its archive, and one variant needs no TargetVariant."""
    aws = Aws(2.0)
    verify(aws, monkeypatch)
    (call,) = aws.calls
    assert (call["TargetModel"], call["EndpointName"]) == ("alpha-1234.tar.gz", "digits")
    assert "TargetVariant" not in call


def test_each_of_several_variants_is_called(monkeypatch: pytest.MonkeyPatch) -> None:
    """A wrong response names its variant."""
    aws = Aws(2.0, 3.0)
    with pytest.raises(
        CustomResourceError, match="request one to Green: output y: 1 of 1 values differ"
    ):
        verify(aws, monkeypatch, Variants=["Blue", "Green"])
    assert [call["TargetVariant"] for call in aws.calls] == ["Blue", "Green"]


def test_a_model_that_is_loading_is_called_again(
    monkeypatch: pytest.MonkeyPatch, pauses: list[float]
) -> None:
    """There is a pause before each further attempt."""
    verify(Aws(refused("ModelNotReadyException"), refused("ThrottlingException"), 2.0), monkeypatch)
    assert pauses == [15.0, 15.0]


def test_the_attempts_are_bounded(monkeypatch: pytest.MonkeyPatch, pauses: list[float]) -> None:
    """After ten attempts the reason is the last error."""
    aws = Aws(*[refused("ThrottlingException")] * 20)
    with pytest.raises(CustomResourceError, match="request one: ThrottlingException: no"):
        verify(aws, monkeypatch)
    assert (len(aws.calls), len(pauses)) == (10, 9)


@pytest.mark.parametrize(
    "error", [refused("ModelError"), ReadTimeoutError(endpoint_url="https://runtime")]
)
def test_other_errors_are_final(
    monkeypatch: pytest.MonkeyPatch, pauses: list[float], error: Exception
) -> None:
    """A model error or a timeout would only repeat."""
    aws = Aws(error)
    with pytest.raises(CustomResourceError, match="responses differ"):
        verify(aws, monkeypatch)
    assert pauses == []


@pytest.mark.parametrize(
    ("kind", "status"),
    [("Update", "UPDATE_ROLLBACK_IN_PROGRESS"), ("Delete", "DELETE_IN_PROGRESS")],
)
def test_nothing_is_sent_during_a_rollback_or_a_deletion(
    monkeypatch: pytest.MonkeyPatch, kind: str, status: str
) -> None:
    """The requests of the old state must not make a rollback fail."""
    aws = Aws(status=status)
    verify(aws, monkeypatch, kind)
    assert aws.calls == []
