"""Lists of AWS that have several pages, and permissions that are missing."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from botocore.exceptions import ClientError

from constructs_triton_core.aws.aws_reader import AwsReader, make_session, missing_permission, reaching_aws
from constructs_triton_core.errors import InvalidValueError


class Pages(AwsReader):
    """Answers with pages, each with the token of the next one."""

    def __init__(self, token: str, pages: int) -> None:
        super().__init__(None)  # type: ignore[arg-type] # it makes no client
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
    assert [each["Number"] for each in reader.read_list("iam", "list", "Items")] == list(range(1, 11))
    assert reader.not_read == []
    reader = Pages(token, 11)
    assert [each["Number"] for each in reader.read_list("iam", "list", "Items")] == list(range(1, 11))
    assert reader.not_read == ["iam:list: has more pages than are read"]


@pytest.mark.parametrize(
    ("operation", "code", "message", "permission"),
    [
        ("HeadObject", "403", "Forbidden", "s3:GetObject"),
        ("ListObjectsV2", "AccessDenied", "Access Denied", "s3:ListBucket"),
        ("GetObject", "AccessDenied", "me is not authorized to perform: kms:Decrypt on it", "kms:Decrypt"),
        ("HeadObject", "404", "Not Found", None),
    ],
)
def test_missing_permission_is_the_iam_action(
    operation: str, code: str, message: str, permission: str | None
) -> None:
    """The name is what a policy has to allow, which is not always the operation."""
    error = ClientError({"Error": {"Code": code, "Message": message}}, operation)
    assert missing_permission("s3", error) == permission


def test_missing_credentials_are_an_error_with_their_fix(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without credentials the error is about them, and not about the Region."""
    for name in [each for each in os.environ if each.startswith("AWS_")]:
        monkeypatch.delenv(name)
    for name in ("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"):
        monkeypatch.setenv(name, "/dev/null")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    sagemaker = make_session("eu-west-1").client("sagemaker")
    expected = "AWS: no credentials were found; run `aws configure`"
    with pytest.raises(InvalidValueError, match=expected), reaching_aws():
        sagemaker.describe_endpoint(EndpointName="digits")


class Page(BaseHTTPRequestHandler):
    """Answers as a proxy does; the status is in the path of the address."""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(int(self.path.strip("/")))
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.end_headers()
        self.wfile.write(b"<!doctype html>\n<title>Sign in</title>")

    def log_message(self, *arguments: object) -> None:
        pass


@pytest.fixture(scope="module")
def proxy() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Page) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()
        thread.join()


@pytest.mark.parametrize(
    ("status", "call", "expected"),
    [
        (404, ("sagemaker", "list_endpoints"), "sagemaker:ListEndpoints: 404: {} answered with an HTML page"),
        (200, ("sagemaker", "list_endpoints"), "sagemaker:ListEndpoints: {} answered with an HTML page"),
        (404, ("cloudformation", "list_stacks"), "AWS: got what is not an answer of AWS (Unable to parse"),
    ],
)
def test_page_of_a_proxy_is_named_and_not_printed(
    proxy: str, monkeypatch: pytest.MonkeyPatch, status: int, call: tuple[str, str], expected: str
) -> None:
    """The error has the call, the address and the status, and nothing of the page."""
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"{proxy}/{status}")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "testing")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "testing")
    with pytest.raises(InvalidValueError) as raised:
        list(AwsReader(make_session("us-east-1")).pages(*call))
    message = str(raised.value)
    assert message.startswith(expected.format(proxy))
    assert "is not an answer of AWS" in message
    assert message.endswith("; check the proxy, and AWS_ENDPOINT_URL and endpoint_url of the profile")
    assert "<" not in message
