"""The text of a rehearsal."""

from __future__ import annotations

from dataclasses import replace

from cdk_rehearse.cli.text import report_lines
from cdk_rehearse.updates.report import (
    Failure,
    Instances,
    Leftover,
    Problem,
    Rehearsal,
    RehearsedStep,
)
from constructs_triton_core.findings import Severity

MODEL = "EndpointModel0F230181"
ARN = f"arn:aws:sagemaker:us-east-1:123456789012:model/Shop-{MODEL}-7T5M0LKXXV08"
WARNING = Problem(
    "rehearse-leftover",
    Severity.WARNING,
    MODEL,
    f"{ARN} stays, as Shop-{MODEL}-7T5M0LKXXV08 " + "is in use " * 9,
    "wait",
)


def _text(found: Rehearsal) -> list[str]:
    lines = list(report_lines(found))
    assert max(map(len, lines)) <= 100
    return lines


def test_constructs_have_their_paths_and_arns_stay() -> None:
    """Logical IDs and names generated from them become paths, also in sentences,
    but not inside an ARN.
    """
    left = Leftover(MODEL, "AWS::SageMaker::Model", ARN)
    other = Leftover("Key", "AWS::KMS::Key", "1234")
    lines = _text(
        Rehearsal(
            {"Shop": "UPDATE_COMPLETE"},
            steps=(RehearsedStep(1, "Shop", "replace", MODEL, "AWS::SageMaker::Model"),),
            failures=(Failure(1, MODEL, "reverts", "UPDATE_COMPLETE", leftovers=(left, other)),),
            leftovers=(left,),
            problems=(WARNING,),
            construct_paths={MODEL: "Endpoint/Model"},
        )
    )
    assert "  1  replace  Model  Endpoint/Model" in lines
    text = " ".join(line.strip() for line in lines)
    assert f"Endpoint/Model: warning[rehearse-leftover]: {ARN} stays, as Endpoint/Model is" in text
    assert "  1  Endpoint/Model (SageMaker reverts)  UPDATE_COMPLETE    2 resources" in lines
    assert "  left behind     Endpoint/Model (Model)" in lines
    assert MODEL not in text.replace(ARN, "")


def test_rollback_is_no_cleanup() -> None:
    """Where an update fails, the steps after it are those of the rollback."""
    steps = (
        RehearsedStep(1, "Shop", "create", MODEL, "AWS::SageMaker::Model"),
        RehearsedStep(2, "Shop", "delete", MODEL, "AWS::SageMaker::Model", is_cleanup=True),
    )
    failed = _text(Rehearsal({"Shop": "UPDATE_ROLLBACK_COMPLETE"}, "no", steps))
    assert "    -- the next step fails; CloudFormation rolls back --" in failed
    assert not any("cleanup" in line for line in failed)


def test_reason_of_a_problem_is_printed_once() -> None:
    """A reason that no problem has is printed; one that a problem has is not repeated."""
    problem = Problem(
        "rehearse-update-fails", Severity.ERROR, "Shop", "the update ends: no room", "wait"
    )
    for problems, count in (((), 1), ((problem,), 1)):
        lines = _text(Rehearsal({"Shop": "UPDATE_ROLLBACK_COMPLETE"}, "no room", problems=problems))
        assert " ".join(lines).count("no room") == count


def test_steps_that_fail_alike_are_one_row() -> None:
    """Steps with the same end are one row, other steps have their own."""
    rolled_back = [
        Failure(number, MODEL, "fails", "UPDATE_ROLLBACK_COMPLETE") for number in (1, 2, 3)
    ]
    other = Failure(4, MODEL, "fails", "UPDATE_ROLLBACK_FAILED", "no")
    lines = _text(Rehearsal({"Shop": "UPDATE_COMPLETE"}, failures=(*rolled_back, other)))
    assert "  1 to 3  any of these steps     UPDATE_ROLLBACK_COMPLETE  nothing" in lines
    assert f"  4       {MODEL}  UPDATE_ROLLBACK_FAILED    nothing" in lines


def test_custom_resource_has_a_row_for_each_way_to_fail() -> None:
    """A function that answers FAILED is named if the stack ends in another way
    than after a lost response.
    """
    lost = Failure(2, MODEL, "fails", "ROLLBACK_COMPLETE")
    answers = Failure(2, MODEL, "answers FAILED", "ROLLBACK_FAILED")
    lines = _text(Rehearsal({"Shop": "CREATE_COMPLETE"}, failures=(answers, lost)))
    assert f"  2  {MODEL} (its function answers FAILED)  ROLLBACK_FAILED    nothing" in lines
    alike = replace(answers, status=lost.status)
    lines = _text(Rehearsal({"Shop": "CREATE_COMPLETE"}, failures=(alike, lost)))
    assert f"  2  {MODEL}  ROLLBACK_COMPLETE  nothing" in lines


