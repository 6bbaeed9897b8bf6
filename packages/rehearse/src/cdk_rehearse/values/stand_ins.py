"""Stand-ins of values that a rehearsal does not know.

A stand-in has the form of AWS, so that services accept it. It is the same in each run, and another
one for a resource that replaces the one before. Messages name where it comes from instead of it.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from string import ascii_lowercase
from typing import Any

from constructs_triton_core.cloud_assembly.unknown_values import (
    Unknown,
    UnknownList,
    is_unknown,
)

_FACTS: Mapping[str, Any] = json.loads(Path(__file__).with_name("forms.json").read_text())
_FORMS: Mapping[str, str] = _FACTS["forms"]
_KNOWN_FORM = re.compile(r"\{(?:account|region|name)\}")
_MARK = "not-simulated"
_MARKED = re.compile(rf"{_MARK}-([A-Za-z0-9-]{{1,256}}?)-[0-9a-f]{{6}}(?![0-9a-f])")
_MOST_OF_A_NAME = 30  # of 64 characters that names of roles may have
_OF_ARN = re.compile(r"Arn[0-9A-F]{8}$")
"""The end of the name that the CDK gives to an export of an ARN."""


def is_opaque(value: Any) -> bool:
    """Return whether a value is unknown, also if a service has stored its stand-in as a string."""
    return is_unknown(value) or (isinstance(value, str) and _MARK in value)


@dataclass(frozen=True)
class Origin:
    """Where an unknown value comes from.

    Args:
        type: Resource type; empty for an export.
        source: What messages have in place of the value, such as ``Queue``.
        label: A name that no other resource has, which stand-ins contain.
        given_name: The name in the template, if it has one.
    """

    type: str
    source: str
    label: str
    given_name: str = ""


@dataclass
class StandIns:
    """The stand-ins of one simulated account."""

    account: str
    region: str
    _sources: dict[str, str] = field(default_factory=dict)
    _resources: Counter[tuple[str, str]] = field(default_factory=Counter)
    _stored: set[str] = field(default_factory=set)
    """The unknown strings that services may store, where they are ordinary ones."""

    def origin(self, type: str, stack: str, logical_id: str, given_name: str = "") -> Origin:
        """Return the origin of the values of a resource that is created now."""
        label = f"{logical_id[:_MOST_OF_A_NAME]}-{self.token(stack, logical_id, 6)}"
        return Origin(type, logical_id, f"{_MARK}-{label}", given_name)

    def other_origin(self, type: str, logical_id: str, identity: str) -> Origin:
        """Return the origin of the values that a provider lacks of a resource that exists."""
        label = f"{_MARK}-{logical_id[:_MOST_OF_A_NAME]}-{_digest(type, identity)[:6]}"
        return Origin(type, logical_id, label)

    def token(self, stack: str, logical_id: str, length: int) -> str:
        """Return hexadecimal digits, other ones at each call but the same in each run."""
        self._resources[stack, logical_id] += 1
        return _digest(stack, logical_id, str(self._resources[stack, logical_id]))[:length]

    def is_part_of(self, value: str, stack: str, logical_id: str) -> bool:
        """Return whether a value belongs to a resource, or to one that it has replaced."""
        name = logical_id[:_MOST_OF_A_NAME]
        for number in range(1, self._resources[stack, logical_id] + 1):
            digest = _digest(stack, logical_id, str(number))[:6]
            if f"{_MARK}-{name}-{digest}" in value:
                return True
        return False

    def attribute(self, origin: Origin, name: str, kind: str = "", like: str = "") -> Any:
        """Return the value of an attribute.

        Args:
            origin: The resource.
            name: Name of the attribute.
            kind: The type in the resource's schema, such as ``array``.
            like: The format in the schema: the attribute of another type, such as
                ``AWS::EC2::SecurityGroup.Id``.
        """
        text = self._text(origin, name, like)
        if not isinstance(text, Unknown):
            return text
        self._sources[text] = f"{origin.source}.{name}" if name else origin.source
        return UnknownList(text, [text]) if kind == "array" else text

    def reference(self, origin: Origin, identifier: str) -> str:
        """Return what ``Ref`` returns: the attribute that identifies the resource."""
        text: str = self.attribute(origin, identifier)
        if isinstance(text, Unknown):
            self._sources[text] = origin.source
        return text

    def other(self, type: str, name: str) -> Unknown:
        """Return the value of what no stack of this account creates, such as an export."""
        tail = re.sub(r"[^A-Za-z0-9]+", "-", name)[-_MOST_OF_A_NAME:].strip("-")
        label = f"{_MARK}-{tail}-{_digest(type, name)[:6]}"
        attribute = "Arn" if _OF_ARN.search(name) else ""
        return Unknown(self.attribute(Origin(type, name, label), attribute))

    def remember(self, value: Any) -> None:
        """Keep the unknown strings in the properties of a resource."""
        if isinstance(value, Unknown):
            self._stored.add(str(value))
        elif isinstance(value, Mapping):
            for member in value.values():
                self.remember(member)
        elif isinstance(value, list):
            for element in value:
                self.remember(element)

    def is_stand_in(self, text: str) -> bool:
        """Return whether a string that a service has stored has the place of an unknown one."""
        return _MARK in text or text in self._stored or text in self._sources

    def shown(self, text: str) -> str:
        """Return a text in which each stand-in is replaced by where its value comes from."""
        if _MARK not in text and not any(stand_in in text for stand_in in self._sources):
            return text
        for stand_in in sorted(self._sources, key=len, reverse=True):
            text = text.replace(stand_in, f"${{{self._sources[stand_in]}}}")
        return _MARKED.sub(lambda match: f"${{{match[1]}}}", text)

    def _text(self, origin: Origin, name: str, like: str) -> str:
        """Return the stand-in for a value of a resource, in the form that AWS uses."""
        form = _FORMS.get(f"{origin.type}.{name}") or _FORMS.get(like) or self._form(origin, name)
        values = dict(_values(origin.label))
        values |= {"account": self.account, "region": self.region, "label": origin.label}
        text = form.format(**values, name=origin.given_name or origin.label)

        # The value is known if its form has no other part than a name that the template gives. The
        # name itself may be unknown, as that of another resource.
        is_named = bool(origin.given_name) and not is_opaque(origin.given_name)
        has_only_known_parts = "{" not in re.sub(_KNOWN_FORM, "", form)
        if is_named and has_only_known_parts and "{name}" in form:
            return text
        return Unknown(text)

    def _form(self, origin: Origin, name: str) -> str:
        """Return the form of an attribute that no table has: its name says what it is."""
        if name.endswith(("Arn", "ARN")):
            return _arn_form(origin.type)
        if name.endswith(("Url", "URL")):
            return "https://{label}.amazonaws.com/"
        return "{label}" if name in ("", "Id") else f"{{label}}-{name}"


def _arn_form(type: str) -> str:
    """Return the form of the ARNs of a resource type."""
    family = type.split("::")[1] if type.startswith("AWS::") else "CloudFormation"
    service = _FACTS["services"].get(family, family.lower())
    region = "" if service in _FACTS["without Region"] else "{region}"
    account = "" if service in _FACTS["without account"] else "{account}"
    return f"arn:aws:{service}:{region}:{account}:{{label}}"


def _values(seed: str) -> Iterator[tuple[str, str]]:
    """Yield what stands for the parts of a form that a service makes up."""
    digits = _digest(seed)
    letters = "".join(ascii_lowercase[int(digit, 16)] for digit in digits)
    parts = (digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:32])
    yield "digits", digits[:17]
    yield "word", letters[:10]
    yield "capitals", letters[:20].upper()
    yield "suffix", letters[:6]
    yield "uuid", "-".join(parts)
    yield "date", "2020-01-01T00:00:00.000"


def _digest(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()
