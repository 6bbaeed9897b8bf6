"""Builds the models of an example, synthesizes its app, and calls its endpoints."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from article_calls import Difference, article_calls, differences, explained
from example_scripts import (
    PUBLISHED_SYSTEMS,
    Template,
    endpoint_calls,
    read_template,
    run_script,
    synthesize,
)

from constructs_triton_client import ModelIndex, TritonClient
from constructs_triton_tools.local import LocalEndpoint


@dataclass(frozen=True)
class BuiltExample:
    """An example whose models are built: its name, the models, the assembly and its template."""

    name: str
    models: Path
    assembly: Path
    template: Template

    @classmethod
    def build(cls, name: str, stack: str, directory: Path, *options: object) -> BuiltExample:
        """Run ``build_models.py`` with these options, and synthesize the app."""
        models = directory / "models"
        run_script(name, "build_models.py", "--output", models, *options)
        assembly = synthesize(name, directory / "cdk.out", models=str(models))
        return cls(name, models, assembly, read_template(assembly, stack))

    @property
    def target_models(self) -> dict[str, str]:
        """The ``TargetModel`` of each model, from the stack's output."""
        targets: dict[str, str] = json.loads(self.template["Outputs"]["TargetModels"]["Value"])
        return targets

    def client(self, local: LocalEndpoint, endpoint: str) -> TritonClient:
        """Return a client of the multi-model endpoint that takes names of
        models as ``TargetModel``.
        """
        index = ModelIndex(self.target_models)
        return TritonClient.for_endpoint(endpoint, endpoint_url=local.endpoint_url, index=index)

    def unexplained(self, endpoint: str) -> set[Difference]:
        """Return where the calls differ from the article's and the README's table,
        in either direction.
        """
        example = PUBLISHED_SYSTEMS / self.name
        found = differences(article_calls(example), endpoint_calls(self.template, endpoint))
        return found ^ explained(example / "README.md")
