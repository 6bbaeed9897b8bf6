"""Whether a permission for an endpoint reaches its grantee: only policies of the caller count."""

from __future__ import annotations

from collections.abc import Iterator

from aws_cdk import aws_iam as iam

from constructs_triton.cdk.validation.read_once import environment_of
from constructs_triton_core.findings import Finding, Severity
from constructs_triton_core.tokens import is_token

_SOURCE = (
    "Service Authorization Reference, Amazon SageMaker: endpoints and inference components have no "
    "resource policy; IAM user guide, cross-account resource access: an account that has none "
    "lets others in by a role"
)


def grantee_findings(
    grantee: iam.IGrantable, grant: iam.Grant, account: str, path: str
) -> Iterator[Finding]:
    """Yield a warning for a permission that allows no call.

    Args:
        grantee: Who gets the permission.
        grant: The permission.
        account: Account of the endpoint; may be a token.
        path: Where the warning is, such as ``"grantee"``.
    """
    # A role that the app creates always takes policies.
    if not isinstance(grantee, iam.Role) and not grant.success:
        yield Finding(
            "grantee-without-policy",
            Severity.WARNING,
            path,
            "no policy can be attached to this principal, so it gets no permission: endpoints have "
            "no policy of their own",
            "pass a role, a user, a group, or a construct with a role, such as a function",
            source=_SOURCE,
        )
        return

    there = _account_of(grantee)
    if there is None or is_token(there) or is_token(account) or there == account:
        return
    yield Finding(
        "grantee-in-other-account",
        Severity.WARNING,
        path,
        f"endpoints have no policy that lets another account call them; this one is in {account}, "
        f"got a grantee of {there}",
        f"grant a role of {account} that the caller may assume: "
        f'iam.Role(self, "Caller", assumed_by=iam.AccountPrincipal("{there}"))',
        source=_SOURCE,
    )


def _account_of(grantee: iam.IGrantable) -> str | None:
    """The account of a grantee; ``None`` if it has none, as ``iam.UnknownPrincipal``.

    A role that the app creates, the most frequent grantee, is in the account of its stack, which
    is read once.
    """
    if isinstance(grantee, iam.Role):
        return environment_of(grantee).account
    return getattr(grantee.grant_principal, "principal_account", None)
