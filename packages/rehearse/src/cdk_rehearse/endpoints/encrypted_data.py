"""Who uses data that is encrypted with a KMS key, and whether they still may after each step.

S3 does not encrypt existing objects again when the key of a bucket changes, so what was written
before a step keeps its key.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from ..existing import is_assumed_role
from ..permissions.access import Access
from ..steps import Step
from .data_permissions import DataPermissions
from .data_uses import ARCHIVES, MODELS, DataReading, Use, previous_uses
from .endpoint_data import EndpointData
from .fleets import Fleets

__all__ = ["DataReading", "EncryptedDataUses", "Use"]


@dataclass
class EncryptedDataUses:
    """Compares the uses of the account as it is with those before an update."""

    fleets: Fleets
    access: Access
    _before: tuple[Use, ...] = field(default_factory=tuple)

    def __post_init__(self) -> None:
        self._permissions = DataPermissions(self.access)
        self._data = EndpointData(self.fleets, self.access, self._permissions)

    def uses(self) -> Iterator[Use]:
        """Yield each use of the endpoints and log groups that exist, allowed or not."""
        for use in self._data.of_models():
            yield replace(use, data=MODELS)
        yield from self._data.of_other_data()

    def refusal(self, use: Use) -> str:
        """Why a role may not do what it does; empty if it may."""
        return self._permissions.refusal(use)

    def remember(self) -> None:
        """Keep in mind what can be used now: something may wait under its key,
        or under a previous key.
        """
        present = tuple(self._data.of_other_data())
        allowed = [use for use in present if not self.refusal(use)]
        previous = [
            use
            for use in self._under_previous_keys(present)
            if not self._permissions.key_refusal(use)
        ]
        self._before = (*allowed, *previous)

    def _under_previous_keys(self, present: Sequence[Use]) -> Iterator[Use]:
        known = (*present, *self._data.of_models())
        roles = {use.role for use in known if use.role.startswith("arn:")}
        for role in sorted(roles):
            if not is_assumed_role(self.access.api, role):
                of_role = [use for use in known if use.role == role]
                yield from previous_uses(of_role, self.access.policies.stored(role))

    def inspect(self, moment: Step) -> Iterator[DataReading]:
        """Yield whether what is used now, and what was written before the update, can be used."""
        present = tuple(self._data.of_other_data())
        known = {_without_key(use) for use in self._before}
        for use in present:
            if use.is_own or _without_key(use) in known:
                yield DataReading(moment, use, False, self.refusal(use))
        for use in self._lost(present):
            yield DataReading(moment, use, False, self.refusal(use))
        for use in self._waiting(present):
            yield DataReading(moment, use, True, self._permissions.key_refusal(use))

    def _lost(self, present: Sequence[Use]) -> Iterator[Use]:
        """What no policy allows any more to a role that exists, though the endpoint still uses the
        place.

        Policies alone say who else uses a place, and where an asynchronous endpoint reads requests.
        """
        places = {(use.endpoint, use.place) for use in present}
        queues = {
            (use.endpoint, use.role) for use in present if use.data == "asynchronous responses"
        }
        roles = {role.arn for role in self.access.api.backend("iam").roles.values()}

        for use in self._before:
            if use.role not in roles or use.has_previous_key:
                continue
            is_used = (use.endpoint, use.place) in places or (use.endpoint, use.role) in queues
            is_known = any(replace(use, key=other.key) == other for other in present)
            if is_used and not is_known and self._permissions.place_refusal(use):
                yield use

    def _waiting(self, present: Sequence[Use]) -> Iterator[Use]:
        """What was written before, with the roles that read it now."""
        for use in self._before:
            if use.data == ARCHIVES:
                readers = self._readers_of_archive(use)
            elif use.action == "writes" or not use.key or not use.endpoint:
                continue
            else:
                readers = self._readers(use, present)
            for role in readers:
                yield replace(use, role=role)

    def _readers_of_archive(self, use: Use) -> list[str]:
        """The roles that load an archive now."""
        return [
            other.role
            for other in self._data.of_models()
            if (other.place, other.endpoint) == (use.place, use.endpoint)
        ]

    def _readers(self, use: Use, present: Sequence[Use]) -> list[str]:
        """The roles that read now what a role has read; none without the endpoint."""
        if use.endpoint not in {other.endpoint for other in present}:
            return []
        if use.is_own:
            # The execution roles of the endpoint, which an update may have replaced.
            own = {
                other.role for other in present if other.is_own and other.endpoint == use.endpoint
            }
            return sorted(own)
        if self._permissions.place_refusal(use):
            return []  # it is no reader any more
        return [use.role]


def _without_key(use: Use) -> tuple[str, str, str, str]:
    return use.data, use.action, use.place, use.role
