"""``status``, ``diagnose`` and ``logs`` on a fake account: watching, following,
and denied reads.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest
from botocore.exceptions import ClientError
from botocore.hooks import HierarchicalEmitter

from constructs_triton.cli import main
from constructs_triton_tools.cli import options

STACK = "arn:aws:cloudformation:us-east-1:111122223333:stack/Digits/1"
VARIANT = {"VariantName": "AllTraffic", "CurrentInstanceCount": 1, "DesiredInstanceCount": 1}
ENDPOINT = {
    "EndpointName": "digits",
    "EndpointArn": "arn:aws:sagemaker:us-east-1:111122223333:endpoint/digits",
    "EndpointConfigName": "digits-1",
    "EndpointStatus": "InService",
    "ProductionVariants": [VARIANT],
}
TARGET = {"ResourceId": "endpoint/digits/variant/AllTraffic", "MinCapacity": 1, "MaxCapacity": 4}
#: The answers about an endpoint in service whose log is empty. A test replaces those that it is
#: about.
ACCOUNT: dict[str, Any] = {
    "sagemaker.describe_endpoint": ENDPOINT,
    "sagemaker.describe_endpoint_config": {
        "ProductionVariants": [{**VARIANT, "ModelName": "digits-1"}]
    },
    "sagemaker.describe_model": {
        "PrimaryContainer": {"Mode": "MultiModel", "ModelDataUrl": "s3://models/digits/"}
    },
    "sagemaker.list_inference_components": {
        "InferenceComponents": [{"InferenceComponentName": "first"}]
    },
    "sagemaker.describe_inference_component": {},
    "sagemaker.list_tags": {"Tags": [{"Key": "aws:cloudformation:stack-id", "Value": STACK}]},
    "s3.get_object": {},
    "application-autoscaling.describe_scalable_targets": {"ScalableTargets": [TARGET]},
    "application-autoscaling.describe_scaling_policies": {},
    "application-autoscaling.describe_scaling_activities": {},
    "cloudwatch.describe_alarms": {},
    "cloudformation.describe_stack_events": {},
    "cloudformation.list_stack_resources": {},
    "logs.describe_log_streams": {"logStreams": [{"logStreamName": "AllTraffic/i-1"}]},
    "logs.get_log_events": {"events": []},
    "logs.filter_log_events": {"events": []},
}
Account = dict[str, Any]
NIGHT, MORNING = datetime(2026, 11, 28, 2, 14, 7, tzinfo=UTC), datetime(2026, 11, 28, 8, tzinfo=UTC)
SHOWN = "2026-11-28 02:14:07 UTC"


class FakeSession:
    """A boto3 session whose clients return the account's answers,
    or call them if they are functions.
    """

    region_name = "us-east-1"

    def __init__(self, account: Mapping[str, Any]) -> None:
        self.account = account

    def client(self, service: str, **_options: object) -> FakeClient:
        return FakeClient(self.account, service)


class FakeClient:
    def __init__(self, account: Mapping[str, Any], service: str) -> None:
        self.account, self.service = account, service
        self.meta = SimpleNamespace(events=HierarchicalEmitter())

    def __getattr__(self, operation: str) -> Callable[..., Any]:
        answer = self.account[f"{self.service}.{operation}"]
        return answer if callable(answer) else lambda **_request: answer


@pytest.fixture
def account(monkeypatch: pytest.MonkeyPatch) -> Account:
    """The answers of the account that the commands read."""
    answers = dict(ACCOUNT)
    monkeypatch.setattr(options, "make_session", lambda *_arguments: FakeSession(answers))
    return answers


def permission_of(call: str) -> str:
    service, operation = call.split(".")
    return f"{service}:{operation.title().replace('_', '')}"


def denied(call: str, message: str) -> Callable[..., Any]:
    def answer(**_request: Any) -> None:
        error: Any = {"Error": {"Code": "AccessDeniedException", "Message": message}}
        raise ClientError(error, permission_of(call).partition(":")[2])

    return answer


def not_authorized(permission: str) -> str:
    return (
        "User: arn:aws:sts::111122223333:role/r is not authorized to perform: "
        f"{permission} on resource: x"
    )


STATUS_READS = [
    "sagemaker.describe_endpoint_config",
    "sagemaker.describe_model",
    "sagemaker.list_inference_components",
    "sagemaker.describe_inference_component",
    "s3.get_object",
    "application-autoscaling.describe_scalable_targets",
    "application-autoscaling.describe_scaling_policies",
    "application-autoscaling.describe_scaling_activities",
    "cloudwatch.describe_alarms",
]
DIAGNOSE_READS = [
    "sagemaker.describe_endpoint_config",
    "cloudwatch.describe_alarms",
    "sagemaker.list_inference_components",
    "sagemaker.describe_inference_component",
    "sagemaker.list_tags",
    "cloudformation.describe_stack_events",
    "cloudformation.list_stack_resources",
    "application-autoscaling.describe_scaling_activities",
    "logs.describe_log_streams",
    "logs.get_log_events",
]


@pytest.mark.parametrize(
    ("command", "call"),
    [
        *(("status", call) for call in STATUS_READS),
        *(("diagnose", call) for call in DIAGNOSE_READS),
    ],
)
def test_a_denied_read_is_reported_with_its_permission(
    command: str, call: str, account: Account, capsys: pytest.CaptureFixture[str]
) -> None:
    """The rest is read and printed. Nothing is reported where everything can be read."""
    assert main([command, "digits"]) == 0
    assert "not read" not in capsys.readouterr().out
    account[call] = denied(call, "")
    assert main([command, "digits"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("digits: InService\n")
    (line,) = [each.strip() for each in out.splitlines() if "not read" in each]
    allow = "access denied; add this permission to your role"
    assert line == f"not read: {permission_of(call)}: {allow}"


@pytest.mark.parametrize(
    ("state", "code", "conclusion"),
    [
        ({}, 0, "no known failure found in what could be read"),
        (
            {"EndpointStatus": "Failed", "FailureReason": "something new"},
            1,
            (
                "cause: unknown, because not everything could be read; "
                "fix the errors below, then run it again"
            ),
        ),
    ],
)
def test_a_diagnosis_without_the_log_says_so(
    state: dict[str, str],
    code: int,
    conclusion: str,
    account: Account,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """An unread log may contain the failure, so its absence is no result."""
    account["sagemaker.describe_endpoint"] = {**ENDPOINT, **state}
    account["logs.describe_log_streams"] = denied("logs.describe_log_streams", "")
    assert main(["diagnose", "digits"]) == code
    *_, concluded, unread = capsys.readouterr().out.splitlines()
    assert concluded == conclusion
    assert unread.startswith("not read: logs:DescribeLogStreams: access denied")


@pytest.mark.parametrize(
    ("metric", "shown"),
    [
        (
            {"PredefinedMetricSpecification": {"PredefinedMetricType": "Calls"}},
            "Gpu: keeps Calls at 1500",
        ),
        (
            {"CustomizedMetricSpecification": {"MetricName": "GPUUtilization"}},
            "Gpu: keeps GPUUtilization at 1500 (each GPU has 100)",
        ),
        ({"CustomizedMetricSpecification": {"Metrics": []}}, "Gpu: keeps metric math at 1500"),
        (None, "Gpu (StepScaling)"),
    ],
)
def test_policy_is_shown_with_its_target(
    metric: Any, shown: str, account: Account, capsys: pytest.CaptureFixture[str]
) -> None:
    """A policy that tracks a target is listed with its metric and value,
    another one with its type.
    """
    policy: dict[str, Any] = {"PolicyName": "Gpu", "PolicyType": "StepScaling"}
    if metric is not None:
        policy["TargetTrackingScalingPolicyConfiguration"] = {"TargetValue": 1500.0, **metric}
    account["application-autoscaling.describe_scaling_policies"] = {"ScalingPolicies": [policy]}
    assert main(["status", "digits"]) == 0
    assert f"policy: {shown}\n" in capsys.readouterr().out


def test_the_permission_is_the_one_that_aws_names(
    account: Account, capsys: pytest.CaptureFixture[str]
) -> None:
    """Reading an encrypted index also needs permission to use its key."""
    account["s3.get_object"] = denied("s3.get_object", not_authorized("kms:Decrypt"))
    main(["status", "digits"])
    assert "not read: kms:Decrypt: access denied" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("command", "call"),
    [
        ("status", "sagemaker.describe_endpoint"),
        ("diagnose", "sagemaker.describe_endpoint"),
        ("logs", "logs.filter_log_events"),
    ],
)
def test_a_command_that_can_read_nothing_is_an_error(
    command: str, call: str, account: Account, capsys: pytest.CaptureFixture[str]
) -> None:
    """The error names the permission, and does not suggest that the name is wrong."""
    account[call] = denied(call, not_authorized(permission_of(call)))
    assert main([command, "digits"]) == 2
    error = capsys.readouterr().err
    assert f"{permission_of(call)}: access denied; add this permission to your role" in error
    assert "check the name" not in error


REFUSED = (
    "The variant(s) \"['AllTraffic']\" must be deregistered "
    "as scalable targets with AWS Auto Scaling"
)


def resource_of(name: str) -> dict[str, str]:
    arn = f"arn:aws:sagemaker:us-east-1:111122223333:endpoint/{name}"
    return {"ResourceType": "AWS::SageMaker::Endpoint", "PhysicalResourceId": arn}


def test_failure_of_several_endpoints_is_explained_once(
    account: Account, capsys: pytest.CaptureFixture[str]
) -> None:
    """--stack names the endpoint with the explanation at each other one that has the same."""
    names = "one", "two", "three"
    account["cloudformation.list_stack_resources"] = {
        "StackResourceSummaries": [resource_of(name) for name in names]
    }
    account["sagemaker.describe_endpoint"] = lambda EndpointName: {  # noqa: N803 - AWS's name
        **ENDPOINT,
        "EndpointName": EndpointName,
        "EndpointStatus": "Failed",
        "FailureReason": REFUSED,
    }
    assert main(["diagnose", "--stack", "s"]) == 1
    out = capsys.readouterr().out
    assert out.count("[scaled-variant-update]") == 1
    assert out.count("cause: the same as of one") == 2
    assert main(["diagnose", "--stack", "s", "--json"]) == 1
    found = json.loads(capsys.readouterr().out)["endpoints"]
    assert [bool(each["diagnoses"]) for each in found] == [True, True, True]


def test_an_endpoint_that_is_absent_does_not_hide_those_of_its_stack(
    account: Account, capsys: pytest.CaptureFixture[str]
) -> None:
    """--stack prints the endpoints that exist, names the other one, and exits with 1."""

    def describe(**request: str) -> Any:
        if request["EndpointName"] == "gone":
            error: Any = {
                "Error": {"Code": "ValidationException", "Message": "Could not find endpoint"}
            }
            raise ClientError(error, "DescribeEndpoint")
        return ENDPOINT

    resources = {"StackResourceSummaries": [resource_of("gone"), resource_of("digits")]}
    account["sagemaker.describe_endpoint"] = describe
    account["cloudformation.list_stack_resources"] = resources
    for command in ("status", "diagnose"):
        assert main([command, "--stack", "Digits"]) == 1
        out, err = capsys.readouterr()
        assert out.startswith("digits: InService")
        assert err.startswith(
            "not read: endpoint gone: does not exist in us-east-1; check the name"
        )


@pytest.mark.parametrize(("failed", "code"), [("digits", 1), ("other", 0)])
def test_a_failed_event_is_the_cause_of_its_endpoint_only(
    failed: str, code: int, account: Account, capsys: pytest.CaptureFixture[str]
) -> None:
    """An update that SageMaker refused is no rollback,
    and no failure of the stack's other endpoints.
    """
    event = {
        **resource_of(failed),
        "StackId": STACK,
        "LogicalResourceId": "Changed",
        "ResourceStatus": "UPDATE_FAILED",
        "ResourceStatusReason": REFUSED,
        "Timestamp": NIGHT,
    }
    stack = {**CREATED, "ResourceStatus": "UPDATE_ROLLBACK_COMPLETE"}
    account["cloudformation.describe_stack_events"] = {"StackEvents": [stack, event]}
    assert main(["diagnose", "digits"]) == code
    out = capsys.readouterr().out
    assert ("[scaled-variant-update]" in out) == (failed == "digits")
    assert ("failed at another endpoint: Changed UPDATE_FAILED" in out) == (failed == "other")
    assert "[silent-rollback]" not in out
    outcome = (
        f"it failed at {SHOWN}, and the stack is in UPDATE_ROLLBACK_COMPLETE; "
        "the version before serves"
    )
    assert (outcome in out) == (failed == "digits")


@pytest.mark.parametrize(
    ("config", "has_cause"),
    [({}, True), ({"CreationTime": NIGHT}, True), ({"CreationTime": MORNING}, False)],
)
def test_a_line_of_an_earlier_version_is_no_cause(
    config: dict[str, datetime],
    has_cause: bool,
    account: Account,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A line has its time. One from before the running configuration is of instances that ended."""
    event = {
        "timestamp": int(NIGHT.timestamp() * 1000),
        "message": "ModuleNotFoundError: No module named 'torch'",
    }

    def read(**request: Any) -> Any:
        return {"events": [event] if event["timestamp"] >= request.get("startTime", 0) else []}

    account["sagemaker.describe_endpoint_config"] = config
    account["logs.get_log_events"] = read
    assert main(["diagnose", "digits"]) == int(has_cause)
    out = capsys.readouterr().out
    assert (f"from log stream AllTraffic/i-1, {SHOWN}: ModuleNotFoundError" in out) == has_cause
    way_back = (
        f"this version was deployed at {SHOWN}; to go back, "
        "check out the version before it, and deploy"
    )
    assert (f"{way_back} stack Digits\n" in out) == ("CreationTime" in config and has_cause)


