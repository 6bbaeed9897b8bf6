"""What a rehearsal of an update reports."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
from shared_endpoint import Resources
from small_assembly import codes, endpoint, of_code, rehearsal, write_assembly

from cdk_rehearse.updates import rehearsing
from cdk_rehearse.updates.simulation import simulate
from cdk_rehearse.updates.versions import Request, read_version
from constructs_triton_core.errors import InvalidValueError
from constructs_triton_core.findings import Severity
from constructs_triton_core.processes import bounded_process

pytestmark = [pytest.mark.e2e, pytest.mark.xdist_group("loopback_stack")]

OLD = endpoint()
ADMIN = {"Effect": "Allow", "Action": "kms:*", "Resource": "*", "Principal": {"AWS": "*"}}
BUCKET = {"Type": "AWS::S3::Bucket", "DeletionPolicy": "Retain", "UpdateReplacePolicy": "Retain"}


def test_update_of_a_model_is_reported_step_by_step(tmp_path: Path) -> None:
    """New content replaces model and configuration, and the old ones are deleted at the end."""
    found = rehearsal(tmp_path, OLD, endpoint(archive="two.tar.gz"), failures="each")
    assert [(step.action, step.logical_id, step.is_cleanup) for step in found.steps] == [
        ("replace", "Model", False),
        ("replace", "Config", False),
        ("update", "Endpoint", False),
        ("delete", "Config", True),
        ("delete", "Model", True),
    ]
    assert found.point_of_no_return == 4
    assert found.replaced == ("Model", "Config")
    assert [step.serving["digits"] for step in found.steps] == ["v1", "v1", "v1, v2", "v2", "v2"]
    assert [(step.may_read_old, step.may_read_new) for step in found.steps][2:4] == [
        (True, True),
        (None, True),
    ]
    assert [(failure.logical_id, failure.event, failure.status) for failure in found.failures] == [
        ("Model", "fails", "UPDATE_ROLLBACK_COMPLETE"),
        ("Config", "fails", "UPDATE_ROLLBACK_COMPLETE"),
        ("Endpoint", "fails", "UPDATE_ROLLBACK_COMPLETE"),
        ("Endpoint", "reverts", "UPDATE_COMPLETE"),
    ]
    assert found.way_back is not None
    assert found.way_back.succeeds
    assert codes(found) == {"rehearse-revert-unnoticed"}
    assert found.errors == []


def test_only_the_endpoint_of_the_step_reverts(tmp_path: Path) -> None:
    """If SageMaker reverts one update, another endpoint of the stack serves the new version.

    A check of the other endpoint therefore does not notice it.
    """
    old = _two_endpoints("one.tar.gz")
    new = _two_endpoints("two.tar.gz")

    found = rehearsal(tmp_path, old, new, failures="each")

    serving = {}
    for failure in found.failures:
        if failure.event == "reverts":
            # The name of the other endpoint is generated.
            serving[failure.logical_id] = {
                "digits" if name == "digits" else "letters": version
                for name, version in failure.serving.items()
            }
    assert serving == {
        "Endpoint": {"digits": "v1", "letters": "v2"},
        "Letters": {"digits": "v2", "letters": "v1"},
    }
    unnoticed = of_code(found.problems, "rehearse-revert-unnoticed")
    assert {problem.path for problem in unnoticed} == {"Endpoint", "Letters"}


def _two_endpoints(archive: str) -> Resources:
    """Return two endpoints of one configuration; the second one has no name."""
    digits = endpoint(archive=archive)
    letters = copy.deepcopy(digits["Endpoint"])
    del letters["Properties"]["EndpointName"]
    return {**digits, "Letters": letters}


def test_interrupted_rehearsal_ends_its_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After Ctrl-C no process is left, and the next rehearsal reads its own answer."""

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    process = rehearsing._PROCESS._started()
    new = write_assembly(tmp_path / "new", OLD)
    with monkeypatch.context() as interrupted:
        interrupted.setattr(bounded_process, "read_exactly", interrupt)
        with pytest.raises(KeyboardInterrupt):
            rehearsing.rehearse(None, new, failures="none", orders=1)
    assert process.poll() is not None
    found = rehearsing.rehearse(None, new, failures="none", orders=1)
    assert {step.action for step in found.steps} == {"create"}


