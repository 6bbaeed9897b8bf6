"""The apps in ``examples/``, each synthesized once in this process, with CDK's validation as errors."""

from __future__ import annotations

import json
import runpy
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import aws_cdk as cdk
import cdk_nag

PROJECT = Path(__file__).resolve().parents[1]
EXAMPLES = PROJECT / "examples"
CAPABILITIES = sorted(path.parent.name for path in EXAMPLES.glob("*/app.py"))
SECURE = ("kms", "vpc_isolation")
_RULE_PACKS = (cdk_nag.AwsSolutionsChecks, cdk_nag.HIPAASecurityChecks, cdk_nag.NIST80053R5Checks)

Template = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Example:
    """What an example synthesizes to: its templates by stack, and what the validation has found."""

    name: str
    templates: Mapping[str, Template]
    validation: Mapping[str, Any]

    @property
    def template(self) -> Template:
        """That of its only stack."""
        (template,) = self.templates.values()
        return template


@cache
def example(name: str) -> Example:
    """The example, run as it stands but for where its assembly goes; cdk-nag looks on at the secure ones."""
    with TemporaryDirectory() as directory, _apps_in(Path(directory), secure=name in SECURE) as made:
        runpy.run_path(str(EXAMPLES / name / "app.py"), run_name="__main__")
        (app,) = made
        assembly = app.synth()  # what the example has synthesized already
        templates = {stack.display_name: stack.template for stack in assembly.stacks_recursively}
        validation = json.loads((Path(directory) / "validation-report.json").read_text())
    return Example(name, templates, validation)


@contextmanager
def _apps_in(directory: Path, *, secure: bool) -> Iterator[list[cdk.App]]:
    """``cdk.App()`` with the project's settings; CDK reads those from the environment only at its start."""
    make: Callable[..., cdk.App] = cdk.App
    context = json.loads((PROJECT / "cdk.json").read_text())["context"]
    made: list[cdk.App] = []

    def make_app() -> cdk.App:
        app = make(outdir=str(directory), context=context)
        if secure:
            cdk.Validations.of(app).add_plugins(*(pack(app) for pack in _RULE_PACKS))
        made.append(app)
        return app

    cdk.App = make_app  # type: ignore[assignment,misc] # a function in place of the class, for one example
    try:
        yield made
    finally:
        cdk.App = make  # type: ignore[assignment,misc] # the class again
