"""Rehearses an update in a test, and asserts that it finds no error."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from aws_cdk import Stack, Stage
from aws_cdk.assertions import Template
from constructs import IConstruct

from constructs_triton.testing.argument_types import (
    check_by_name,
    check_numbers_by_name,
    listed_names,
)
from constructs_triton.testing.optional_packages import optional_package
from constructs_triton.testing.synthesized_stack import stack_of, synthesized
from constructs_triton_core.errors import InvalidValueError

if TYPE_CHECKING:
    from cdk_rehearse.updates.report import Rehearsal
    from cdk_rehearse.updates.versions import Version

Source = IConstruct | Path | str | None


def rehearse(
    old: Source,
    new: Source,
    *,
    fleets: Mapping[str, int] | None = None,
    failures: Literal["each", "none"] = "each",
    orders: Literal[1, 2] = 2,
    parameters: Mapping[str, str] | None = None,
    meanwhile: Iterable[str] = (),
    acknowledge: Iterable[str] = (),
) -> Rehearsal:
    """Rehearse an update of a stack or an app in a simulated account.

    Args:
        old: The deployed version: a stack or an app, which is synthesized, a construct, which
            stands for its stack, the folder of a cloud assembly, or the path of a template;
            ``None`` before the first deployment. A nested stack stands for the stack that it is in.
            Of a template alone, neither functions nor models are known.
        new: The version to deploy; ``None`` for a deletion.
        fleets: Instances of endpoints before the update, by name or logical ID. Default: the
            highest number of an endpoint with scaling, the initial number of others.
        failures: ``"each"`` also lets every step fail once, ``"none"`` does not.
        orders: Number of orders of independent resources to try.
        parameters: Values of the templates' parameters, in both versions. Default: those of the
            templates.
        meanwhile: What happens in AWS after ``old`` and before ``new``, each as ``KIND=SUBJECT``,
            for example ``"key-disabled=Key"``. ``constructs-triton rehearse --help`` lists the
            kinds.
        acknowledge: Problems that do not count, each as ``CODE`` or ``CODE@PLACE`` with the
            construct path, logical ID, stack or endpoint that the problem has. Default: none.

    Raises:
        TemplateError: a version cannot be read, or ``old`` cannot be deployed.
        InvalidValueError: a stack is in no app, a code does not exist, an argument has the wrong
            type, or a parameter has no value.
        MissingDependencyError: the extra ``rehearse`` is not installed.
    """
    check_numbers_by_name("fleets", fleets, "digits")
    check_by_name("parameters", parameters, "Stage", "prod")
    found: Rehearsal = optional_package("cdk_rehearse", "rehearse").rehearse(
        _version(old),
        _version(new),
        fleets=fleets,
        failures=failures,
        orders=orders,
        parameters=parameters,
        meanwhile=listed_names("meanwhile", meanwhile, "key-disabled=Key"),
        acknowledge=listed_names("acknowledge", acknowledge, "rehearse-leftover"),
    )
    return found


def assert_update_keeps_serving(
    old: Source,
    new: Source,
    *,
    fleets: Mapping[str, int] | None = None,
    failures: Literal["each", "none"] = "each",
    orders: Literal[1, 2] = 2,
    parameters: Mapping[str, str] | None = None,
    meanwhile: Iterable[str] = (),
    acknowledge: Iterable[str] = (),
) -> None:
    """Check that a rehearsal of an update finds no error.

    The arguments are those of :meth:`rehearse`.

    Args:
        old: The deployed version.
        new: The version to deploy.
        fleets: Instances of endpoints before the update, by name or logical ID.
        failures: ``"each"`` also lets every step fail once, ``"none"`` does not.
        orders: Number of orders of independent resources to try.
        parameters: Values of the templates' parameters, in both versions. Default: those of the
            templates.
        meanwhile: What happens in AWS after ``old`` and before ``new``, each as ``KIND=SUBJECT``,
            for example ``"key-disabled=Key"``. ``constructs-triton rehearse --help`` lists the
            kinds.
        acknowledge: Problems that do not count, each as ``CODE`` or ``CODE@PLACE`` with the
            construct path, logical ID, stack or endpoint that the problem has. Default: none.

    Raises:
        AssertionError: the rehearsal found errors. The message has each with its fix.
        TemplateError: a version cannot be read, or ``old`` cannot be deployed.
        InvalidValueError: a stack is in no app, a code does not exist, an argument has the wrong
            type, or a parameter has no value.
        MissingDependencyError: the extra ``rehearse`` is not installed.
    """
    __tracebackhide__ = True  # pytest shows the line of the test
    rehearsal = rehearse(
        old,
        new,
        fleets=fleets,
        failures=failures,
        orders=orders,
        parameters=parameters,
        meanwhile=meanwhile,
        acknowledge=acknowledge,
    )
    errors = rehearsal.errors
    if errors:
        count = "1 error" if len(errors) == 1 else f"{len(errors)} errors"
        lines = "\n".join(
            f"  {error.code}: {error.path}: {error.message}; {error.hint}" for error in errors
        )
        raise AssertionError(f"the rehearsal of the update found {count}\n{lines}")


def _version(source: Source) -> Path | str | Version | None:
    """Return what the rehearsal reads: a path, or the version that a construct synthesizes."""
    if source is None or isinstance(source, Path | str):
        return source
    if isinstance(source, Template):
        raise InvalidValueError(
            "rehearse: a Template has neither the functions nor the models of its stack; pass the "
            "stack in place of its Template"
        )

    if not isinstance(source, Stage):
        source = _outermost(stack_of(source))
    directory = synthesized(source)
    versions = optional_package("cdk_rehearse.updates.versions", "rehearse")
    version: Version = versions.read_version(directory)
    return version.only([source.artifact_id]) if isinstance(source, Stack) else version


def _outermost(stack: Stack) -> Stack:
    """Return the stack that is deployed: of a nested stack, the one that it is nested in."""
    while stack.nested_stack_parent is not None:
        stack = stack.nested_stack_parent
    return stack
