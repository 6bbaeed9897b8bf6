"""The apps in ``examples/``, each synthesized once in this process,
with CDK's validation as errors.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import aws_cdk as cdk
from programs import PROJECT, RulePacks, synthesize_app

from constructs_triton.testing import stable_template

EXAMPLES = PROJECT / "examples"
CAPABILITIES = sorted(path.parent.name for path in EXAMPLES.glob("*/app.py"))
SECURE = ("inference_components", "kms", "vpc_isolation")

Template = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Example:
    """A synthesized example: its templates by stack, its construct tree, and the validation report.

    ``stable_templates`` have names in place of digests.
    """

    name: str
    templates: Mapping[str, Template]
    stable_templates: Mapping[str, Template]
    app: cdk.App
    validation: Mapping[str, Any]

    @property
    def template(self) -> Template:
        """The template of its only stack."""
        (template,) = self.templates.values()
        return template


@cache
def example(name: str) -> Example:
    """Synthesize an example to a temporary folder; cdk-nag checks the secure ones."""
    with TemporaryDirectory() as directory:
        app = run_app(name, Path(directory), rule_packs() if name in SECURE else ())
        stacks = app.synth().stacks_recursively  # the example has synthesized them already
        templates = {stack.display_name: stack.template for stack in stacks}
        stable = {
            stack.display_name: stable_template(Path(stack.assembly.directory, stack.template_file))
            for stack in stacks
        }
        return Example(name, templates, stable, app, read_validation(Path(directory)))


def whole_templates(found: Example) -> list[Template]:
    """Return the templates; stacks that import values of others become one
    template without imports.
    """
    templates = list(found.templates.values())
    if "Fn::ImportValue" not in json.dumps(templates):
        return templates
    outputs = [output for each in templates for output in each.get("Outputs", {}).values()]
    exports = {
        output["Export"]["Name"]: output["Value"] for output in outputs if "Export" in output
    }
    merged: Template = {}
    for template in templates:
        for section in ("Resources", "Mappings", "Parameters"):
            merged.setdefault(section, {}).update(template.get(section, {}))
    result: Template = _without_imports(merged, exports)
    return [result]


def _without_imports(value: Any, exports: Mapping[str, Any]) -> Any:
    match value:
        case {"Fn::ImportValue": name}:
            return exports[name]
        case dict():
            return {key: _without_imports(each, exports) for key, each in value.items()}
        case list():
            return [_without_imports(each, exports) for each in value]
    return value


def run_app(
    name: str, directory: Path, rule_packs: RulePacks = (), *, is_validated: bool = True
) -> cdk.App:
    """Synthesize an example to ``directory``; a finding of a rule pack is an error."""
    app = EXAMPLES / name / "app.py"
    return synthesize_app(app, directory, is_validated=is_validated, rule_packs=rule_packs)


def rule_packs() -> RulePacks:
    """The rule packs that the secure examples pass."""
    # loads its rules into the CDK's process, and only some processes of a test run need them
    import cdk_nag

    return (cdk_nag.AwsSolutionsChecks, cdk_nag.HIPAASecurityChecks, cdk_nag.NIST80053R5Checks)


def read_validation(directory: Path) -> dict[str, Any]:
    """Read the CDK's validation report from ``directory``."""
    report: dict[str, Any] = json.loads((directory / "validation-report.json").read_text())
    return report
