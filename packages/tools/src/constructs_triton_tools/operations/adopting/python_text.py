"""Python expressions as text, as formatters leave them,
and members of AWS's answers as keyword arguments.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from constructs_triton_core.spelling import words_of

_WIDTH = 88
_INDENT = "    "
#: What the name of a property leaves out.
_ENDING = re.compile(r"(?:Required)?(?:In(?:Seconds|GB|Mb))?$")
Answer = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Call:
    """A call of a function. A string among the arguments is Python code."""

    function: str
    positional: Sequence[Expression] = ()
    keywords: Mapping[str, Expression] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Items:
    """A list, or a dictionary if ``members`` is a mapping of code to code."""

    members: Sequence[Expression] | Mapping[str, Expression]


#: Python code on one line, or an expression that may need several.
Expression = str | Call | Items
Options = dict[str, Expression]


def call(function: str, /, *positional: Expression, **keywords: Expression) -> Call:
    """Return a call of a function."""
    return Call(function, positional, keywords)


def called(expression: Expression) -> Iterator[str]:
    """Yield the name of each function that an expression calls."""
    if isinstance(expression, str):
        return
    if isinstance(expression, Call):
        yield expression.function
    for _, part in _parts(expression)[1]:
        yield from called(part)


def literal(value: Any) -> Expression:
    """Return the code of a value as AWS's answers contain it."""
    if isinstance(value, str):
        return quoted(value)
    if isinstance(value, Mapping):
        return Items({quoted(str(key)): literal(member) for key, member in value.items()})
    if isinstance(value, list | tuple):
        return Items([literal(item) for item in value])
    if isinstance(value, float) and value == int(value):
        return str(int(value))
    return repr(value)


def render(expression: Expression, indent: str, *, used: int = 0) -> str:
    """Return the text of an expression: one line if it fits, else one argument a line.

    Args:
        expression: What is written.
        indent: Indentation of the line on which it begins.
        used: Characters of that line before the expression and after it.
    """
    line = _line(expression)
    if isinstance(expression, str) or len(indent) + used + len(line) <= _WIDTH:
        return line
    opening, parts, closing = _parts(expression)
    if not parts:
        return line
    inner = indent + _INDENT
    arguments = ", ".join(name + _line(value) for name, value in parts)
    if (
        isinstance(expression, Call)
        and not expression.keywords
        and len(inner + arguments) <= _WIDTH
    ):
        return f"{opening}\n{inner}{arguments}\n{indent}{closing}"
    lines = [f"{inner}{name}{render(each, inner, used=len(name) + 1)}," for name, each in parts]
    return "\n".join([opening, *lines, indent + closing])


def assignment(name: str, expression: Expression, indent: str = "") -> str:
    """Return a statement that gives an expression a name; without a name, the expression alone."""
    prefix = f"{name} = " if name else ""
    return f"{indent}{prefix}{render(expression, indent, used=len(prefix))}"


def _line(expression: Expression) -> str:
    if isinstance(expression, str):
        return expression
    opening, parts, closing = _parts(expression)
    return f"{opening}{', '.join(name + _line(value) for name, value in parts)}{closing}"


def _parts(expression: Call | Items) -> tuple[str, list[tuple[str, Expression]], str]:
    """Return how an expression begins, its members with what precedes each, and how it ends."""
    if isinstance(expression, Call):
        arguments = [("", value) for value in expression.positional]
        arguments += [(f"{name}=", value) for name, value in expression.keywords.items()]
        return f"{expression.function}(", arguments, ")"
    if isinstance(expression.members, Mapping):
        entries = [(f"{key}: ", member) for key, member in expression.members.items()]
        return "{", entries, "}"
    return "[", [("", member) for member in expression.members], "]"


def quoted(text: str) -> str:
    """Return the code of a string, with the quotes that formatters prefer."""
    code = repr(text)
    body = code[1:-1]
    if code[0] == '"' or text.count('"') > text.count("'"):
        return code
    return '"' + body.replace("\\'", "'").replace('"', '\\"') + '"'


def free_name(wanted: str, used: Container[str], *, separator: str = "") -> str:
    """Return a name that is not used, with a number from 2 at its end if it needs one."""
    chosen = wanted
    number = 2
    while chosen in used:
        chosen = f"{wanted}{separator}{number}"
        number += 1
    return chosen


def code_of(member: str) -> str:
    """Return the code of a problem with a member:
    ``container-hostname`` for ``ContainerHostname``.
    """
    return "-".join(words_of(member))


def options_of(answer: Answer, *members: str, with_zero: bool = False) -> Options:
    """Return the keyword arguments for the members that are set,
    or ``with_zero`` also 0 and ``False``.
    """
    options: Options = {}
    for member in members:
        value = answer.get(member)
        is_given = value is not None if with_zero else bool(value)
        if is_given:
            keyword = "_".join(words_of(_ENDING.sub("", member)))
            options[keyword] = _value(member, value)
    return options


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
