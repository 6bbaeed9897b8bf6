"""Lists of AWS that have several pages, and permissions that are missing."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from boto3.exceptions import S3UploadFailedError
from botocore.exceptions import ClientError

from constructs_triton_core.aws_reader import (
    AwsError,
    AwsReader,
    make_session,
    reaching_aws,
    region_of,
)
from constructs_triton_core.errors import InvalidValueError


@pytest.mark.parametrize(
    ("operation", "code", "message", "permission"),
    [
        ("HeadObject", "403", "Forbidden", "s3:GetObject"),
        ("ListObjectsV2", "AccessDenied", "Access Denied", "s3:ListBucket"),
        (
            "GetObject",
            "AccessDenied",
            "me is not authorized to perform: kms:Decrypt on it",
            "kms:Decrypt",
        ),
        ("HeadObject", "404", "Not Found", None),
        ("HeadObject", "ExpiredToken", "The provided token has expired.", None),
    ],
)
def test_missing_permission_is_the_iam_action(
    operation: str, code: str, message: str, permission: str | None
) -> None:
    """The name is what a policy has to allow, which is not always the operation."""
    with pytest.raises(AwsError) as raised, reaching_aws("s3"):
        raise ClientError({"Error": {"Code": code, "Message": message}}, operation)
    assert raised.value.permission == permission
    assert raised.value.is_absent == (code == "404")
    hints = {
        "404": "check the name and --region",
        "ExpiredToken": "sign in again, for example with `aws sso",
    }
    assert f"; {hints.get(code, 'add this permission to your role')}" in str(raised.value)


def test_refusal_in_a_transfer_is_found() -> None:
    """boto3's transfers put the error of S3 into one of their own."""
    failed = S3UploadFailedError("Failed to upload a")
    failed.__context__ = ClientError({"Error": {"Code": "AccessDenied"}}, "PutObject")
    with pytest.raises(AwsError, match=r"^s3:PutObject: access denied"), reaching_aws("s3"):
        raise failed


class Nothing(AwsReader):
    """Finds nothing."""

    def require(self, *_call: object, **_: Any) -> dict[str, Any]:
        raise AwsError("reason", "hint", "NoSuchKey", is_absent=True)


def test_what_does_not_exist_is_none_or_an_error_with_the_region() -> None:
    """One call returns None, and the other raises an error that names the Region."""
    reader = Nothing(make_session("eu-west-1"))
    assert reader.find("s3", "head_object") is None
    with pytest.raises(AwsError, match=r"^stack a: does not exist in eu-west-1; hint$"):
        reader.describe("stack a", "cloudformation", "get_template")


def test_session_without_a_region_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """The error names the option."""
    for name in ("AWS_REGION", "AWS_DEFAULT_REGION", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_CONFIG_FILE", "/dev/null")
    with pytest.raises(AwsError, match=r"^AWS: no Region is configured; set --region"):
        region_of(make_session())


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
    """Answers as a proxy does; the path of the address has the status, and "text" for a text."""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        status, _, kind = self.path.strip("/").partition("/")
        self.send_response(int(status))
        self.send_header("Content-Type", "text/plain" if kind else "text/html; charset=utf-8")
        self.end_headers()
        self.wfile.write(b"<token>" if kind else b"<!doctype html>\n<title>Sign in</title>")

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
        (
            403,
            ("sagemaker", "list_endpoints"),
            "sagemaker:ListEndpoints: {} answered with an HTML page",
        ),
        (
            "403/text",
            ("sagemaker", "list_endpoints"),
            "sagemaker:ListEndpoints: {} answered with an unknown",
        ),
        (
            200,
            ("sagemaker", "list_endpoints"),
            "sagemaker:ListEndpoints: {} answered with an HTML page",
        ),
        (
            404,
            ("cloudformation", "list_stacks"),
            "AWS: got what is not an answer of AWS (Unable to parse",
        ),
    ],
)
def test_page_of_a_proxy_is_named_and_not_printed(
    proxy: str,
    monkeypatch: pytest.MonkeyPatch,
    status: int | str,
    call: tuple[str, str],
    expected: str,
) -> None:
    """The error has the call, the address and the status, and nothing of the page."""
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"{proxy}/{status}")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "testing")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "testing")
    with pytest.raises(InvalidValueError) as raised:
        list(AwsReader(make_session("us-east-1")).members(*call, "Members"))
    message = str(raised.value)
    assert message.startswith(expected.format(proxy))
    assert "is not an answer of AWS" in message
    assert message.endswith(
        "; check the proxy, and AWS_ENDPOINT_URL and endpoint_url of the profile"
    )
    assert "<" not in message
