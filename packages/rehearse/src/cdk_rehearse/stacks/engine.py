"""What every operation on a stack needs: its stacks, its providers, and what is called after each step."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from constructs_triton_core.cloud_assembly.template import Template

from ..behaviour import Behaviour
from ..errors import StackError, TemplateError
from ..providers import Providers
from ..steps import Step, When
from .stack import Stack, Stacks
from .template_text import check_template


@dataclass
class Engine:
    """Checks templates, and is called before and after the steps of an operation."""

    stacks: Stacks
    providers: Providers
    inspect: Callable[[Step], None] = lambda _: None
    """Called after each step; looks at what is running."""
    begin_cleanup: Callable[[], None] = lambda: None
    """Called when an update or its rollback is complete, before anything is deleted."""

    @property
    def behaviour(self) -> Behaviour:
        return self.stacks.api.behaviour

    def check(self, stack: Stack, template: Template, given: Mapping[str, str]) -> dict[str, Any]:
        """Check what CloudFormation checks before it creates anything; returns the parameters' values."""
        check_template(template)
        parameters = self.stacks.read_parameters(template, given)
        evaluator = self.stacks.evaluator(stack, template, parameters, {})
        for name, rule in template.rules.items():
            if "RuleCondition" in rule and not evaluator.holds(rule["RuleCondition"]):
                continue
            for assertion in rule["Assertions"]:
                if not evaluator.holds(assertion["Assert"]):
                    raise TemplateError(f"Rule {name}: {assertion.get('AssertDescription', 'does not hold')}")
        for resource in template.resources.values():
            self.providers.of(resource.type)
        return parameters


@contextmanager
def failing(when: When | None) -> Iterator[None]:
    """Fail before or after the block, as a service does that carried nothing or everything out."""
    if when == "before":
        raise StackError("Internal Failure: nothing was changed")
    yield
    if when == "after":
        raise StackError("Internal Failure: the change did not stabilize")
