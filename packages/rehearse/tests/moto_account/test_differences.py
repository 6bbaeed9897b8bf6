"""The table of what is replaced in moto, beside the installed moto and the open account."""

from __future__ import annotations

import inspect

import pytest
from moto_differences import PAGE, differences, page

from cdk_rehearse import SimulatedAccount
from cdk_rehearse.moto_account import sagemaker
from cdk_rehearse.moto_account.differences import Difference


def test_table_shows_the_declarations_and_the_code_of_the_installed_moto() -> None:
    """The table has each difference with the digest of moto's code, which a new release changes."""
    assert PAGE.read_text() == page(), (
        "moto's code or a declaration has changed; read moto_account/README.md, "
        "then run `python dev/moto_differences.py`"
    )


def test_a_difference_that_moto_removes_is_noticed() -> None:
    """A member that moto lacked has no code, and a member that it has has some."""

    class NewerResponse:
        def update_endpoint(self) -> None:
            """Answer UpdateEndpoint."""

    assert sagemaker.UPDATE_ENDPOINT.code() == ""
    newer = Difference(NewerResponse, "update_endpoint", "changes it", is_missing=True)
    assert newer.code() != ""


@pytest.mark.parametrize(
    "difference", [found for _, found in differences()], ids=lambda found: found.member
)
def test_since_names_a_release_unless_moto_lacks_the_member(difference: Difference) -> None:
    """A declaration names the release of the code that it replaces."""
    assert (difference.since == "") == difference.is_missing


@pytest.mark.e2e
@pytest.mark.xdist_group("loopback_stack")
def test_an_open_account_replaces_each_difference_and_a_closed_one_none() -> None:
    """What is declared is replaced while an account is open, and moto is as before afterwards."""
    found = [difference for _, difference in differences()]

    def members() -> list[object]:
        return [inspect.getattr_static(each.owner, each.name, None) for each in found]

    before = members()
    with SimulatedAccount():
        kept = [
            difference.member
            for difference, former, present in zip(found, before, members(), strict=True)
            if former is present
        ]
    assert kept == []
    assert members() == before
