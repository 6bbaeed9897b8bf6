"""Values of resources that are not simulated: recognizable, of a plausible form,
and without a meaning.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

_MARK = "not-simulated"
_WITHOUT_REGION = ("cloudfront", "iam", "route53", "s3")
_WITHOUT_ACCOUNT = ("s3",)
_OF_ARN = re.compile(r"Arn[0-9A-F]{8}$")
"""The end of the name that the CDK gives to an export of an ARN."""


def is_opaque(value: Any) -> bool:
    """Return whether a string contains the value of a resource that is not simulated."""
    return isinstance(value, str) and _MARK in value


def opaque_value(type: str, name: str, resource: str, account: str, region: str) -> str:
    """Return the value of an attribute: an ARN if its name says so, otherwise a string.

    ``resource`` is the physical ID or logical ID, which makes the value unique.
    """
    label = f"{_MARK}-{resource.rpartition('/')[2]}"
    if not name.endswith(("Arn", "ARN")) and not _OF_ARN.search(resource):
        return label if name in ("", "Id") else f"{label}-{name}"
    service = type.split("::")[1].lower() if type.startswith("AWS::") else "cloudformation"
    where = "" if service in _WITHOUT_REGION else region
    owner = "" if service in _WITHOUT_ACCOUNT else account
    return f"arn:aws:{service}:{where}:{owner}:{label}"


@dataclass(frozen=True)
class OpaqueAttributes(Mapping[str, Any]):
    """The attributes of a resource that is not simulated.

    ``names`` are those that the type has; ``None`` if any name may be one, as with custom
    resources.
    """

    type: str
    resource: str
    account: str
    region: str
    names: frozenset[str] | None = None
    known: Mapping[str, Any] = field(default_factory=dict)
    """Values that are known, since the template has them."""

    def __getitem__(self, name: str) -> Any:
        if name in self.known:
            return self.known[name]
        if self.names is not None and name not in self.names:
            raise KeyError(name)
        return opaque_value(self.type, name, self.resource, self.account, self.region)

    def __iter__(self) -> Iterator[str]:
        return iter(sorted(self.known.keys() | (self.names or frozenset())))

    def __len__(self) -> int:
        return len(list(iter(self)))
