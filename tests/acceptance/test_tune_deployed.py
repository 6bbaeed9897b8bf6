"""``tune`` in AWS: a simulated account has the endpoints, and Triton answers on this machine."""

from __future__ import annotations

import json
import re
import signal
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from triton_server import needs_server
from tuned_models import write_model

from cdk_rehearse import Behaviour, SimulatedAccount
from constructs_triton.cli import main
from constructs_triton_client import Invocation, SageMakerTransport
from constructs_triton_client.wire import decode_response, encode_request
from constructs_triton_core.aws_reader import AwsReader, make_session
from constructs_triton_tools.local import LocalEndpoint
from constructs_triton_tools.measuring.load_test.open_loop import LiveFigures
from constructs_triton_tools.measuring.tuning.candidates import Candidate, ModelSettings
from constructs_triton_tools.measuring.tuning.deployed import run_stack
from constructs_triton_tools.measuring.tuning.deployed import servers as deployed_servers
from constructs_triton_tools.measuring.tuning.deployed.place import AwsPlace
from constructs_triton_tools.measuring.tuning.deployed.policies import policy_document
from constructs_triton_tools.measuring.tuning.deployed.run_stack import NAME_PREFIX, StackFailedError
from constructs_triton_tools.measuring.tuning.deployed.servers import DeployedServers
from constructs_triton_tools.measuring.tuning.listener import TuneListener
from constructs_triton_tools.measuring.tuning.preparation import TuneOptions
from constructs_triton_tools.measuring.tuning.racing import CandidateRefusedError, SearchStoppedError
from constructs_triton_tools.measuring.tuning.search import Tuning
from constructs_triton_tools.measuring.tuning.servers import RunningCandidate

BUDGET_MINUTES = 2
pytestmark = [pytest.mark.usefixtures("budget"), needs_server, pytest.mark.xdist_group("tune")]

ROLE = "arn:aws:iam::123456789012:role/models"
TRUSTED = {"Effect": "Allow", "Principal": {"Service": "sagemaker.amazonaws.com"}, "Action": "sts:AssumeRole"}
TRUST = {"Version": "2012-10-17", "Statement": [TRUSTED]}


class Gateway:
    """Answers for the endpoint of the account that exists now, as SageMaker's runtime does."""

    def __init__(self, aws: SimulatedAccount) -> None:
        self.aws = aws
        self.name = ""
        self.url = ""
        self.running = ExitStack()

    def connect(self, name: str, **options: Any) -> SageMakerTransport:
        """Return a transport to this machine in the place of AWS."""
        if name != self.name:
            self.running.close()
            endpoint = LocalEndpoint.from_aws(self.aws.endpoint_url, endpoint=name)
            self.url = self.running.enter_context(endpoint).endpoint_url
            self.name = name
        return SageMakerTransport(name, endpoint_url=self.url, **options)


@pytest.fixture
def gateway(monkeypatch: pytest.MonkeyPatch) -> Iterator[Gateway]:
    """An account with a bucket, and with the role that ``tune --policy models`` describes."""
    monkeypatch.setattr(run_stack, "PAUSE_SECONDS", 0.05)
    with SimulatedAccount() as aws:
        for name, value in aws.variables().items():
            monkeypatch.setenv(name, value)
        aws.client("s3").create_bucket(Bucket="archives")
        aws.client("iam").create_role(RoleName="models", AssumeRolePolicyDocument=json.dumps(TRUST))
        policy = json.dumps(policy_document("models", ROLE, "archives"))
        aws.client("iam").put_role_policy(RoleName="models", PolicyName="allowed", PolicyDocument=policy)
        gateway = Gateway(aws)
        monkeypatch.setattr(deployed_servers, "SageMakerTransport", gateway.connect)
        with gateway.running:
            yield gateway


