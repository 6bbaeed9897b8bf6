"""What CloudFront, Lambda@Edge and Glue may refuse, by public reports."""

from __future__ import annotations

from typing import Any

import pytest

from cdk_rehearse.updates.possible_refusals import possible_refusals
from cdk_rehearse.updates.versions import NONE, StackVersion, Version
from constructs_triton_core.cloud_assembly.template import Template

Resources = dict[str, Any]


def distribution(*aliases: str, runs: str = "") -> Resources:
    """A distribution with alternate domain names, which runs a version of a function."""
    behavior: Resources = {"TargetOriginId": "o", "ViewerProtocolPolicy": "https-only"}
    if runs:
        association = {"EventType": "viewer-request", "LambdaFunctionARN": {"Ref": runs}}
        behavior["LambdaFunctionAssociations"] = [association]
    config = {"Enabled": True, "Aliases": list(aliases), "DefaultCacheBehavior": behavior}
    return {
        "Type": "AWS::CloudFront::Distribution",
        "Properties": {"DistributionConfig": config},
    }


def edge_function(**attributes: str) -> Resources:
    """A function, and its version."""
    function = {"Type": "AWS::Lambda::Function", "Properties": {"Role": "arn:r"}, **attributes}
    version = {"Type": "AWS::Lambda::Version", "Properties": {"FunctionName": {"Ref": "Edge"}}}
    return {"Edge": function, "Version": version}


def database(name: Any) -> Resources:
    properties = {"CatalogId": {"Ref": "AWS::AccountId"}, "DatabaseInput": {"Name": name}}
    return {"Type": "AWS::Glue::Database", "Properties": properties}


def warned(old: Resources, new: Resources) -> list[str]:
    """The logical IDs of what may be refused."""
    return [problem.path for problem in possible_refusals(_version(old), _version(new))]


def _version(resources: Resources) -> Version:
    if not resources:
        return NONE
    return Version((StackVersion("S", Template({"Resources": resources})),))


SITE = distribution("www.example.com")


@pytest.mark.parametrize(
    ("old", "new", "names"),
    [
        # aws/aws-cdk#12707 and #32373
        ({"SiteA": SITE}, {"SiteB": distribution("WWW.example.com")}, ["SiteB"]),
        (
            {"SiteA": SITE, "SiteB": distribution()},
            {"SiteA": distribution(), "SiteB": SITE},
            ["SiteB"],
        ),
        ({"SiteA": SITE}, {"SiteA": SITE, "SiteB": distribution("b.example.com")}, []),
        ({"SiteA": SITE}, {"SiteA": distribution("a.example.com")}, []),
        ({"SiteA": distribution()}, {"SiteB": distribution()}, []),
    ],
)
def test_alternate_domain_name_is_that_of_one_distribution(
    old: Resources, new: Resources, names: list[str]
) -> None:
    """A name cannot move to another distribution in one update."""
    assert warned(old, new) == names


@pytest.mark.parametrize(
    ("new", "names"),
    [
        ({}, ["Edge"]),  # aws/aws-cdk#15010, serverless-nextjs/serverless-next.js#2432
        ({"Site": distribution()}, ["Edge"]),
        ({"Site": distribution(), **edge_function()}, []),
    ],
)
def test_function_at_edge_locations_is_not_deleted_at_once(
    new: Resources, names: list[str]
) -> None:
    """Neither an update nor the deletion of the stack can delete it, before its copies are."""
    assert warned({"Site": distribution(runs="Version"), **edge_function()}, new) == names


def test_retained_function_and_one_of_a_region_can_leave_the_stack() -> None:
    """A function that is kept is not deleted, and one that no distribution runs has no copies."""
    kept = {"Site": distribution(runs="Version"), **edge_function(DeletionPolicy="Retain")}
    assert warned(kept, {}) == []
    assert warned({"Site": distribution(), **edge_function()}, {}) == []


@pytest.mark.parametrize(
    ("old", "new", "names"),
    [
        ("sales", "Sales", ["B"]),
        ("sales", "returns", []),
        ({"Fn::ImportValue": "Name"}, {"Fn::ImportValue": "Other"}, []),
    ],
)
def test_database_of_the_catalog_cannot_change_its_logical_id(
    old: Any, new: Any, names: list[str]
) -> None:
    """Glue has one database of a name, in capitals or not; what is not known is no refusal."""
    assert warned({"A": database(old)}, {"B": database(new)}) == names
