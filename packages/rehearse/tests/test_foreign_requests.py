"""The server of a simulated account, and what a foreign web page can make
a browser send to them.
"""

from __future__ import annotations

import http.client
from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest
from botocore.exceptions import ClientError

from cdk_rehearse import SimulatedAccount

pytestmark = pytest.mark.e2e
FOREIGN = [
    {"Host": "attacker.example:5000"},
    {"Host": "127.0.0.1.attacker.example"},
    {"Host": ""},
    {"Origin": "https://attacker.example"},
    {"Origin": "null"},
    {"Sec-Fetch-Site": "cross-site"},
]
SCOPE = "t/20260101/us-east-1/cloudformation/aws4_request"
CLOUDFORMATION = {"Authorization": f"AWS4-HMAC-SHA256 Credential={SCOPE}"}
OWN = [
    {},
    {"Host": "localhost:80"},
    {"Origin": "http://localhost:3000", "Sec-Fetch-Site": "cross-site"},
]


@pytest.fixture(scope="module")
def aws() -> Iterator[SimulatedAccount]:
    with SimulatedAccount() as account:
        yield account


def ask(url: str, method: str, headers: dict[str, str]) -> tuple[int, str]:
    """Send a request that lists stacks, if it is answered."""
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.netloc, timeout=30)
    body = "Action=ListStacks&Version=2010-05-15"
    sent = {"Content-Type": "application/x-www-form-urlencoded", **CLOUDFORMATION, **headers}
    connection.putrequest(method, parts.path or "/", skip_host="Host" in headers)
    for name, value in {**sent, "Content-Length": str(len(body))}.items():
        connection.putheader(name, value)
    connection.endheaders(body.encode())
    response = connection.getresponse()
    found = response.status, response.read().decode()
    connection.close()
    return found


@pytest.mark.parametrize("headers", FOREIGN, ids=str)
def test_requests_of_foreign_pages_are_refused(
    aws: SimulatedAccount, headers: dict[str, str]
) -> None:
    """The answer is 403 and names the header; a stack or a response of a
    function is not looked at.
    """
    for url, method in ((aws.endpoint_url, "POST"), (f"{aws.endpoint_url}/answers/x", "PUT")):
        status, text = ask(url, method, headers)
        (name,) = headers
        assert status == 403
        assert f'"{name}: must be ' in text


@pytest.mark.parametrize(
    ("service", "operation", "message"),
    [
        ("cloudtrail", "lookup_events", "The lookup_events action has not been implemented"),
        ("ec2", "describe_fpga_images", "The describe_fpga_images action has not been implemented"),
        (
            "compute-optimizer",
            "get_idle_recommendations",
            "does not have compute-optimizer.us-east-1",
        ),
        (
            "lambda",
            "list_code_signing_configs",
            "does not have GET /2020-04-22/code-signing-configs of lambda",
        ),
        (
            "route53",
            "list_traffic_policies",
            "does not have GET /2013-04-01/trafficpolicies of route53",
        ),
    ],
)
def test_operation_that_is_not_simulated_is_an_answer(
    aws: SimulatedAccount,
    capfd: pytest.CaptureFixture[str],
    service: str,
    operation: str,
    message: str,
) -> None:
    """The caller gets an error that SDKs can read and do not retry, and the terminal no output."""
    with pytest.raises(ClientError, match=message) as raised:
        getattr(aws.client(service), operation)()
    found = raised.value.response["ResponseMetadata"]
    assert (found["HTTPStatusCode"], found["RetryAttempts"]) == (501, 0)
    assert raised.value.response["Error"]["Code"] == "NotImplemented"
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("headers", OWN, ids=str)
def test_requests_of_this_machine_are_answered(
    aws: SimulatedAccount, headers: dict[str, str]
) -> None:
    """Programs send no origin, and pages of this machine their own."""
    status, text = ask(aws.endpoint_url, "POST", headers)
    assert status == 200
    assert "<ListStacksResult>" in text


def test_server_listens_on_loopback_only(aws: SimulatedAccount) -> None:
    """Another machine does not reach the server."""
    assert urlsplit(aws.endpoint_url).hostname == "127.0.0.1"


@pytest.mark.parametrize(
    ("method", "length", "body"),
    [
        *(("POST", "99999999999", b""), ("POST", "-1", b""), ("PUT", "x", b"")),
        *(("PUT", "2", b"{x"), ("POST", "8", b"A=1&A.B=")),
    ],
)
def test_malformed_request_is_an_answer(
    aws: SimulatedAccount, capfd: pytest.CaptureFixture[str], method: str, length: str, body: bytes
) -> None:
    """A length without a bound, and what is neither a query nor JSON, get 400 and no traceback."""
    connection = http.client.HTTPConnection(urlsplit(aws.endpoint_url).netloc, timeout=30)
    path = "/" if method == "POST" else "/answers/x"
    connection.request(method, path, body, {"Content-Length": length, **CLOUDFORMATION})
    assert connection.getresponse().status == 400
    connection.close()
    assert capfd.readouterr().err == ""
