"""A cloud assembly: the folder that ``cdk synth`` writes.

Source of the layout: the cloud assembly schema of aws-cdk (manifest.json, ``*.assets.json``).
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

from constructs_triton_core.cloud_assembly.intrinsics import EvaluationBudget
from constructs_triton_core.cloud_assembly.placeholders import (
    PLACEHOLDER_ACCOUNT,
    PLACEHOLDER_REGION,
)
from constructs_triton_core.cloud_assembly.shapes import MANIFEST, METADATA
from constructs_triton_core.cloud_assembly.synthesized_stack import AssetManifest, SynthesizedStack
from constructs_triton_core.cloud_assembly.template import Template, check_shape, read_checked
from constructs_triton_core.errors import InvalidValueError, TemplateError
from constructs_triton_core.spelling import did_you_mean, quoted

__all__ = ["MOST_STACKS", "Assembly", "read_stacks", "template_stacks"]

_ASSETS = "cdk:asset-manifest"
_STAGE = "cdk:cloud-assembly"
_STACK = "aws:cloudformation:stack"
_LOGICAL_ID = "aws:cdk:logicalId"
_Found = TypeVar("_Found")
_HINT = "run `npx cdk synth`, and pass the folder that it wrote"
#: The quota of CloudFormation for an account in a Region.
MOST_STACKS = 2000
_TOO_MANY = (
    f"has more than {MOST_STACKS:,} stacks, nested ones and those of stages included; "
    "pass the folder of a stage"
)


@dataclass(frozen=True)
class Assembly:
    """A cloud assembly in a directory. Its methods raise ``TemplateError`` for a file that cannot
    be read.

    ``budget`` bounds the evaluation of all its stacks.
    """

    directory: Path
    budget: EvaluationBudget = field(default_factory=EvaluationBudget, compare=False)
    _templates: dict[Path, Template] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    def stacks(self) -> list[str]:
        """Return the IDs of the stacks of this folder, each after the stacks that it depends on."""
        names = self._artifacts_of(_STACK)
        return sorted(names, key=lambda name: len(self._ancestors(name)))

    def stages(self) -> list[Assembly]:
        """Return the assemblies of the stages in this one."""
        return [
            Assembly(self.directory / self._property(name, "directoryName"), self.budget)
            for name in self._artifacts_of(_STAGE)
        ]

    def all_stacks(self) -> Iterator[SynthesizedStack]:
        """Yield the stacks with their nested stacks, then those of stages."""
        yield from self._bounded(self._all_stacks())

    def missing_lookups(self) -> list[Mapping[str, Any]]:
        """Return the lookups in AWS that the synthesis has not done, as the CDK describes them."""
        manifest = read_checked(self.directory / "manifest.json", MANIFEST, _HINT)
        return list(manifest.get("missing") or ())

    def artifacts(self) -> Iterator[tuple[Assembly, str]]:
        """Yield the assembly and the ID of each stack, first those of this folder,
        then those of stages.
        """
        yield from self._bounded(self._all_artifacts())

    def _all_artifacts(self) -> Iterator[tuple[Assembly, str]]:
        for assembly in self._bounded(self._with_stages(frozenset())):
            for artifact in assembly.stacks():
                yield assembly, artifact

    def _all_stacks(self) -> Iterator[SynthesizedStack]:
        for assembly, artifact in self.artifacts():
            stack = assembly.stack(artifact)
            yield stack
            yield from stack.nested(assembly.directory, assembly._read)

    def _with_stages(self, outer: frozenset[str]) -> Iterator[Assembly]:
        """Yield this assembly and those of its stages; ``outer`` are the folders that it is in."""
        here = os.path.realpath(self.directory)
        if here in outer:
            raise TemplateError(f"{self.directory}: a stage contains itself; {_HINT}")
        yield self
        for stage in self.stages():
            yield from stage._with_stages(outer | {here})

    def _bounded(self, found: Iterable[_Found]) -> Iterator[_Found]:
        """Stages and nested stacks can share files,
        so a few files can stand for any number of stacks.
        """
        return _bounded(found, self.directory)

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
            budget=self.budget,
        )

    def exported(self, name: str, region: str) -> Any:
        """Return the value of an export of a Region,
        or ``None`` if no stack of this folder has it.
        """
        stack, output = self._exports.get((name, region), (None, ""))
        return None if stack is None else stack.output(output)

    def output(self, stack: str, name: str, region: str) -> Any:
        """Return the output of the stack with this name in a Region,
        or ``None`` if there is none.
        """
        for known in self._stacks:
            is_wanted = known.name == stack and known.region == region
            if is_wanted and name in known.template.outputs:
                return known.output(name)
        return None

    def template(self, artifact: str) -> Template:
        """Return the template of a stack."""
        return self._read(self.template_file(artifact))

    def stack_name(self, artifact: str) -> str:
        """Return the name of a stack in AWS."""
        return self._property(artifact, "stackName", artifact)

    def construct_paths(self, artifact: str) -> dict[str, str]:
        """Return the paths of a stack's constructs by logical ID, which the CDK writes beside the
        template.

        They begin with the path of the stack. None are known if the app or someone leaves the file
        out.
        """
        return {
            str(entry["data"]): path.removeprefix("/")
            for path, entries in self.construct_metadata(artifact).items()
            for entry in entries
            if entry["type"] == _LOGICAL_ID
        }

    def construct_metadata(self, artifact: str) -> Mapping[str, Sequence[Mapping[str, Any]]]:
        """Return what the CDK writes of the constructs of a stack, by their paths.

        The paths begin with a slash. There is none if the app or someone leaves the file out.
        """
        found = self._artifacts[artifact]
        where = self.directory / (found.get("additionalMetadataFile") or "manifest.json")
        metadata = found.get("metadata") or {}  # where the CDK wrote it before it had the file
        if "additionalMetadataFile" in found:
            metadata = read_checked(where, METADATA, _HINT) if where.is_file() else {}
        else:
            check_shape(metadata, METADATA, str(where), _HINT)
        return metadata

    def template_file(self, artifact: str) -> Path:
        """Return the file with the template of a stack."""
        return self.directory / self._property(artifact, "templateFile")

    def environment(self, artifact: str) -> str:
        """Return the environment of a stack, ``aws://<account>/<Region>``;
        either may be unknown.
        """
        environment: str = self._artifacts[artifact].get("environment") or ""
        return environment

    def needed_environments(self, artifact: str) -> frozenset[str]:
        """Return the environments of the stacks that a stack depends on."""
        environments = {
            self._artifacts.get(ancestor, {}).get("environment")
            for ancestor in self._ancestors(artifact)
        }
        return frozenset(environment for environment in environments if environment)

    @cached_property
    def asset_manifests(self) -> list[AssetManifest]:
        """The assets of the stacks of this folder."""
        return [
            AssetManifest.read(self.directory / self._property(name, "file"))
            for name in self._artifacts_of(_ASSETS)
        ]

    def _read(self, path: Path) -> Template:
        """Read a template once, because a small manifest can name a large one many times."""
        if path not in self._templates:
            self._templates[path] = Template.read(path)
        return self._templates[path]

    @cached_property
    def _stacks(self) -> list[SynthesizedStack]:
        return list(map(self.stack, self.stacks()))

    @cached_property
    def _exports(self) -> Mapping[tuple[str, str], tuple[SynthesizedStack, str]]:
        found: dict[tuple[str, str], tuple[SynthesizedStack, str]] = {}
        for stack in self._stacks:
            for export, output in stack.exports().items():
                found[export, stack.region] = (stack, output)
        return found

    @cached_property
    def _artifacts(self) -> Mapping[str, Any]:
        manifest = read_checked(self.directory / "manifest.json", MANIFEST, _HINT)
        return manifest.get("artifacts") or {}

    def _artifacts_of(self, artifact_type: str) -> list[str]:
        return [
            name for name, artifact in self._artifacts.items() if artifact["type"] == artifact_type
        ]

    def _property(self, artifact: str, name: str, default: str | None = None) -> str:
        """Return a property of an artifact in the manifest.

        Raises:
            TemplateError: it has none, and there is no default.
        """
        found = (self._artifacts[artifact].get("properties") or {}).get(name) or default
        if found is None:
            raise TemplateError(
                f"{self.directory}/manifest.json: {artifact} has no {name}; {_HINT}"
            )
        return str(found)

    def _ancestors(self, artifact: str) -> set[str]:
        found: set[str] = set()
        waiting = [artifact]
        while waiting:
            direct = set(self._artifacts.get(waiting.pop(), {}).get("dependencies") or ())
            self.budget.spend(1 + len(direct))
            waiting += direct - found
            found |= direct
        return found


def _bounded(found: Iterable[_Found], where: Path) -> Iterator[_Found]:
    for number, each in enumerate(found):
        if number == MOST_STACKS:
            raise TemplateError(f"{where}: {_TOO_MANY}")
        yield each


def template_stacks(path: Path, name: str | None = None) -> list[SynthesizedStack]:
    """Return the stack of a template such as ``cdk.out/Shop.template.json``, then its nested
    stacks.

    ``name`` is what messages call the stack (default: the file's name).

    Raises:
        TemplateError: a template cannot be read.
    """
    stack = SynthesizedStack.read(path, name)
    nested = stack.nested(path.parent, Template.read)
    return [stack, *_bounded(nested, path)]


def read_stacks(path: Path, wanted: Sequence[str] | None) -> list[SynthesizedStack]:
    """Return the stacks of an assembly's folder, or of one template: those with the wanted names,
    or all.

    Raises:
        InvalidValueError: there is no stack with a name.
        TemplateError: the folder or the template cannot be read.
    """
    stacks = list(Assembly(path).all_stacks()) if path.is_dir() else template_stacks(path)
    if not wanted:
        return stacks

    known: dict[str, SynthesizedStack] = {}
    for stack in stacks:
        for name in (*stack.names, stack.name):
            known[name] = stack
    for name in wanted:
        if name not in known:
            hint = did_you_mean(name, known, f"use one of {quoted(sorted(known))}")
            raise InvalidValueError(f'--stack: no stack "{name}" in {path}; {hint}')
    return [known[name] for name in wanted]
