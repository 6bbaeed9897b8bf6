"""What every operation on a stack needs: its stacks, its providers,
and what is called after each step.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote, urlparse

from constructs_triton_core.cloud_assembly.intrinsics import Evaluator
from constructs_triton_core.cloud_assembly.template import Template

from ..behaviour import Behaviour
from ..errors import StackError, TemplateError
from ..providers import Providers, is_custom
from ..services.service_api import ServiceApi
from ..steps import Step, When
from ..template_parsing import parse_template
from .names import Names
from .rules import refusals
from .stack import Stack, Stacks


@dataclass
class Engine:
    """Checks templates, and is called before and after the steps of an operation."""

    stacks: Stacks
    providers: Providers
    inspect: Callable[[Step], None] = lambda _: None
    """Called after each step; looks at what is running."""
    begin_cleanup: Callable[[], None] = lambda: None
    """Called when an update or its rollback is complete, before anything is deleted."""
    before_change: Callable[[str], None] = lambda _: None
    """Called with the place of a resource, ``STACK/ID``, before a service carries out a change."""
    after_change: Callable[[str], When | None] = lambda _: None
    """Called with that place afterwards; returns whether the change fails nevertheless."""

    @property
    def behaviour(self) -> Behaviour:
        return self.stacks.api.behaviour

    def check(self, stack: Stack, template: Template, given: Mapping[str, str]) -> dict[str, Any]:
        """Check what CloudFormation checks before it creates anything;
        returns the parameters' values.
        """
        for reason in refusals(template, stack.resources):
            raise TemplateError(reason)
        check_template(template)
        self._note_unexpanded(stack, template)
        parameters = self.stacks.read_parameters(template, given)
        _check_rules(template, Names(self.stacks, stack, parameters, {}).evaluator(template))
        for resource in template.resources.values():
            self.providers.of(resource.type)
        return parameters

    def _note_unexpanded(self, stack: Stack, template: Template) -> None:
        """Note the transforms and loops of which it is not known what they make."""
        for transform in template.unknown_transforms:
            self.stacks.api.note_not_simulated("Transform", stack.name, transform)
        for part in template.unknown_parts:
            self.stacks.api.note_not_simulated("part of a template", stack.name, part)


def _check_rules(template: Template, evaluator: Evaluator) -> None:
    """Raise ``TemplateError`` if parameters break a rule of the template for certain."""
    for name, rule in template.rules.items():
        if "RuleCondition" in rule and not evaluator.holds(rule["RuleCondition"]):
            continue
        for assertion in rule["Assertions"]:
            if evaluator.refutes(assertion["Assert"]):
                what = assertion.get("AssertDescription", "does not hold")
                raise TemplateError(f"Rule {name}: {what}")


@contextmanager
def failing(when: When | None) -> Iterator[None]:
    """Fail before or after the block, as a service does that carried nothing or everything out."""
    if when == "before":
        raise StackError("Internal Failure: nothing was changed")
    yield
    if when == "after":
        raise StackError("Internal Failure: the change did not stabilize")
    if when == "answers FAILED":
        raise StackError(
            "Received response status [FAILED] from custom resource. Message returned: None"
        )


_IGNORED_SECTIONS = {"AWSTemplateFormatVersion", "Description", "Metadata", "Transform"}
_SECTIONS = {
    "Parameters",
    "Rules",
    "Mappings",
    "Conditions",
    "Resources",
    "Outputs",
} | _IGNORED_SECTIONS
_RESOURCE_SETTINGS = {"Condition", "DependsOn", "DeletionPolicy", "UpdateReplacePolicy"}
#: How CloudFormation waits, or updates what is not simulated.
_IGNORED_KEYS = {"Type", "Properties", "Metadata", "CreationPolicy", "UpdatePolicy"}
_RESOURCE_KEYS = _IGNORED_KEYS | _RESOURCE_SETTINGS
_POLICIES = {"Delete", "Retain", "RetainExceptOnCreate", "Snapshot"}


def template_at(url: str, api: ServiceApi) -> Template:
    """Read the template at an address in S3, with the bucket in its path or in its host name."""
    parts = urlparse(url)
    path, (host, _, domain) = (
        unquote(parts.path).lstrip("/"),
        (parts.hostname or "").partition(".s3"),
    )
    bucket, _, key = (host, "", path) if domain else path.partition("/")
    return parse_template(
        api.call("s3", "GetObject", Bucket=bucket, Key=key)["Body"].read().decode()
    )


def check_template(template: Template) -> None:
    """Raise ``TemplateError`` for a section, a key of a resource, a policy or a reference that
    CloudFormation does not have.

    A transform may have sections and keys of its own, and add what others refer to.
    """
    if not template.unknown_transforms:
        _expect_known_keys(template)
    known = template.resources.keys() | template.parameters.keys()
    for name, resource in template.resources.items():
        for policy in (resource.deletion_policy, resource.update_replace_policy):
            if policy not in _POLICIES:
                raise TemplateError(f"Resources.{name}: unknown policy {policy!r}")
        is_declared = resource.condition is None or resource.condition in template.conditions
        if not is_declared and template.is_complete:
            raise TemplateError(f"Resources.{name}: condition {resource.condition} is not declared")
        unresolved = sorted(resource.references - known)
        if unresolved and template.is_complete:
            raise TemplateError(
                f"Template format error: Unresolved resource dependencies {unresolved} "
                f"in the Resources block of the template ({name})"
            )
    _ = template.order  # raises an error for a circular dependency


def _expect_known_keys(template: Template) -> None:
    _expect_known("template", template.body, _SECTIONS)
    for name, resource in template.resources.items():
        # Examples of AWS have a Version beside the Type of a custom resource.
        known = _RESOURCE_KEYS | ({"Version"} if is_custom(resource.type) else set())
        _expect_known(f"Resources.{name}", template.body["Resources"][name], known)


def _expect_known(where: str, given: Mapping[str, Any], known: set[str]) -> None:
    unknown = sorted(given.keys() - known)
    if unknown:
        raise TemplateError(
            f"{where}: {', '.join(unknown)} is not supported; supported are {sorted(known)}"
        )
