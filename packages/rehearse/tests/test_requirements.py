"""What a rehearsal needs: the packages of the extra,
and a release of moto that it can adapt and clean.
"""

from __future__ import annotations

import subprocess
import sys

import pytest

from cdk_rehearse import SimulatedAccount
from cdk_rehearse.moto_account.differences import Difference
from constructs_triton_core.errors import MissingDependencyError


@pytest.mark.parametrize("package", ["moto", "werkzeug"])
def test_missing_package_names_the_extra(package: str) -> None:
    """Without a package of the extra, the error names the package and the
    command that installs it.
    """
    code = f"""
import sys
sys.modules[{package!r}] = None
import cdk_rehearse as rehearsal
from constructs_triton_core.errors import MissingDependencyError
try:
    rehearsal.SimulatedAccount
except MissingDependencyError as error:
    print(error)
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.startswith(f"cdk_rehearse: {package} is not installed")
    assert "run `pip install cdk-rehearse`" in run.stdout


def test_unsupported_release_of_moto_names_the_fix() -> None:
    """A member that this release of moto does not have is an error with the command
    that installs another.
    """

    class FakeBackend:
        pass

    with (
        pytest.raises(
            MissingDependencyError, match=r"moto 5\.2\S* is not supported, its .*FakeBackend has no"
        ),
        Difference(FakeBackend, "validate", "validates", since="5.0.0").replaced_by(None),
    ):
        pass
    missing = Difference(FakeBackend, "validate", "validates", since="5.0.0", is_missing=True)
    with missing.replaced_by(1):
        assert vars(FakeBackend)["validate"] == 1
    assert "validate" not in vars(FakeBackend)


@pytest.mark.e2e
@pytest.mark.xdist_group("loopback_stack")
def test_next_account_has_no_attachments() -> None:
    """A managed policy of AWS that one account attached has no attachment in the next one."""
    arn = "arn:aws:iam::aws:policy/AmazonSageMakerFullAccess"
    counts = []
    for _ in range(2):
        with SimulatedAccount() as account:
            iam = account.client("iam")
            counts.append(iam.get_policy(PolicyArn=arn)["Policy"]["AttachmentCount"])
            iam.create_role(RoleName="role", AssumeRolePolicyDocument="{}")
            iam.attach_role_policy(RoleName="role", PolicyArn=arn)
            counts.append(iam.get_policy(PolicyArn=arn)["Policy"]["AttachmentCount"])
    assert counts == [0, 1, 0, 1]
