"""Members of AWS's answers as keyword arguments: a property of a construct has the name of the member."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from constructs_triton_tools.operations.adopting.python_text import Call, Expression, call, literal

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
#: What the name of a property leaves out.
_ENDING = re.compile(r"(?:Required)?(?:In(?:Seconds|GB|Mb))?$")
Answer = Mapping[str, Any]
Options = dict[str, Expression]


def words_of(name: str) -> list[str]:
    """Return the words of a name in lower case: ``hf`` and ``token`` for ``HF_TOKEN``."""
    return [word.lower() for word in _WORD.findall(name)]


def code_of(member: str) -> str:
    """Return the code of a problem with a member: ``container-hostname`` for ``ContainerHostname``."""
    return "-".join(words_of(member))


def options_of(answer: Answer, *members: str, with_zero: bool = False) -> Options:
    """Return the keyword arguments for the members that are set, or ``with_zero`` also 0 and ``False``."""
    given = {each: answer.get(each) for each in members}
    return {
        "_".join(words_of(_ENDING.sub("", member))): _value(member, value)
        for member, value in given.items()
        if value or (with_zero and value is not None)
    }


def _value(member: str, value: Any) -> Expression:
    if member.endswith(("InSeconds", "Cooldown")):
        return duration(value)
    if member.endswith("InGB"):
        return call("cdk.Size.gibibytes", literal(value))
    if member.endswith("InMb"):
        return call("cdk.Size.mebibytes", literal(value))
    if isinstance(value, Mapping):  # a part of a fleet
        function = "percent" if value["Type"] == "CAPACITY_PERCENT" else "instances"
        return call(f"CapacitySize.{function}", literal(value["Value"]))
    return literal(value)


def duration(seconds: float) -> Call:
    """Return the code of a duration, in minutes where that is exact."""
    if seconds % 60 == 0 and seconds > 0:
        return call("cdk.Duration.minutes", str(int(seconds // 60)))
    return call("cdk.Duration.seconds", str(int(seconds)))
