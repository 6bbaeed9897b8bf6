"""The simulated account asks for each object that an instance may load whether
its role may read it.
"""

from __future__ import annotations

from typing import Any

import pytest
from shared_endpoint import READS, Resources, deploy, endpoint_with_a_model, policy

from cdk_rehearse import SimulatedAccount

pytestmark = [pytest.mark.e2e, pytest.mark.xdist_group("loopback_stack")]

LIST_AND_PULL = READS[1:]
NAME = "Many"


def many(*reads: tuple[str, Any]) -> Resources:
    """A multi-model endpoint of all archives, whose role may list them and
    do what ``reads`` says.
    """
    resources = endpoint_with_a_model()
    container = resources["Model"]["Properties"]["PrimaryContainer"]
    container |= {"Mode": "MultiModel", "ModelDataUrl": "s3://models/"}
    del resources["One"]
    return resources | {"Policy": policy(*LIST_AND_PULL, *reads)}


def refused(aws: SimulatedAccount) -> set[str]:
    """The archives that could not be read at some moment, with that moment's action."""
    readings = [reading for reading in aws.fleets.readings if reading.refusal]
    return {f"{reading.moment.action} {reading.object.rpartition('/')[2]}" for reading in readings}


def test_each_archive_of_a_multi_model_endpoint_is_read(aws: SimulatedAccount) -> None:
    """A role that may list the archives and read one of them loses the other."""
    assert deploy(aws, many(READS[0]), NAME).status == "CREATE_COMPLETE"
    assert refused(aws) == set()
    only_one = many(("s3:GetObject", "arn:aws:s3:::models/one.tar.gz"))
    assert deploy(aws, only_one, NAME).status == "UPDATE_COMPLETE"
    assert refused(aws) == {"update two.tar.gz", "end two.tar.gz"}


def test_each_archive_is_decrypted_with_its_own_key(aws: SimulatedAccount) -> None:
    """Archives have different keys; a role that may use one of them cannot read the other."""
    keys = {}
    for name in ("one", "two"):
        keys[name] = aws.client("kms").create_key()["KeyMetadata"]["Arn"]
        place(aws, name, ServerSideEncryption="aws:kms", SSEKMSKeyId=keys[name])
    assert (
        deploy(aws, many(READS[0], ("kms:Decrypt", keys["one"])), NAME).status == "CREATE_COMPLETE"
    )
    assert {each.partition(" ")[2] for each in refused(aws)} == {"two.tar.gz"}
    for name in keys:
        place(aws, name)


def test_readers_are_asked_after_the_cleanup(aws: SimulatedAccount) -> None:
    """A permission that only the cleanup phase takes away is missed from then on."""
    separate = {"Reads": policy(READS[0])}
    separate["Reads"]["Properties"]["PolicyName"] = "separate"
    resources = many()
    resources["Model"]["DependsOn"].append("Reads")
    assert deploy(aws, resources | separate, NAME).status == "CREATE_COMPLETE"
    assert refused(aws) == set()
    resources["Model"]["DependsOn"].remove("Reads")
    assert deploy(aws, resources, NAME).status == "UPDATE_COMPLETE"
    archives = ("one.tar.gz", "two.tar.gz")
    assert refused(aws) == {f"{moment} {name}" for moment in ("delete", "end") for name in archives}


def place(aws: SimulatedAccount, name: str, **encryption: str) -> None:
    aws.client("s3").put_object(Bucket="models", Key=f"{name}.tar.gz", Body=b"x", **encryption)


@pytest.mark.parametrize("attribute", ["Arn", "Bucket"])
def test_role_whose_policy_names_an_unknown_place_may_read(
    aws: SimulatedAccount, attribute: str
) -> None:
    """Only AWS knows what a value of a resource that is not simulated allows."""
    place: Any = {"Fn::GetAtt": ["Choice", attribute]}
    if attribute == "Bucket":
        place = {"Fn::Join": ["", ["arn:aws:s3:::", place, "/*"]]}
    resources = many(("s3:GetObject", place))
    resources["Choice"] = {"Type": "Datadog::Monitors::Monitor"}
    assert deploy(aws, resources, NAME).status == "CREATE_COMPLETE"
    assert refused(aws) == set()
    assert any("Choice" in each for each in aws.not_simulated["policies:"])
