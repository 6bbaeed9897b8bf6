"""What an update does to data, computed from the two versions alone; nothing is deployed.

So the answer does not depend on a step that is refused: lost data is known also then.

Sources: CloudFormation template reference, DeletionPolicy and UpdateReplacePolicy attributes; the
resource schemas (``createOnlyProperties``, ``conditionalCreateOnlyProperties``); the CDK's handlers
of custom resources in aws-cdk-lib.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from constructs_triton_core.cloud_assembly.synthesized_stack import SynthesizedStack
from constructs_triton_core.cloud_assembly.template import Resource

from ..providers import is_custom
from ..services.resource_schemas import resource_schema
from .custom_resource_ids import deleted_destination, deleted_subject, id_change
from .data_change import DataChange, DataChanges, Fate, Kind
from .data_policies import deletion_policy, fate, lost_protection, policy
from .data_types import (
    emptying_type,
    holds_data,
    is_emptied,
    is_emptied_by_removal,
    shorter_retention,
)
from .known_properties import known_properties
from .replacements import Replacements, keeps_its_name, replacements
from .versions import Version

__all__ = ["data_changes"]


def data_changes(old: Version, new: Version) -> DataChanges:
    """Compare two versions.

    A stack that the new version does not have is deleted.

    Args:
        old: The deployed version.
        new: The version to deploy.
    """
    before = {stack.name: stack for stack in _with_nested(old)}
    after = {stack.name: stack for stack in _with_nested(new)}
    created: set[str] = set()
    for name, stack in after.items():
        created.update(_new_types(stack, before.get(name)))

    seen: list[DataChange] = []
    others: list[tuple[str, str, tuple[str, ...]]] = []
    for name, stack in before.items():
        pair = _Pair(stack, after.get(name), before)
        for change in pair.changes():
            has_successor = change.has_successor or change.type in created
            # What the template retains needs no word, unless an empty resource takes its place.
            if change.fate != "kept" or has_successor:
                seen.append(replace(change, has_successor=has_successor))
        for logical_id, causes in pair.may_be_replaced():
            others.append((name, logical_id, causes))
    return DataChanges(tuple(seen), tuple(others))


def _with_nested(version: Version) -> Iterator[SynthesizedStack]:
    """Yield each stack of a version, with its nested stacks."""
    for stack in version.stacks:
        yield from stack.synthesized()


def _new_types(stack: SynthesizedStack, former: SynthesizedStack | None) -> Iterator[str]:
    """The types of the resources that an update creates, without those of replacements."""
    known = {} if former is None else former.existing()
    for name, resource in stack.existing().items():
        # A new key does not take the place of another one: what that has encrypted stays as it is.
        if name not in known and resource.type != "AWS::KMS::Key":
            yield resource.type


@dataclass(frozen=True)
class _Pair:
    """One stack before and after the update; ``siblings`` are all stacks before it."""

    old: SynthesizedStack
    new: SynthesizedStack | None
    siblings: Mapping[str, SynthesizedStack]

    def changes(self) -> Iterator[DataChange]:
        """Yield what the update does to the data of each resource of the old stack."""
        for name, resource in self.old.existing().items():
            if name not in self._after:
                yield from self._removed(resource)
                yield from self._deployment(resource, None)
                yield from self._moved(resource)
            elif self._after[name].type == resource.type:
                yield from self._changed(resource, self._after[name])

    def may_be_replaced(self) -> Iterator[tuple[str, tuple[str, ...]]]:
        """The resources without data that CloudFormation may replace, by their schema alone."""
        for name in self._replacements.possible:
            if not self._holds_data(name):
                schema = resource_schema(self._before[name].type)
                causes = schema.possibly_replacing_changes(self._old(name), self._new(name))
                if causes:
                    yield name, tuple(sorted(causes))

    @cached_property
    def _before(self) -> Mapping[str, Resource]:
        return self.old.existing()

    @cached_property
    def _after(self) -> Mapping[str, Resource]:
        return {} if self.new is None else self.new.existing()

    def _removed(self, resource: Resource) -> Iterator[DataChange]:
        """Yield the change of a resource that the new stack does not have."""
        if not self._holds_data(resource.logical_id):
            return
        kind: Kind = "removed"
        applied = policy(self.old, resource, "DeletionPolicy")
        if self.new is None:
            applied = deletion_policy(self.old, resource, self.siblings)
        elif not self.new.template.is_complete:
            kind = "may be removed"
        found = fate(self.old, resource, applied)
        yield self._change(resource, kind, found, has_successor=False)

    def _changed(self, old: Resource, new: Resource) -> Iterator[DataChange]:
        """Yield the changes of a resource that both stacks have."""
        if is_custom(old.type):
            yield from self._new_id(old)
            yield from self._deployment(old, self._new(old.logical_id))
            return
        if not self._holds_data(old.logical_id):
            return

        replacement = self._replacement(old, new)
        if replacement is not None:
            yield replacement
        if old.logical_id not in self._replacements.certain:
            yield from self._lost_in_place(old, new)

    def _replacement(self, old: Resource, new: Resource) -> DataChange | None:
        """What becomes of a resource that CloudFormation replaces, or may replace."""
        assert self.new is not None
        name = old.logical_id
        # CloudFormation refuses the replacement, which is reported elsewhere.
        if keeps_its_name(old.type, self._old(name), self._new(name)):
            return None

        found = fate(self.old, old, policy(self.new, new, "UpdateReplacePolicy"))
        if name in self._replacements.certain:
            return self._change(old, "replaced", found, self._replacements.certain[name])
        if name in self._replacements.possible:
            return self._change(old, "may be replaced", found, self._replacements.possible[name])
        return None

    def _lost_in_place(self, old: Resource, new: Resource) -> Iterator[DataChange]:
        """What happens to the data of a resource that stays."""
        assert self.new is not None
        name = old.logical_id
        if self._is_emptied(old):
            yield self._change(old, "emptied")
        shorter = shorter_retention(old.type, self._old(name), self._new(name))
        if shorter:
            yield self._change(old, "expires", causes=(shorter,))
        lifted = lost_protection((self.old, old), (self.new, new))
        if lifted:
            yield self._change(old, "unprotected", causes=lifted)

    def _moved(self, old: Resource) -> Iterator[DataChange]:
        """A custom resource whose function deletes what another one has created before."""
        for name, resource in self._after.items():
            if name in self._before or resource.type != old.type:
                continue
            deletes = deleted_subject(old.type, self._old(old.logical_id), self._new(name))
            if deletes:
                yield self._change(old, "moved", causes=(name, deletes))

    def _new_id(self, old: Resource) -> Iterator[DataChange]:
        name = old.logical_id
        found = id_change(old.type, name, self._old(name), self._new(name))
        if found is not None:
            yield self._change(old, "new id", causes=(found.before, found.after, found.deletes))

    def _deployment(
        self, resource: Resource, new: Mapping[str, Any] | None
    ) -> Iterator[DataChange]:
        """A change of what the CDK deploys to a bucket, which deletes objects of a bucket that
        stays.
        """
        found = deleted_destination(resource.type, self._old(resource.logical_id), new)
        if found is None:
            return
        bucket, prefix = found
        buckets = {}
        for logical_id, declared in self._before.items():
            if declared.type == "AWS::S3::Bucket":
                buckets[self.old.name_of(logical_id)] = logical_id
        if self.new is not None and buckets.get(str(bucket), "") in {"", *self._after}:
            yield self._change(resource, "may be emptied", causes=(f"{bucket}/{prefix}",))

    def _is_emptied(self, resource: Resource) -> bool:
        """Whether the update empties a resource that stays, by removing what empties it."""
        if self.new is None or not emptying_type(resource.type):
            return False
        if not self._empties(self.old, self._before, resource):
            return False

        name = resource.logical_id
        is_removed = not self._empties(self.new, self._after, self._after[name])
        return is_removed and is_emptied_by_removal(resource.type, self._old(name), self._new(name))

    def _empties(
        self, stack: SynthesizedStack, resources: Mapping[str, Resource], resource: Resource
    ) -> bool:
        """Whether a version has a custom resource that empties the resource at its deletion."""
        others = ((other.type, known_properties(stack, name)) for name, other in resources.items())
        return is_emptied(resource.type, resource.logical_id, {}, others, stack.name_of)

    def _change(
        self,
        resource: Resource,
        kind: Kind,
        fate: Fate = "lost",
        causes: tuple[str, ...] = (),
        *,
        has_successor: bool = True,
    ) -> DataChange:
        place = self.old.name, resource.logical_id, resource.type
        return DataChange(*place, kind, fate, causes, has_successor)

    def _holds_data(self, name: str) -> bool:
        resource = self._before[name]
        return holds_data(resource.type, self._old(name))

    def _old(self, name: str) -> Mapping[str, Any]:
        return known_properties(self.old, name)

    def _new(self, name: str) -> Mapping[str, Any]:
        return {} if self.new is None else known_properties(self.new, name)

    @cached_property
    def _replacements(self) -> Replacements:
        return replacements(self.old, self.new)
