"""Updates that failed or lost something on AWS, by public reports."""

from __future__ import annotations

from pathlib import Path

import pytest
from public_reports import FOUND, REPORTS, private_endpoints, user_pool
from small_assembly import rehearsal

pytestmark = [pytest.mark.e2e, pytest.mark.xdist_group("loopback_stack")]


@pytest.mark.parametrize("report", REPORTS)
def test_rehearsal_says_what_the_report_says(tmp_path: Path, report: str) -> None:
    """The rehearsal names the resource that failed on AWS, and is silent where AWS has changed."""
    old, new = REPORTS[report]
    found = rehearsal(tmp_path, old, new, failures="none")
    problems = {(problem.code, problem.path) for problem in found.problems}
    assert problems == ({FOUND[report]} if report in FOUND else set())


def test_endpoints_without_private_dns_exist_beside_each_other(tmp_path: Path) -> None:
    """A VPC has one endpoint with private DNS for a service, and any number without."""
    old = private_endpoints("EndpointA", has_private_dns=False)
    new = private_endpoints("EndpointA", "EndpointB", has_private_dns=False)
    assert rehearsal(tmp_path, old, new).problems == ()


@pytest.mark.parametrize("is_last", [False, True])
def test_rollback_cannot_remove_an_attribute_of_users(tmp_path: Path, is_last: bool) -> None:
    """aws-amplify/amplify-cli#4455: a step after the new attribute failed, and the rollback too."""
    team = {"Name": "team", "AttributeDataType": "String", "Mutable": True}
    topics = [
        {"Topic": {"Type": "AWS::SNS::Topic", "Properties": {"DisplayName": name}}}
        for name in ("one", "two")
    ]
    for topic in topics:
        topic["Topic"]["DependsOn"] = [] if is_last else ["Pool"]
    old, new = topics[0] | user_pool(), topics[1] | user_pool(team)
    found = rehearsal(tmp_path, old, new, failures="each")
    expected = set() if is_last else {("rehearse-rollback-fails", "Topic")}
    assert {(problem.code, problem.path) for problem in found.problems} == expected
    assert list(found.errors) == []