def prepare(folder: Path, instance_type: str) -> Tuning:
    if not (folder / "models").exists():
        write_model(folder / "models", "device")
    options = TuneOptions(latency_ms=150, budget_minutes=1, step_seconds=1, output=folder / "tuned")
    place = AwsPlace(
        instance_type=instance_type,
        role=ROLE,
        bucket="archives",
        reader=AwsReader(make_session()),
        usd_per_hour=0.1,
    )
    return Tuning(folder / "models", None, options, place)


def assert_nothing_is_left(aws: SimulatedAccount) -> None:
    assert {each.status for each in aws.stacks.all} == {"DELETE_COMPLETE"}
    assert aws.client("sagemaker").list_endpoints()["Endpoints"] == []
    assert aws.client("scheduler").list_schedules()["Schedules"] == []
    assert aws.client("s3").list_objects_v2(Bucket="archives")["KeyCount"] == 0


class Terminating(TuneListener):
    """Ends the process with SIGTERM in a step after some have ended."""

    shows_steps = True
    calls = 0

    def show(self, rate: float, seconds: float, live: LiveFigures) -> None:  # noqa: ARG002
        self.calls += 1
        if self.calls == 8:
            signal.raise_signal(signal.SIGTERM)


class Counting(TuneListener):
    """Counts the results of an earlier run."""

    known = 0

    def on_begin(self, known: int) -> None:
        self.known = known


def test_stopped_search_deletes_its_endpoint_and_continues(gateway: Gateway, tmp_path: Path) -> None:
    """After SIGTERM, and when the budget is spent, nothing is left; the second run uses earlier results."""
    first = prepare(tmp_path, "ml.c5.large").run(Terminating())
    assert first.is_interrupted
    assert len(gateway.aws.stacks.all) == 1
    assert_nothing_is_left(gateway.aws)

    counting = Counting()
    result = prepare(tmp_path, "ml.c5.large").run(counting)
    assert counting.known > 2
    assert len(result.steps) > len(first.steps)
    assert "the budget of time is spent" in " ".join(result.notes)
    assert len(gateway.aws.stacks.all) >= 2
    assert_nothing_is_left(gateway.aws)


def open_servers(tuning: Tuning, listener: TuneListener) -> DeployedServers:
    place = tuning.place
    assert isinstance(place, AwsPlace)
    return place.open(tuning.repository, tuning.requests, tuning.options, listener)


