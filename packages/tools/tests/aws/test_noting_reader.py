"""Lists of AWS that have several pages, and what could not be read."""

from __future__ import annotations

from typing import Any

import pytest
from botocore.exceptions import EndpointConnectionError

from constructs_triton_core.aws_reader import AwsError
from constructs_triton_tools.aws.noting_reader import NotingReader


class Pages(NotingReader):
    """Answers with pages, each with the token of the next one."""

    def __init__(self, token: str, pages: int) -> None:
        super().__init__(None)
        self.token, self.last = token, pages

    def require(self, service: str, operation: str, **request: Any) -> dict[str, Any]:
        assert (service, operation) == ("iam", "list")
        number = int(request.get(self.token, 1))
        return {
            "Items": [{"Number": number}],
            **({self.token: str(number + 1)} if number < self.last else {}),
        }


@pytest.mark.parametrize("token", ["NextToken", "nextToken", "Marker"])
def test_list_has_the_members_of_all_pages(token: str) -> None:
    """A list is read to its end by the token of its service; a list that is longer is noted."""
    reader = Pages(token, 10)
    assert [each["Number"] for each in reader.read_list("iam", "list", "Items")] == list(
        range(1, 11)
    )
    assert reader.not_read == []
    reader = Pages(token, 11)
    assert [each["Number"] for each in reader.read_list("iam", "list", "Items")] == list(
        range(1, 11)
    )
    assert reader.not_read == ["iam:list: has more pages than are read"]


class Client:
    """A client whose optional operations get no answer of AWS."""

    def __init__(self, calls: list[str]) -> None:
        self.calls = calls

    def describe_endpoint(self, **_: Any) -> dict[str, Any]:
        return {"EndpointName": "digits"}

    def list_inference_components(self, **_: Any) -> dict[str, Any]:
        self.calls.append("list_inference_components")
        raise EndpointConnectionError(endpoint_url="http://127.0.0.1:1")


class Silent(NotingReader):
    def __init__(self) -> None:
        super().__init__(None)
        self.calls: list[str] = []

    def client(self, _: str) -> Any:
        return Client(self.calls)


def test_optional_call_that_gets_no_answer_is_noted() -> None:
    """Once a service has answered, another that is silent is noted and not asked again; before,
    it is an error.
    """
    reader = Silent()
    with pytest.raises(AwsError, match="cannot be reached"):
        reader.read("sagemaker", "list_inference_components")
    reader.require("sagemaker", "describe_endpoint")
    for _ in range(2):
        assert reader.read("sagemaker", "list_inference_components") == {}
    assert reader.calls == ["list_inference_components"] * 2
    (noted,) = reader.not_read
    assert noted.startswith("sagemaker: AWS: cannot be reached")