@pytest.mark.parametrize(
    ("actions", "code"),
    [([], 1), (["arn:aws:sns:us-east-1:1:OnCall"], 1), ([f"arn:1:scalingPolicy:{1}"], 0)],
)
def test_an_alarm_is_something_wrong(
    actions: list[str], code: int, account: Account, capsys: pytest.CaptureFixture[str]
) -> None:
    """A diagnosis begins with the alarms that are on, since when;
    those that only scale are not failures.
    """
    alarm = {
        "AlarmName": "busy",
        "AlarmActions": actions,
        "AlarmDescription": (
            "Scaling has reached max_capacity. Find the cause: constructs-triton diagnose a"
        ),
        "StateReason": "Threshold Crossed",
        "StateUpdatedTimestamp": NIGHT,
        "Metrics": [
            {
                "MetricStat": {
                    "Metric": {"Dimensions": [{"Name": "EndpointName", "Value": "digits"}]}
                }
            }
        ],
    }
    account["cloudwatch.describe_alarms"] = {"MetricAlarms": [alarm]}
    assert main(["diagnose", "digits"]) == code
    said = f"  alarm busy, on since {SHOWN}: Scaling has reached max_capacity.\n"
    assert (said in capsys.readouterr().out) == bool(code)
    assert main(["status", "digits"]) == 0
    assert f"  alarm: busy, on since {SHOWN}: Threshold Crossed\n" in capsys.readouterr().out