@pytest.fixture
def servers(gateway: Gateway, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[DeployedServers]:
    """The servers of a search on an instance type, which the test gives."""
    found = open_servers(prepare(tmp_path, request.param), TuneListener())
    yield found
    found.close()
    assert_nothing_is_left(gateway.aws)


def batching(batch: int) -> Candidate:
    return Candidate.of(m=ModelSettings(batch=batch))


def ask(running: RunningCandidate) -> list[float]:
    encoded = encode_request({"X": np.ones((1, 4), np.float32)})
    reply = running.transport.invoke(
        Invocation(encoded.body, encoded.content_type, running.requests[0].options)
    )
    values: list[float] = decode_response(reply.body, reply.content_type)["Y"].flatten().tolist()
    return values


def count_variants(aws: SimulatedAccount) -> list[int]:
    configs = [request for _, name, request in aws.api.calls if name == "CreateEndpointConfig"]
    return [len(each["ProductionVariants"]) for each in configs]


@pytest.mark.parametrize("servers", ["ml.c5.large"], indirect=True)
def test_finalists_are_variants_of_one_endpoint(gateway: Gateway, servers: DeployedServers) -> None:
    """The search has one endpoint for all candidates; the comparison has one with a variant for each."""
    present, best = batching(1), batching(8)
    answers = [ask(servers.get(each)) for each in (present, best)]
    assert count_variants(gateway.aws) == [1]
    servers.keep([present, best])
    answers += [ask(servers.get(each)) for each in (best, present)]
    assert count_variants(gateway.aws) == [1, 2]
    assert answers == [[2.0] * 4] * 4
    assert servers.waited_seconds > 0
    assert [each.status for each in gateway.aws.stacks.all] == ["DELETE_COMPLETE", "CREATE_COMPLETE"]


@pytest.mark.parametrize("servers", ["ml.g6.xlarge"], indirect=True)
def test_endpoint_that_fails_is_a_result(
    gateway: Gateway, servers: DeployedServers, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On endpoints in turn, a failed endpoint refuses its candidate, and a lack of instances does not."""
    ask(servers.get(batching(1)))
    gateway.aws.behaviour = Behaviour(failing={"Endpoint": "after"})
    with pytest.raises(CandidateRefusedError, match=NAME_PREFIX):
        servers.get(batching(2))
    assert {each.status for each in gateway.aws.stacks.all} == {"DELETE_COMPLETE"}
    with monkeypatch.context() as patch:
        patch.setattr(run_stack, "_first_failure", lambda *_: "InsufficientInstanceCapacity")
        with pytest.raises(SearchStoppedError, match="InsufficientInstanceCapacity"):
            servers.get(batching(4))
    gateway.aws.behaviour = Behaviour()
    ask(servers.get(batching(8)))
    statuses = [each.status for each in gateway.aws.stacks.all]
    assert statuses == ["DELETE_COMPLETE"] * 3 + ["CREATE_COMPLETE"]


@pytest.mark.parametrize("servers", ["ml.c5.large"], indirect=True)
def test_lost_connection_is_no_fault_of_a_candidate(gateway: Gateway, servers: DeployedServers) -> None:
    """A candidate that cannot be reached ends the search, and is not refused."""
    ask(servers.get(batching(1)))
    gateway.url = "http://127.0.0.1:1"
    with pytest.raises(SearchStoppedError, match="the request failed"):
        servers.get(batching(2))


@pytest.mark.parametrize("servers", ["ml.c5.large"], indirect=True)
def test_endpoint_that_cannot_be_deleted_is_named(gateway: Gateway, servers: DeployedServers) -> None:
    """A deletion that fails says that an endpoint may exist and for how long; --clean deletes it."""
    ask(servers.get(batching(1)))
    gateway.aws.behaviour = Behaviour(failing_delete={"Endpoint"})
    with pytest.raises(StackFailedError, match="an endpoint may cost money until") as error:
        servers.close()
    assert "run `constructs-triton tune --clean`" in str(error.value)
    gateway.aws.behaviour = Behaviour()
    assert main(["tune", "--clean", "--yes"]) == 0


class Waiting(TuneListener):
    """Keeps the last wait."""

    what = ""

    def on_wait(self, what: str) -> None:
        self.what = what


def test_kept_endpoint_is_in_service(gateway: Gateway, tmp_path: Path) -> None:
    """With --keep the last endpoint stays, and its price and its end are reported."""
    tuning = prepare(tmp_path, "ml.c5.large")
    assert isinstance(tuning.place, AwsPlace)
    tuning.place.keeps_endpoint = True
    listener = Waiting()
    servers = open_servers(tuning, listener)
    running = servers.get(batching(1))
    servers.close()
    ask(running)
    assert re.search(
        r"keeps the endpoint constructs-triton-tune-\S+ until \d\d:\d\d UTC, at 0\.1 USD", listener.what
    )
    assert main(["tune", "--clean", "--yes"]) == 0
    assert_nothing_is_left(gateway.aws)


def test_bucket_that_does_not_exist_is_named(gateway: Gateway, tmp_path: Path) -> None:
    """An archive that cannot be uploaded ends the search before anything is created, and names the bucket."""
    tuning = prepare(tmp_path, "ml.c5.large")
    assert isinstance(tuning.place, AwsPlace)
    tuning.place.bucket = "absent"
    with (
        closing(open_servers(tuning, TuneListener())) as servers,
        pytest.raises(SearchStoppedError, match=r"s3://absent: an archive was not uploaded: .*NoSuchBucket"),
    ):
        servers.get(batching(1))
    assert gateway.aws.stacks.all == []
