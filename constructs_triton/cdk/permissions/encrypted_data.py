"""Data of a construct that is encrypted with KMS keys: its permissions,
and the Region of the keys.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from aws_cdk import aws_kms as kms
from constructs import Construct

from constructs_triton.cdk.permissions.places import Place, check_places
from constructs_triton.cdk.permissions.statements import Statement, allow
from constructs_triton.cdk.validation.property_types import KEY, check_has, check_type
from constructs_triton.cdk.validation.read_once import environment_of
from constructs_triton_core.errors import InvalidValueError
from constructs_triton_core.facts.encrypted_data import READ_ACTIONS, WRITE_ACTIONS, DataName
from constructs_triton_core.findings import Finding
from constructs_triton_core.tokens import is_token


@dataclass(frozen=True, slots=True)
class DataUnderKeys:
    """One kind of data, and the keys that it may have.

    Args:
        name: What it is.
        current: The keys of new data, each with the property that sets it; ``None`` is no key.
        previous: Further keys that the data may have.
        owner: The property of the option that sets ``previous``; empty for a property of the
            construct.
    """

    name: DataName
    current: Sequence[tuple[str, kms.IKey | None]]
    previous: Sequence[kms.IKey] = ()
    owner: str = ""

    @property
    def keys(self) -> list[kms.IKey]:
        """The keys, the current ones first."""
        return [key for _, key in self._named()]

    @property
    def arns(self) -> list[str]:
        """The ARNs of the keys, each once."""
        return list(dict.fromkeys(key.key_arn for key in self.keys))

    def read_statements(self, sid: str | None) -> list[Statement]:
        """Permission to decrypt the data; none without a key."""
        return self._statements(sid, READ_ACTIONS)

    def write_statements(self, sid: str | None, *more_actions: str) -> list[Statement]:
        """Permission to encrypt new data; none without a key."""
        return self._statements(sid, sorted([*WRITE_ACTIONS, *more_actions]))

    def check_region(self, scope: Construct) -> None:
        """Check that the keys are in the Region of the stack, where the CDK knows both."""
        keys = list(self._named())
        here = environment_of(scope).region if keys else ""
        if is_token(here):
            return
        for name, key in keys:
            environment = getattr(key, "env", None)  # an interface of the user's own may have none
            there = here if environment is None else environment.region
            if there != here and not is_token(there):
                shown = key.node.path if is_token(key.key_arn) else key.key_arn
                raise InvalidValueError(
                    f"{name}: its KMS key must be in the Region of the stack, {here}, got {there} "
                    f"({shown}); use a key in {here}, for example a replica of a multi-Region key"
                )

    def places(self) -> Iterator[Place]:
        """Where the keys are."""
        for name, key in self._named():
            yield from Place.of(name, "key", key, key.key_arn)

    def _named(self) -> Iterator[tuple[str, kms.IKey]]:
        """Yield the keys with the names of their properties: the current ones come first."""
        for name, key in self.current:
            if key is not None:
                yield name, key
        owner = f"{self.owner}." if self.owner else ""
        for number, key in enumerate(self.previous):
            yield f"{owner}previous_encryption_keys[{number}]", key

    def _statements(self, sid: str | None, actions: Sequence[str]) -> list[Statement]:
        arns = self.arns
        return [allow(sid, actions, arns)] if arns else []


def check_regions(scope: Construct, data: Iterable[DataUnderKeys]) -> list[Finding]:
    """Check that all keys are in the Region of the stack, where the CDK knows both.

    Returns a warning for each key of another account.
    """
    places: list[Place] = []
    for each in data:
        each.check_region(scope)
        places += each.places()
    return check_places(scope, places)


def check_previous_keys(keys: Sequence[kms.IKey], owner: str = "") -> None:
    """Check the keys that data may still have."""
    name = f"{owner}.previous_encryption_keys" if owner else "previous_encryption_keys"
    check_type(name, keys, ((list, tuple), "[key]"))
    for number, key in enumerate(keys):
        check_has(f"{name}[{number}]", key, *KEY)
