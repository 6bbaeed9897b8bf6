"""OLD and NEW: the stacks of a cloud assembly, a single template, or nothing;
and what to rehearse.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from constructs_triton_core.cloud_assembly.assembly import Assembly
from constructs_triton_core.cloud_assembly.synthesized_stack import SynthesizedStack
from constructs_triton_core.cloud_assembly.template import Resource, Template
from constructs_triton_core.errors import InvalidValueError, TemplateError

from ..template_parsing import parse_template, read_template_file
from .nested_paths import paths_in_nested_stacks
from .sources import Frame, sources_of
from .synthesis_warnings import synthesis_warnings

if TYPE_CHECKING:
    from ..services.service_api import Place

__all__ = [
    "NONE",
    "Failures",
    "Request",
    "StackVersion",
    "Version",
    "construct_paths",
    "declared_resources",
    "deployed_version",
    "read_version",
]

Failures = Literal["each", "none"]

_UNKNOWN = ("", "unknown-account", "unknown-region")
_PATH = "aws:cdk:path"
_ENDING = re.compile(r"(?<!/Resource)(?<!/Default)(?:/(?:Resource|Default))+$")
_NESTED_STACK = re.compile(r"(?<![^/])([^/]+)\.NestedStack/\1\.NestedStackResource$")
_HINT = "pass a folder that `npx cdk synth` wrote, a template in JSON or YAML, or `none`"


@dataclass(frozen=True)
class StackVersion:
    """One version of a stack.

    Args:
        name: Name of the stack.
        template: Its template.
        directory: Folder of the cloud assembly; ``None`` for a template alone.
        account: Account ID; empty if the stack is not bound to one.
        region: Region; empty if the stack is not bound to one.
        names: All names that select it.
        parameters: Values of the template's parameters. Default: those of the template.
        paths: Path of each construct by logical ID, from the path of the stack on, and by
            ``NESTED/ID`` in nested stacks. Default: not known.
        needs: Environments of the stacks that it depends on.
        file: The file with the template. Default: it was not read from a file.
        sources: Where the app creates each construct, by its path. Default: not known.
        warnings: The warnings that the synthesis wrote: path of the construct, and text.
    """

    name: str
    template: Template
    directory: Path | None = None
    account: str = ""
    region: str = ""
    names: frozenset[str] = frozenset()
    parameters: Mapping[str, str] = field(default_factory=dict)
    paths: Mapping[str, str] = field(default_factory=dict)
    needs: frozenset[str] = frozenset()
    file: Path | None = None
    sources: Mapping[str, Frame] = field(default_factory=dict)
    warnings: tuple[tuple[str, str], ...] = ()

    @property
    def environment(self) -> str:
        """Account and Region, as ``aws://<account>/<Region>``."""
        return f"aws://{self.account}/{self.region}"

    def synthesized(self) -> list[SynthesizedStack]:
        """Return the stack as its template declares it, then the stacks that are nested in it."""
        manifests = () if self.directory is None else Assembly(self.directory).asset_manifests
        stack = SynthesizedStack(
            self.name,
            self.template,
            manifests,
            region=self.region,
            account=self.account,
            parameters=self.parameters,
        )
        if self.directory is None:
            return [stack]
        return [stack, *stack.nested(self.directory, Template.read)]

    def with_parameters(self, values: Mapping[str, str]) -> StackVersion:
        """Return the stack with the values of the parameters that its template has.

        Args:
            values: Values by name; those of other stacks are ignored.

        Raises:
            InvalidValueError: a parameter has neither a value nor a default.
        """
        declared = self.template.parameters
        known = {name: value for name, value in values.items() if name in declared}
        for name, parameter in declared.items():
            if name not in known and "Default" not in parameter:
                raise InvalidValueError(
                    f"stack {self.name}: parameter {name} has no default; pass its value with "
                    f"--parameters {name}=VALUE, or parameters={{...}} in Python"
                )
        template = self.template.with_parameters(known)
        return replace(self, parameters=known, template=template)


@dataclass(frozen=True)
class Drift:
    """A difference between a resource in AWS and its template, as CloudFormation has detected it.

    Args:
        logical_id: Logical ID of the resource.
        type: Its type.
        differences: Path of each property that differs, with the value of the template and that in
            AWS; none if the resource was deleted.
    """

    logical_id: str
    type: str
    differences: tuple[tuple[str, str, str], ...] = ()


@dataclass(frozen=True)
class Version:
    """The stacks of OLD or NEW.

    Args:
        stacks: The stacks, each after those that it depends on. Default: none.
        environment: The one account and Region of which it has the stacks. Default: all.
        passed: What its stacks pass to those of other environments; known when they are deployed.
        imported: Parameters of other Regions that may not change while it is deployed, with their
            readers.
        drifts: What was changed in AWS since it was deployed.
    """

    stacks: tuple[StackVersion, ...] = ()
    environment: str = ""
    passed: dict[Place, str] = field(default_factory=dict, compare=False)
    imported: Mapping[Place, str] = field(default_factory=dict)
    drifts: tuple[Drift, ...] = ()

    def only(self, names: Iterable[str]) -> Version:
        """Return the version with only these stacks.

        Args:
            names: Names that select stacks; none selects all.
        """
        wanted = set(names)
        return replace(
            self, stacks=tuple(stack for stack in self.stacks if not wanted or wanted & stack.names)
        )

    def named(self, name: str) -> Version:
        """Return the version of one stack with this name.

        Args:
            name: Name of the stack.
        """
        named = (replace(stack, name=name, names=stack.names | {name}) for stack in self.stacks)
        return replace(self, stacks=tuple(named))

    @property
    def is_template(self) -> bool:
        """Whether it is a template alone."""
        return len(self.stacks) == 1 and not self.has_assets

    @property
    def has_assets(self) -> bool:
        """Whether the code of functions and the models are known."""
        return all(stack.directory is not None for stack in self.stacks)


