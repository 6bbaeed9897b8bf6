"""Everything of every construct that may be under a key, deployed with a key behind each."""

from __future__ import annotations

from pathlib import Path

import pytest
from keyed_properties import STACK, constructs, synthesize

from cdk_rehearse import SimulatedAccount
from cdk_rehearse.permissions.policy import allowed_resources
from cdk_rehearse.stacks.stack import Stack

pytestmark = [pytest.mark.e2e, pytest.mark.xdist_group("loopback_stack")]


@pytest.mark.parametrize("owner", constructs(), ids=lambda owner: owner.__name__)
def test_whoever_uses_data_may_use_its_key(tmp_path: Path, owner: type) -> None:
    """No use of the list of encrypted data is refused, and each key is used or granted."""
    for folder in synthesize(tmp_path, owner):
        with SimulatedAccount() as aws:
            aws.bootstrap()
            deployed = aws.deploy(folder, STACK)
            assert deployed.status == "CREATE_COMPLETE", deployed.reason
            uses = list(aws.encrypted_data.uses())
            refused = {(use.data, use.key): aws.encrypted_data.refusal(use) for use in uses}
            assert {use: why for use, why in refused.items() if why} == {}
            unused = keys_of(deployed) - {use.key for use in uses}
            assert unused - granted(aws) == set()


def keys_of(deployed: Stack) -> set[str]:
    """The ARNs of the keys of a stack."""
    return {
        resource.physical.attributes["Arn"]
        for resource in deployed.resources.values()
        if resource.request.type == "AWS::KMS::Key"
    }


def granted(aws: SimulatedAccount) -> set[str]:
    """The keys with which a role may decrypt: data that is written later, or is there already."""
    roles = aws.api.backend("iam").roles.values()
    policies = [aws.access.policies.stored(role.arn) for role in roles]
    return {arn for documents in policies for arn in allowed_resources(documents, "kms:Decrypt")}