def test_policy_that_no_longer_reads_the_served_model_is_an_error(tmp_path: Path) -> None:
    """A policy that changes in place takes the old model from the fleet that serves it."""
    new = endpoint(archive="two.tar.gz", readable="two.tar.gz")
    found = rehearsal(tmp_path, endpoint(readable="one.tar.gz"), new)
    (problem,) = found.problems
    assert problem.code == "rehearse-reader-loses-access"
    assert problem.path == "endpoint digits"
    assert "from step 1 (update Policy) on" in problem.message
    assert [step.may_read_old for step in found.steps][:3] == [False, False, False]
    assert found.steps[-1].may_read_new is True


def test_endpoint_with_another_name_is_replaced(tmp_path: Path) -> None:
    """Callers of the old name get errors; the report names the new endpoint."""
    found = rehearsal(tmp_path, OLD, endpoint(name="letters"))
    (problem,) = found.problems
    assert problem.code == "rehearse-endpoint-replaced"
    assert "the new endpoint is letters" in problem.message
    assert found.callers == ("endpoint digits no longer exists", "endpoint letters is new")


def test_generated_name_is_one_endpoint_in_both_orders(tmp_path: Path) -> None:
    """The random end of a generated name differs between two orders,
    and the instance type is known.
    """
    old = endpoint()
    del old["Endpoint"]["Properties"]["EndpointName"]
    found = rehearsal(tmp_path, old, endpoint(name="letters"), orders=2)
    assert [problem.code for problem in found.problems] == ["rehearse-endpoint-replaced"]
    assert [fleet.instance_type for fleet in found.instances] == ["ml.g5.xlarge", "ml.g5.xlarge"]


def test_renamed_construct_collides_with_its_own_name(tmp_path: Path) -> None:
    """Another logical ID with the same endpoint name cannot be created while
    the old endpoint exists.
    """
    new = {"Topic": {"Type": "AWS::SNS::Topic"}, **endpoint()}
    new["Other"] = new.pop("Endpoint")
    found = rehearsal(tmp_path, OLD, new)
    assert codes(found) == {"rehearse-name-collision"}
    assert [(step.action, step.type) for step in found.steps] == [
        ("create", "AWS::SNS::Topic"),
        ("delete", "AWS::SNS::Topic"),
    ]
    assert found.status == {"S": "UPDATE_ROLLBACK_COMPLETE"}


def test_removed_endpoint_stops_serving(tmp_path: Path) -> None:
    """An endpoint that no other takes the place of is an error,
    but not if everything is deleted.
    """
    without_endpoint = {name: OLD[name] for name in OLD if name != "Endpoint"}
    assert codes(rehearsal(tmp_path, OLD, without_endpoint)) == {"rehearse-serving-stops"}

    deleted = rehearsal(tmp_path, OLD, None)
    assert deleted.status == {"S": "DELETE_COMPLETE"}
    assert codes(deleted) == set()


def test_removed_scaling_may_shrink_the_fleet(tmp_path: Path) -> None:
    """AWS does not document whether the endpoint is updated, so the problem
    depends on it: a warning.
    """
    found = rehearsal(tmp_path, endpoint(scaled_to=4), OLD, orders=2)
    (problem,) = found.problems
    assert problem.code == "rehearse-fleet-shrinks"
    assert problem.message.startswith("depending on AWS: ")
    assert problem.severity is Severity.WARNING
    assert "it has 4" in problem.message
    assert any("rehearse-fleet-shrinks" in note for note in found.depends_on_aws)


@pytest.mark.parametrize(
    ("highest", "fleets", "severity", "after"),
    [
        (8, {}, Severity.WARNING, 8),
        (8, {"digits": 20}, Severity.ERROR, 8),
        (8, {"Endpoint": 20}, Severity.ERROR, 8),
        (8, {"digits": 6}, None, 6),
        (40, {}, None, 20),
    ],
)
def test_maximum_below_the_fleet_stops_instances(
    highest: int, fleets: dict[str, Any], severity: Severity | None, after: int, tmp_path: Path
) -> None:
    """RegisterScalableTarget adjusts the capacity;
    a warning if the number of instances is only assumed.
    """
    found = rehearsal(tmp_path, endpoint(scaled_to=20), endpoint(scaled_to=highest), **fleets)
    expected = [] if severity is None else [("rehearse-fleet-shrinks", severity)]
    assert [(problem.code, problem.severity) for problem in found.problems] == expected
    assert [fleet.after for fleet in found.instances] == [after]
    assert all("max_capacity" in problem.hint for problem in found.problems)


def test_minimum_above_the_fleet_starts_instances(tmp_path: Path) -> None:
    """A higher minimum takes effect at once."""
    new = endpoint(scaled_to=8)
    new["Target"]["Properties"]["MinCapacity"] = 5
    (counted,) = rehearsal(tmp_path, endpoint(scaled_to=8), new, digits=2).instances
    assert (counted.before, counted.after) == (2, 5)