def test_long_lines_fit_a_terminal(
    account: Account, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A long line continues below with more indentation, as between words;
    a pipe gets it in one line.
    """
    account["sagemaker.describe_endpoint"] = {
        **ENDPOINT,
        "FailureReason": "all words of the reason " * 5,
    }
    assert main(["diagnose", "digits"]) == 1
    (line,) = [each for each in capsys.readouterr().out.splitlines() if "reason: all" in each]
    monkeypatch.setenv("COLUMNS", "60")
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    for command in ("status", "diagnose"):
        main([command, "digits"])
        out = capsys.readouterr().out
        number = next(index for index, each in enumerate(out.splitlines()) if "reason: all" in each)
        shown = out.splitlines()[number : number + 3]
        assert max(map(len, shown)) <= 60
        assert shown[1].startswith("    ")
        assert " ".join(out.split()).count("all words of the reason") == line.count(
            "all words of the reason"
        )


@pytest.mark.parametrize("is_on", [True, False])
def test_state_has_the_place_of_captured_requests(
    is_on: bool, account: Account, capsys: pytest.CaptureFixture[str]
) -> None:
    """`capture read` needs it, and SageMaker adds the endpoint's name to the
    prefix of the configuration.
    """
    capture = {"EnableCapture": is_on, "DestinationS3Uri": "s3://bucket/data-capture/"}
    account["sagemaker.describe_endpoint_config"] = {"DataCaptureConfig": capture}
    assert main(["status", "digits"]) == 0
    shown = "  captured requests: s3://bucket/data-capture/digits\n"
    assert (shown in capsys.readouterr().out) == is_on
    assert main(["capture", "read", "digits"]) == 2
    assert (
        "or the s3://bucket/prefix that `constructs-triton status` prints"
        in capsys.readouterr().err
    )


def test_a_log_has_times_with_their_zone_or_a_way_to_older_lines(
    account: Account, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without a line in the time that is read, the command says so on standard error."""
    assert main(["logs", "digits"]) == 0
    assert capsys.readouterr() == (
        "",
        "no lines in this time; go back further with --since, such as --since 1d\n",
    )
    event = {
        "timestamp": int(NIGHT.timestamp() * 1000),
        "message": "a",
        "eventId": "1",
        "logStreamName": "s",
    }
    account["logs.filter_log_events"] = {"events": [event]}
    assert main(["logs", "digits"]) == 0
    assert capsys.readouterr() == (f"{SHOWN} s a\n", "")


NO_INSTANCES = {
    **resource_of("digits"),
    "StackId": STACK,
    "LogicalResourceId": "Endpoint",
    "ResourceStatus": "CREATE_FAILED",
    "ResourceStatusReason": "The account-level service limit is 0 Instances",
}
CREATED: dict[str, Any] = {
    "StackId": STACK,
    "PhysicalResourceId": STACK,
    "ResourceType": "AWS::CloudFormation::Stack",
    "LogicalResourceId": "Digits",
    "ResourceStatus": "CREATE_IN_PROGRESS",
}


@pytest.mark.parametrize(
    ("events", "code", "expected"),
    [
        (
            [{**CREATED, "ResourceStatus": "ROLLBACK_COMPLETE"}, NO_INSTANCES, CREATED],
            1,
            (
                "stack Digits: ROLLBACK_COMPLETE, no endpoint\n  first failed event of the stack: "
                "Endpoint CREATE_FAILED: The account-level service limit is 0 Instances\n"
            ),
        ),
        ([CREATED], 2, "got CREATE_IN_PROGRESS; run it again when the stack is created"),
        (
            [{**CREATED, "ResourceStatus": "CREATE_COMPLETE"}, CREATED],
            2,
            "CREATE_COMPLETE; check the name",
        ),
    ],
)
def test_a_stack_without_an_endpoint_is_explained_by_its_events(
    events: Any, code: int, expected: str, account: Account, capsys: pytest.CaptureFixture[str]
) -> None:
    """The resource that failed is printed, also if CloudFormation deleted
    the endpoint afterwards.
    """
    deleted = {**resource_of("digits"), "ResourceStatus": "DELETE_COMPLETE"}
    account["cloudformation.list_stack_resources"] = {"StackResourceSummaries": [deleted]}
    account["cloudformation.describe_stack_events"] = {"StackEvents": events}
    assert main(["diagnose", "--stack", "Digits"]) == code
    out, err = capsys.readouterr()
    assert expected in out + err
    assert main(["diagnose", "--stack", "Digits", "--json"]) == code
    assert ('"resource": "Endpoint"' in capsys.readouterr().out) == (code == 1)
    assert main(["status", "--stack", "Digits"]) == 2
    assert "run `constructs-triton diagnose --stack Digits`" in capsys.readouterr().err


def pauses(monkeypatch: pytest.MonkeyPatch, *steps: Callable[[], None]) -> list[float]:
    """Do a step instead of each pause, and then interrupt the command as Ctrl-C does."""
    slept: list[float] = []
    left = list(steps)

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        if not left:
            raise KeyboardInterrupt
        left.pop(0)()

    monkeypatch.setattr(time, "sleep", sleep)
    return slept


@pytest.mark.parametrize(("last", "code"), [("InService", 0), ("Failed", 1)])
def test_watch_prints_each_change_until_the_update_ends(
    last: str,
    code: int,
    account: Account,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A state that did not change is not printed again. The exit code is that of the last state."""

    def becomes(status: str, instances: int) -> Callable[[], None]:
        variants = [{**VARIANT, "CurrentInstanceCount": instances}]
        described = {**ENDPOINT, "EndpointStatus": status, "ProductionVariants": variants}
        return lambda: account.update({"sagemaker.describe_endpoint": described})

    becomes("Updating", 1)()
    states = (("Updating", 1), ("Updating", 2), ("RollingBack", 2), (last, 1))
    slept = pauses(monkeypatch, *(becomes(*state) for state in states))
    assert main(["status", "digits", "--watch"]) == code
    out = capsys.readouterr().out
    shown = [line for line in out.splitlines() if line.startswith("digits: ")]
    assert shown == [
        "digits: Updating",
        "digits: Updating",
        "digits: RollingBack",
        f"digits: {last}",
    ]
    assert slept == [10.0] * 4


class FakeLog:
    """The events of a log group, two on each page."""

    def __init__(self) -> None:
        self.events: list[dict[str, Any]] = []
        self.starts: list[int] = []

    def write(self, moment: int, *lines: str) -> None:
        for line in lines:
            identity = str(len(self.events))
            self.events.append(
                {
                    "eventId": identity,
                    "timestamp": moment,
                    "logStreamName": "AllTraffic/i-1",
                    "message": line,
                }
            )

    def filter_log_events(self, **request: Any) -> dict[str, Any]:
        assert request["logGroupName"] == "/aws/sagemaker/Endpoints/digits"
        start, first = request["startTime"], int(request.get("nextToken", "0"))
        if first == 0:
            self.starts.append(start)
        found = [each for each in self.events if each["timestamp"] >= start]
        more = {"nextToken": str(first + 2)} if len(found) > first + 2 else {}
        return {"events": found[first : first + 2], **more}


def test_follow_prints_each_line_once(
    account: Account, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The id of a line decides whether it is new, because several can have the same time."""
    log, now = FakeLog(), int(datetime.now(UTC).timestamp() * 1000)
    account["logs.filter_log_events"] = log.filter_log_events
    log.write(now - 7_200_000, "too old")
    log.write(now, "a", "b", "c")
    steps: Sequence[Callable[[], None]] = (
        lambda: log.write(now, "d"),
        lambda: None,
        lambda: log.write(now, "e"),
        lambda: log.write(now + 1, "f", "g"),
    )
    slept = pauses(monkeypatch, *steps)
    assert main(["logs", "digits", "--follow"]) == 130
    lines = capsys.readouterr().out.splitlines()
    assert [line.rpartition(" ")[2] for line in lines] == list("abcdefg")
    assert slept == [2.0] * 5
    assert log.starts[1:] == [now, now, now, now]
