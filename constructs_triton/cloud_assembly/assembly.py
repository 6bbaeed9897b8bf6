"""A cloud assembly: the folder that ``cdk synth`` writes.

Source of the layout: the cloud assembly schema of aws-cdk (manifest.json, ``*.assets.json``).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from constructs_triton.cloud_assembly.placeholders import PLACEHOLDER_ACCOUNT, PLACEHOLDER_REGION
from constructs_triton.cloud_assembly.synthesized_stack import AssetManifest, SynthesizedStack
from constructs_triton.cloud_assembly.template import Template, read_json_object

__all__ = ["Assembly"]

_ASSETS, _STAGE, _STACK = "cdk:asset-manifest", "cdk:cloud-assembly", "aws:cloudformation:stack"
_HINT = "run `npx cdk synth`, and pass the folder that it wrote"


@dataclass(frozen=True)
class Assembly:
    """A cloud assembly in a directory. Its methods raise ``TemplateError`` for a file that cannot be read."""

    directory: Path

    def stacks(self) -> list[str]:
        """Return the IDs of the stacks of this folder, each after the stacks that it depends on."""
        names = [name for name, each in self._artifacts.items() if each["type"] == _STACK]
        return sorted(names, key=lambda name: len(self._ancestors(name)))

    def stages(self) -> list[Assembly]:
        """Return the assemblies of the stages in this one."""
        nested = (each for each in self._artifacts.values() if each["type"] == _STAGE)
        return [Assembly(self.directory / each["properties"]["directoryName"]) for each in nested]

    def all_stacks(self) -> Iterator[SynthesizedStack]:
        """Yield the stacks with their nested stacks, then those of stages."""
        for artifact in self.stacks():
            stack = self.stack(artifact)
            yield stack
            yield from stack.nested(self.directory)
        for stage in self.stages():
            yield from stage.all_stacks()

    def stack(self, artifact: str) -> SynthesizedStack:
        """Return a stack by its ID in the manifest."""
        account, _, region = self.environment(artifact).removeprefix("aws://").partition("/")
        name = self.stack_name(artifact)
        return SynthesizedStack(
            name,
            self.template(artifact),
            self.asset_manifests,
            region=PLACEHOLDER_REGION if region in ("", "unknown-region") else region,
            account=PLACEHOLDER_ACCOUNT if account in ("", "unknown-account") else account,
            names=frozenset({name, artifact, self._artifacts[artifact].get("displayName", name)}),
            outputs=self,
        )

    def exported(self, name: str, region: str) -> Any:
        """Return the value of an export of a Region, or ``None`` if no stack of this folder has it."""
        stack, output = self._exports.get((name, region), (None, ""))
        return None if stack is None else stack.output(output)

    def output(self, stack: str, name: str, region: str) -> Any:
        """Return the output of the stack with this name in a Region, or ``None`` if there is none."""
        for each in self._stacks:
            if (each.name, each.region) == (stack, region) and name in each.template.outputs:
                return each.output(name)
        return None

    def template(self, artifact: str) -> Template:
        """Return the template of a stack."""
        return Template.read(self.directory / self._artifacts[artifact]["properties"]["templateFile"])

    def stack_name(self, artifact: str) -> str:
        """Return the name of a stack in AWS."""
        name: str = self._artifacts[artifact]["properties"].get("stackName", artifact)
        return name

    def environment(self, artifact: str) -> str:
        """Return the environment of a stack, ``aws://<account>/<Region>``; either may be unknown."""
        environment: str = self._artifacts[artifact].get("environment", "")
        return environment

    @cached_property
    def asset_manifests(self) -> list[AssetManifest]:
        """The assets of the stacks of this folder."""
        found = (each for each in self._artifacts.values() if each["type"] == _ASSETS)
        return [AssetManifest.read(self.directory / each["properties"]["file"]) for each in found]

    @cached_property
    def _stacks(self) -> list[SynthesizedStack]:
        return list(map(self.stack, self.stacks()))

    @cached_property
    def _exports(self) -> Mapping[tuple[str, str], tuple[SynthesizedStack, str]]:
        return {
            (export, stack.region): (stack, output)
            for stack in self._stacks
            for export, output in stack.exports().items()
        }

    @cached_property
    def _artifacts(self) -> Mapping[str, Any]:
        artifacts: Mapping[str, Any] = read_json_object(self.directory / "manifest.json", _HINT).get(
            "artifacts", {}
        )
        return artifacts

    def _ancestors(self, artifact: str) -> set[str]:
        direct = set(self._artifacts[artifact].get("dependencies", []))
        return direct.union(*map(self._ancestors, direct))