def test_retained_endpoint_that_leaves_the_app_costs_money(tmp_path: Path) -> None:
    """What costs by the hour is a warning also after an update;
    a retained bucket is a line only.
    """
    old = {}
    for name, declared in {**OLD, "Bucket": BUCKET}.items():
        old[name] = {**declared, "DeletionPolicy": "Retain"}

    found = rehearsal(tmp_path, old, {"Topic": {"Type": "AWS::SNS::Topic"}})

    (problem,) = found.problems
    assert (problem.code, problem.path) == ("rehearse-leftover", "Endpoint")
    assert problem.message.startswith("after the update")
    assert "Bucket" in {leftover.logical_id for leftover in found.leftovers}


def test_tags_are_updated_without_a_word(tmp_path: Path) -> None:
    """A change of tags alone is simulated for each type,
    and is no new configuration of an endpoint.
    """
    document = {"Version": "2012-10-17", "Statement": [ADMIN]}
    old: Resources = {
        **endpoint(),
        "Key": {"Type": "AWS::KMS::Key", "Properties": {"KeyPolicy": document}},
        "Logs": {"Type": "AWS::Logs::LogGroup", "Properties": {"RetentionInDays": 7}},
        "Value": {"Type": "AWS::SSM::Parameter", "Properties": {"Type": "String", "Value": "a"}},
        "Topic": {"Type": "AWS::SNS::Topic", "Properties": {}},
        "Images": {"Type": "AWS::ECR::Repository", "Properties": {}},
        "Vpc": {"Type": "AWS::EC2::VPC", "Properties": {"CidrBlock": "10.0.0.0/16"}},
        "Bucket": {"Type": "AWS::S3::Bucket", "Properties": {}},
    }
    tagged = old.keys() - {"Policy"}  # an inline policy has no tags
    new = copy.deepcopy(old)
    for name in tagged:
        new[name]["Properties"]["Tags"] = [{"Key": "team", "Value": "ml"}]
    new["Value"]["Properties"]["Tags"] = {"team": "ml"}
    new["Logs"]["Properties"]["RetentionInDays"] = 14

    found = rehearsal(tmp_path, old, new, orders=2)
    assert {step.logical_id for step in found.steps} == tagged
    assert {step.action for step in found.steps} == {"update"}
    assert found.problems == ()
    assert not any("update of" in note or "Tags" in note for note in found.not_simulated)
    assert not any("starts new instances" in note for note in found.depends_on_aws)

    failures = rehearsal(tmp_path, old, new, failures="each").failures
    assert {failure.status for failure in failures} == {"UPDATE_ROLLBACK_COMPLETE"}
    assert not any(failure.event == "reverts" for failure in failures)


def test_image_repository_that_no_stack_creates_is_listed(tmp_path: Path) -> None:
    """An image of another repository is assumed to exist; those of AWS are known."""
    new = endpoint()
    new["Model"]["Properties"]["PrimaryContainer"]["Image"] = (
        "123456789012.dkr.ecr.us-east-1.amazonaws.com/team/mine:1"
    )
    assert "existing image repository mine" in rehearsal(tmp_path, OLD, new).not_simulated

    of_aws = rehearsal(tmp_path, None, OLD)
    assert not any("repository" in note for note in of_aws.not_simulated)


def test_instance_type_of_a_scaled_variant_is_refused(tmp_path: Path) -> None:
    """The reason is SageMaker's, and the hint names the property that makes the update possible."""
    found = rehearsal(
        tmp_path, endpoint(scaled_to=4), endpoint(scaled_to=4, instance_type="ml.g6.xlarge")
    )
    (problem,) = found.problems
    assert problem.code == "rehearse-update-fails"
    assert "scaling_guard=True" in problem.hint
    assert [fleet.instance_type for fleet in found.instances] == ["ml.g5.xlarge"]


def test_second_fleet_needs_quota(tmp_path: Path) -> None:
    """A new fleet starts beside the old one, without retained counts with its initial number."""
    found = rehearsal(tmp_path, OLD, endpoint(archive="two.tar.gz"), digits=3)
    (counted,) = found.instances
    assert (counted.before, counted.peak, counted.instance_type) == (3, 4, "ml.g5.xlarge")
    assert codes(found) == {"rehearse-fleet-shrinks"}


