"""The exports of stacks, which CloudFormation protects while other stacks import them.

An update that removes or changes one is rolled back before its cleanup. A deletion is not begun,
and the stack keeps its status (aws-cdk issue 4777, serverless pull request 3935, stax issue 40).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from ..errors import FAILURES, StackError
from .names import Names
from .stack import Output, Stack, Stacks


def expect_kept(stacks: Stacks, stack: Stack, outputs: Iterable[Output]) -> None:
    """Raise ``StackError`` if the outputs lack, or change, an export that another stack imports."""
    after = {output.export_name: output.value for output in outputs}
    for output, users in _imported(stacks, stack):
        name = output.export_name
        if after.get(name) != output.value:
            change = "updated" if name in after else "deleted"
            raise StackError(f"Export {name} cannot be {change} as it is in use by {users}")


def expect_exportable(stacks: Stacks, stack: Stack, outputs: Iterable[Output]) -> None:
    """Raise ``StackError`` for an export that another output has, or that is empty.

    Sources: template reference, "Fn::ImportValue"; zeroae/zae-limiter issue 445 and amplify-cli
    issue 1581.
    """
    owners: dict[str | None, str] = {}
    for other in stacks.all:
        if other is not stack:
            owners.update((output.export_name, other.name) for output in other.outputs)

    for output in outputs:
        name = output.export_name
        if name is None:
            continue
        if name in owners:
            raise StackError(f"Export with name {name} is already exported by stack {owners[name]}")
        if not output.value.strip():
            reason = "Exported values must not be empty or whitespace-only."
            raise StackError(f"Cannot export output {output.key}. {reason}")
        owners[name] = stack.name


def expect_deletable(stacks: Stacks, stack: Stack) -> None:
    """Raise ``StackError`` if another stack imports an export of the stack."""
    for output, users in _imported(stacks, stack):
        name = output.export_name
        raise StackError(f"Delete canceled. Cannot delete export {name} as it is in use by {users}")


def _imported(stacks: Stacks, stack: Stack) -> Iterator[tuple[Output, str]]:
    """The exports of a stack that other stacks import, with these stacks."""
    exports = [output for output in stack.outputs if output.export_name is not None]
    if not exports:
        return

    imports = {}
    for other in stacks.all:
        if other is not stack and other.resources:
            imports[other.name] = _imports(stacks, other)
    for output in exports:
        users = [name for name, imported in imports.items() if output.export_name in imported]
        if users:
            yield output, " and ".join(users)


def _imports(stacks: Stacks, stack: Stack) -> set[str]:
    """The exports that the resources and outputs of a stack import."""
    template = stack.template
    evaluator = Names(stacks, stack, stack.parameters, stack.resources).evaluator(template)
    used = [
        template.resources[name].properties
        for name in stack.resources
        if name in template.resources
    ]
    found = set()
    for argument in _arguments([*used, *template.outputs.values()]):
        try:
            found.add(str(evaluator.evaluate(argument)))
        except FAILURES:  # in an output whose condition is false
            continue
    return found


def _arguments(value: Any) -> Iterator[Any]:
    """Yield the argument of each ``Fn::ImportValue`` in a value."""
    match value:
        case {"Fn::ImportValue": argument} if len(value) == 1:
            yield argument
        case dict():
            for member in value.values():
                yield from _arguments(member)
        case list():
            for element in value:
                yield from _arguments(element)