def test_events_before_the_update_come_first() -> None:
    """The line above the steps says what happened, with the paths of constructs."""
    found = Rehearsal({"Shop": "UPDATE_COMPLETE"}, construct_paths={"Key1": "Models/Key"})
    lines = _text(replace(found, meanwhile=("key Key1 is disabled", "31 days pass")))
    assert lines[1:3] == [
        "  meanwhile       key Models/Key is disabled",
        "                  31 days pass",
    ]


def test_a_leftover_of_several_steps_is_named_once() -> None:
    """Steps that leave the same resource are one row,
    whatever names the attempts gave to the resource.
    """
    failures = [
        Failure(
            number,
            MODEL,
            "fails",
            "ROLLBACK",
            leftovers=(Leftover("Files", "AWS::S3::Bucket", f"b{number}"),),
        )
        for number in (1, 2, 3)
    ]
    lines = _text(Rehearsal({"Shop": "UPDATE_COMPLETE"}, failures=tuple(failures)))
    assert "  1 to 3  any of these steps  ROLLBACK           1 resource" in lines
    assert [line for line in lines if "left behind by" in line] == [
        "  left behind by any of steps 1 to 3: Files (Bucket)"
    ]


def test_each_instance_type_has_its_quota() -> None:
    """The quota of each instance type is named, if the update needs more instances than before."""
    instances = (
        Instances(
            "a", "ml.c5.xlarge, ml.c6i.xlarge", 2, 4, 2, {"ml.c5.xlarge": 2, "ml.c6i.xlarge": 2}
        ),
        Instances("b", "ml.c5.xlarge", 1, 1, 1, {"ml.c5.xlarge": 1}),
        Instances("c", "ml.c7i.xlarge", 1, 1, 1, {"ml.c7i.xlarge": 1}),
    )
    lines = [
        line.strip() for line in _text(Rehearsal({"Shop": "UPDATE_COMPLETE"}, instances=instances))
    ]
    assert 'the quota "ml.c5.xlarge for endpoint usage" must be at least 3' in lines
    assert 'the quota "ml.c6i.xlarge for endpoint usage" must be at least 2' in lines
    assert not any("ml.c7i.xlarge for endpoint usage" in line for line in lines)


def test_nothing_is_said_of_endpoints_where_there_are_none() -> None:
    """The tables have no columns, and the report no lines, about endpoints and their models."""
    steps = (RehearsedStep(1, "Shop", "update", "Table", "AWS::DynamoDB::Table"),)
    failures = (Failure(1, "Table", "fails", "UPDATE_ROLLBACK_COMPLETE"),)
    plain = _text(Rehearsal({"Shop": "UPDATE_COMPLETE"}, steps=steps, failures=failures))
    words = ("answers", "may read", "callers", "endpoint", "model")
    assert not [line for line in plain if any(word in line.lower() for word in words)]
    serving = (replace(steps[0], serving={"digits": "v1"}),)
    text = "\n".join(_text(Rehearsal({"Shop": "UPDATE_COMPLETE"}, steps=serving)))
    assert "answers" in text
    assert "callers         nothing changes" in text


def test_acknowledged_problems_are_counted_apart() -> None:
    """They are listed by their paths, and an acknowledgement that matched nothing is named."""
    found = Rehearsal(
        {"Shop": "UPDATE_COMPLETE"},
        acknowledged=(WARNING,),
        unused_acknowledgements=("rehearse-leftover@Other",),
        construct_paths={MODEL: "Endpoint/Model"},
    )
    lines = _text(found)
    assert lines[-1] == "0 errors, 0 warnings, 1 acknowledged."
    assert "  acknowledged    Endpoint/Model (warning[rehearse-leftover])" in lines
    assert "rehearse-leftover@Other matches no problem; remove it" in " ".join(lines)


def test_what_is_equal_is_one_line() -> None:
    """The same resource of several stacks has a number, and of many names the first are printed."""
    left = tuple(
        Leftover("B", "AWS::S3::Bucket", f"b{number}", stack=f"S{number}") for number in range(10)
    )
    buckets = ", ".join(f"bucket-{number}" for number in range(150))
    found = Rehearsal(
        {"S0": "UPDATE_COMPLETE"}, leftovers=left, not_simulated=(f"existing bucket {buckets}",)
    )
    lines = _text(found)
    assert "  left behind     B (Bucket) in 10 stacks" in lines
    text = " ".join(line.strip() for line in lines)
    assert "existing bucket bucket-0, bucket-1, bucket-2" in text
    assert "bucket-4 and 145 more; --json lists them" in text
    assert len(lines) < 8