NONE = Version()
"""No stacks: OLD before the first deployment, NEW of a deletion."""


@dataclass(frozen=True)
class Request:
    """What to rehearse.

    Args:
        old: The deployed version.
        new: The version to deploy.
        fleets: Instances of endpoints before the update, by name or logical ID.
        failures: Whether each step fails once.
        orders: 1 for a calm account, 2 for another order of independent resources too.
        meanwhile: What happens between OLD and NEW, each as ``KIND=SUBJECT``.
    """

    old: Version
    new: Version
    fleets: Mapping[str, int] = field(default_factory=dict)
    failures: Failures = "each"
    orders: int = 1
    meanwhile: tuple[str, ...] = ()


def read_version(source: str | os.PathLike[str] | Template | Version | None) -> Version:
    """Read OLD or NEW; raises ``TemplateError`` if it cannot be read."""
    if isinstance(source, Version):
        return source
    if source is None or source == "none":
        return NONE
    if isinstance(source, Template):
        return Version((StackVersion("Stack", source),))
    path = Path(source)
    if path.is_dir():
        found = tuple(_of_assembly(Assembly(path)))
        if not found:
            raise TemplateError(f"{path}: contains no stack; {_HINT}")
        return Version(found)
    if not path.is_file():
        raise TemplateError(f"{path}: does not exist; {_HINT}")
    name = path.name.split(".")[0]
    template = read_template_file(path, _HINT)
    return Version((StackVersion(name, template, names=frozenset({name}), file=path),))


def deployed_version(
    stack: str, text: str, parameters: Mapping[str, str], drifts: Iterable[Drift] = ()
) -> Version:
    """Read the template of a deployed stack, which ``stack`` names or has the ARN of."""
    name = stack.split("/")[1] if stack.startswith("arn:") and "/" in stack else stack
    hint = "keep the folder that `npx cdk synth` wrote, and pass it as OLD"
    template = parse_template(text, f"stack {name}", hint)
    deployed = StackVersion(name, template, names=frozenset({name}), parameters=parameters)
    return Version((deployed,), drifts=tuple(drifts))


def _of_assembly(whole: Assembly) -> Iterator[StackVersion]:
    """Yield the stacks of an assembly and of those in it."""
    for assembly, artifact in whole.artifacts():
        account, _, region = assembly.environment(artifact).removeprefix("aws://").partition("/")
        metadata = assembly.construct_metadata(artifact)
        yield StackVersion(
            assembly.stack_name(artifact),
            assembly.template(artifact),
            assembly.directory.absolute(),  # the process that rehearses may be in another folder
            "" if account in _UNKNOWN else account,
            "" if region in _UNKNOWN else region,
            assembly.stack(artifact).names,
            paths={**assembly.construct_paths(artifact), **paths_in_nested_stacks(metadata)},
            needs=assembly.needed_environments(artifact),
            file=assembly.template_file(artifact),
            sources=sources_of(metadata),
            warnings=tuple(synthesis_warnings(metadata)),
        )


def declared_resources(*versions: Version) -> dict[tuple[str, str], Resource]:
    """Return the resources of all stacks, by stack and logical ID; a later version takes
    precedence.
    """
    declared = {}
    for version in versions:
        for stack in version.stacks:
            for logical_id, resource in stack.template.resources.items():
                declared[stack.name, logical_id] = resource
    return declared


def construct_paths(*versions: Version) -> dict[str, str]:
    """Return the path of each resource below its stack, by logical ID, in nested stacks also by
    ``NESTED/ID``.

    The CDK derives a logical ID from this path, so two stacks have the same path for the same
    logical ID. The path is in the template if the CDK's command line ran the app, and beside the
    template otherwise. A resource that the CDK did not write has none. A later version takes
    precedence.
    """
    below_stack = {}
    for version in versions:
        for stack in version.stacks:
            for logical_id, path in {**stack.paths, **_paths_in_template(stack)}.items():
                below_stack[logical_id] = _below(stack, path)
    return below_stack


def _paths_in_template(stack: StackVersion) -> dict[str, str]:
    paths = {}
    for logical_id, resource in stack.template.resources.items():
        path = resource.metadata.get(_PATH)
        if isinstance(path, str):
            paths[logical_id] = path
    return paths


def _below(stack: StackVersion, path: str) -> str:
    """The path without that of the stack and without the last construct,
    which the CDK adds to each; of a nested stack that of its own construct.
    """
    above = [name for name in stack.names if path.startswith(f"{name}/")]
    if above:
        inner = path.removeprefix(f"{max(above, key=len)}/")
    else:
        _, _, inner = path.partition("/")
        inner = inner or path
    return _NESTED_STACK.sub(r"\1", _ENDING.sub("", inner))