def test_fleet_that_another_stack_scales_is_kept_as_the_hint_says(tmp_path: Path) -> None:
    """The template of the endpoint does not know this scaling, so its update must keep the count.

    A construct that imports the endpoint registers such scaling.
    """
    new = endpoint(archive="two.tar.gz")
    (problem,) = rehearsal(tmp_path, OLD, new, digits=3).problems
    assert "call retain_instance_counts() on it (RetainAllVariantProperties)" in problem.hint
    new["Endpoint"]["Properties"]["RetainAllVariantProperties"] = True
    found = rehearsal(tmp_path, OLD, new, digits=3)
    assert codes(found) == set()
    assert [fleet.after for fleet in found.instances] == [3]


def test_instance_of_any_pool_needs_quota(tmp_path: Path) -> None:
    """Which type starts is not known, so each needs the quota for all instances."""
    resources = endpoint(archive="two.tar.gz")
    (variant,) = resources["Config"]["Properties"]["ProductionVariants"]
    del variant["InstanceType"]
    variant["InstancePools"] = [
        {"InstanceType": "ml.g5.xlarge", "Priority": 2},
        {"InstanceType": "ml.g6.xlarge", "Priority": 1},
    ]
    (counted,) = rehearsal(tmp_path, OLD, resources).instances
    assert (counted.peak, counted.peak_by_type) == (2, {"ml.g5.xlarge": 2, "ml.g6.xlarge": 1})


@pytest.mark.parametrize(
    ("size", "peak"), [(("INSTANCE_COUNT", 2), 7), (("CAPACITY_PERCENT", 30), 7)]
)
def test_rolling_update_of_a_generated_name_adds_one_batch(
    size: tuple[str, int], peak: int, tmp_path: Path
) -> None:
    """An endpoint without a name is meant by its logical ID;
    30 percent of five are two instances.
    """
    unit, number = size
    policy = {"MaximumBatchSize": {"Type": unit, "Value": number}, "WaitIntervalInSeconds": 60}
    old = endpoint()
    new = endpoint(archive="two.tar.gz")
    for version in (old, new):
        properties = version["Endpoint"]["Properties"]
        del properties["EndpointName"]
        properties |= {
            "RetainAllVariantProperties": True,
            "DeploymentConfig": {"RollingUpdatePolicy": policy},
        }

    (counted,) = rehearsal(tmp_path, old, new, Endpoint=5).instances

    assert counted.endpoint.startswith("S-Endpoint-")
    assert (counted.before, counted.peak, counted.after) == (5, peak, 5)
    assert counted.instance_type == "ml.g5.xlarge"


def test_fleet_of_an_unknown_endpoint_is_an_error(tmp_path: Path) -> None:
    """The error lists what the old version has."""
    with pytest.raises(InvalidValueError, match=r"'letters'.*digits \(Endpoint\)"):
        rehearsal(tmp_path, OLD, OLD, letters=2)
    with pytest.raises(InvalidValueError, match="OLD has no such endpoint"):
        rehearsal(tmp_path, None, OLD, digits=2)


def test_failed_first_deployment_leaves_a_retained_bucket(tmp_path: Path) -> None:
    """A bucket that the template retains remains after each attempt, and costs money."""
    found = rehearsal(tmp_path, None, {"Bucket": BUCKET, **OLD}, failures="each")

    leftovers = {failure.logical_id: failure.leftovers for failure in found.failures}
    assert [leftover.logical_id for leftover in leftovers["Endpoint"]] == ["Bucket"]
    assert codes(found) == {"rehearse-leftover"}
    assert found.errors == []


def test_retained_endpoint_whose_role_is_deleted_is_an_error(tmp_path: Path) -> None:
    """After the deletion of the stack, the retained endpoint cannot start an instance."""
    new = dict(OLD)
    for name in ("Endpoint", "Config", "Model"):
        new[name] = {**OLD[name], "DeletionPolicy": "Retain"}
    assert codes(rehearsal(tmp_path, OLD, new)) == {"rehearse-retained-needs"}


def test_template_alone_makes_no_statement_about_readers(tmp_path: Path) -> None:
    """Of a template alone the models are not known, so no reader is reported."""
    folder = write_assembly(tmp_path / "old", OLD)
    new = write_assembly(tmp_path / "new", endpoint(archive="two.tar.gz", readable="nothing"))
    request = Request(
        read_version(folder / "S.template.json"), read_version(new / "S.template.json")
    )
    found = simulate(request)
    assert {step.may_read_old for step in found.steps} == {None}
    assert "functions and models" in found.not_simulated[0]
    assert codes(found) == {"rehearse-revert-unnoticed"}
