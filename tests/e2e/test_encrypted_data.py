"""Data under KMS keys: what constructs declare, what the rehearsal derives,
and changes of a key.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from itertools import pairwise
from pathlib import Path

import pytest
from encrypted_app import STACK, synthesize, synthesize_callers, synthesize_kept, synthesize_queue

from cdk_rehearse import SimulatedAccount, rehearse
from cdk_rehearse.endpoints.data_uses import ALARMS
from cdk_rehearse.permissions.policy import allowed_resources
from constructs_triton_core.facts.encrypted_data import ENCRYPTED_DATA, EXECUTION_ROLE
from constructs_triton_core.findings import Finding, Severity

pytestmark = [pytest.mark.e2e, pytest.mark.xdist_group("loopback_stack")]

REMOVED = "rehearse-previous-key-removed"
KINDS = ("option keys", "bucket keys", "previous keys", "multi-model", "component", "capture")


@pytest.mark.parametrize("kind", KINDS)
def test_template_has_the_uses_that_the_constructs_declare(tmp_path: Path, kind: str) -> None:
    """Kinds, keys, readers and writers are equal, each may be used, and no other key is granted."""
    stack = synthesize(tmp_path, kind)
    with SimulatedAccount() as aws:
        aws.bootstrap()
        deployed = aws.deploy(tmp_path / "out", STACK)
        assert deployed.status == "CREATE_COMPLETE", deployed.reason
        uses = list(aws.encrypted_data.uses())
        assert [each for each in uses if aws.encrypted_data.refusal(each)] == []
        keys = {
            each.physical.attributes["Arn"]: name
            for name, each in deployed.resources.items()
            if each.request.type == "AWS::KMS::Key"
        }
        found = {(each.data, keys[each.key]) for each in uses if each.key}
        previous = {each for each in stack.declared() if each[1].startswith("Previous")}
        assert found == stack.declared() - previous
        for use in uses:
            if use.data == ALARMS:
                continue
            known = ENCRYPTED_DATA[use.data]
            users = known.readers if use.action == "reads" else known.writers
            assert (
                users == EXECUTION_ROLE
                if use.is_own and use.data != "logs"
                else users != EXECUTION_ROLE
            )
        (role,) = {each.role for each in uses if each.is_own and each.role.startswith("arn:")}
        documents = aws.access.policies.stored(role)
        granted = {*allowed_resources(documents, "kms:Decrypt")}
        granted |= {*allowed_resources(documents, "kms:CreateGrant")}
        assert {keys[each] for each in granted} == {
            key for data, key in stack.declared() if data != "logs"
        }


@pytest.fixture(scope="module")
def queue(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """Returns the assembly of a queue with these keys, which is synthesized once."""
    folder = tmp_path_factory.mktemp("queue")

    @cache
    def assembly(key: str | None, *previous: str) -> Path:
        return synthesize_queue(folder, key, previous)

    return assembly


def problems(old: Path, new: Path) -> dict[str, Finding]:
    """The problems of data of a rehearsal without failures, by endpoint and data."""
    found = rehearse(old, new, failures="none", orders=1)
    assert found.status == {STACK: "UPDATE_COMPLETE"}, found.reason
    assert {each.code for each in found.problems} <= {"rehearse-data-loses-access", REMOVED}
    return {each.path.partition(", ")[2]: each for each in found.problems}


def test_new_key_of_a_queue_is_an_error(queue: Callable[..., Path]) -> None:
    """Waiting requests and responses are lost; what only fails for a part of
    the update is a warning.
    """
    found = problems(queue("Old"), queue("New"))
    errors = {name for name, each in found.items() if each.severity is Severity.ERROR}
    assert errors == {"asynchronous requests", "asynchronous responses"}
    writing = "asynchronous requests of callers"
    assert found.keys() - errors == {"captured data", "notifications", writing}
    assert re.search("role Caller.* may not write asynchronous requests", found[writing].message)
    waiting = found["asynchronous requests"]
    assert "from before the update, under key Old" in waiting.message
    assert "first with the new key in AsyncInferenceConfig(previous_encryption_keys" in waiting.hint


def test_hint_for_a_new_key_leads_to_success(queue: Callable[..., Path]) -> None:
    """Neither its deployments nor each way back has an error,
    and removing a previous key has warnings.
    """
    folders = [queue("Old"), queue("Old", "New"), queue("New", "Old"), queue("New")]
    removed = []
    for old, new in [*pairwise(folders), *pairwise(reversed(folders))]:
        found = problems(old, new)
        assert {each.code for each in found.values()} <= {REMOVED}
        if found:
            removed.append(((old.name, new.name), found))
    assert [names for names, _ in removed] == [("New-Old", "New"), ("Old-New", "Old")]
    found = removed[0][1]
    assert {each.severity for each in found.values()} == {Severity.WARNING}
    assert "role Caller" in found["asynchronous responses"].message
    assert (
        "may not read asynchronous requests under the previous key Old"
        in found["asynchronous requests"].message
    )
    assert "until every request is answered" in found["asynchronous requests"].hint


def test_permission_for_archives_and_captured_data_under_an_old_key(tmp_path: Path) -> None:
    """Each is one warning when it is removed; while it stays, and when it is added,
    there is none.
    """
    kept, removed = (synthesize_kept(tmp_path, is_kept=each) for each in (True, False))
    found = problems(kept, removed)
    assert {name: each.code for name, each in found.items()} == {
        "uploaded archives": REMOVED,
        "captured data": REMOVED,
    }
    assert "old_key.grant_decrypt(role), until all of it is read" in found["captured data"].hint
    assert problems(kept, kept) == problems(removed, kept) == {}


def test_removed_key_of_a_queue_needs_the_old_one(queue: Callable[..., Path]) -> None:
    """Without a new key the hint is one deployment with the old key in the list."""
    found = problems(queue("Old"), queue(None))
    assert found["asynchronous requests"].hint.startswith(
        "put the old key into AsyncInferenceConfig("
    )
    assert problems(queue("Old"), queue(None, "Old")) == {}


def test_old_key_leaves_two_stacks_with_one_more_export(tmp_path: Path) -> None:
    """The deployments of the page succeed, for a repository and for callers in another stack."""
    deployments = [
        ("Old", (), ()),
        ("Old", ("New",), ()),
        ("New", ("Old",), ()),
        ("New", (), ("Old",)),
        ("New", (), ()),
    ]
    folders = [synthesize_callers(tmp_path, *each) for each in deployments]
    for old, new in pairwise(folders):
        found = rehearse(old, new, failures="none", orders=1)
        assert (found.problems, set(found.status.values())) == ((), {"UPDATE_COMPLETE"})
    (problem,) = rehearse(folders[2], folders[4], failures="none", orders=1).problems
    assert "cannot be deleted as it is in use by Callers" in problem.message
    assert "Stack.export_value" in problem.hint
