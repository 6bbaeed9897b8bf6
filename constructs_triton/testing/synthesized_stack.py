"""The stacks that an assertion looks at: synthesized, or read from a cloud assembly.

Each helper for tests takes the same sources. A source of which a helper would see only a part is
refused, because a test of it could not fail for the rest.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from aws_cdk import Stack, Stage
from aws_cdk.assertions import Template
from constructs import IConstruct

from constructs_triton_core.cloud_assembly.assembly import Assembly, template_stacks
from constructs_triton_core.cloud_assembly.synthesized_stack import (
    NESTED_STACK_TYPE,
    SynthesizedStack,
)
from constructs_triton_core.cloud_assembly.template import Template as TemplateOfStack
from constructs_triton_core.errors import InvalidValueError

Source = IConstruct | Template | Path | str
"""A stack, an app, a stage, another construct, a template object of ``aws_cdk.assertions``, or the
path of a template or of a cloud assembly.
"""

_ACCEPTED = (
    "pass a stack, an app, a construct of a stack, or the path of a template that "
    "`npx cdk synth` wrote"
)


@dataclass(frozen=True)
class SynthesizedSource:
    """What a source has: the stacks by their IDs in the app, without nested stacks.

    ``name`` is for messages. ``is_app`` tells an app with one stack from this stack.
    """

    name: str
    stacks: Mapping[str, StackInFolder]
    is_app: bool

    def all_stacks(self) -> list[SynthesizedStack]:
        """Return the stacks, each before its nested stacks.

        Raises:
            InvalidValueError: the template of a nested stack is not known.
        """
        found = []
        for stack in self.stacks.values():
            stack.refuse_unknown()
            found.append(stack.stack)
            found += stack.nested()
        return found


@dataclass(frozen=True)
class StackInFolder:
    """A stack, and the folder of its template: ``None`` for a template object, which has none."""

    stack: SynthesizedStack
    folder: Path | None

    def nested(self) -> list[SynthesizedStack]:
        """Return the nested stacks that exist before a deployment, and theirs."""
        if self.folder is None:
            return []
        return list(self.stack.nested(self.folder, TemplateOfStack.read))

    def refuse_unknown(self) -> None:
        """Refuse a template object with nested stacks.

        Raises:
            InvalidValueError: it has one.
        """
        nested = self.stack.template.resources_of_type(NESTED_STACK_TYPE)
        if self.folder is None and nested:
            raise InvalidValueError(
                f"{self.stack.name}: does not contain the template of the nested stack "
                f"{next(iter(nested))}; pass the stack in place of its Template"
            )


def synthesized_source(source: Any) -> SynthesizedSource:
    """Synthesize or read what a test passes.

    A construct stands for the stack that it is in. An app is synthesized once: later changes to its
    constructs have no effect.

    Raises:
        InvalidValueError: it is none of the sources, is in no app, or is an app without a stack.
        TemplateError: a template cannot be read.
    """
    if isinstance(source, Stage):
        return _app(synthesized(source), source.node.path or "the app")
    if isinstance(source, Template):
        body = TemplateOfStack(source.to_json())
        return _single("Template", StackInFolder(SynthesizedStack("Template", body), None))
    if isinstance(source, Path | str):
        path = Path(source)
        if path.is_dir():
            return _app(path, str(path))
        stack = template_stacks(path)[0]
        return _single(stack.name, StackInFolder(stack, path.parent))

    stack_of_it = stack_of(source)
    path = synthesized(stack_of_it) / stack_of_it.template_file
    stack = SynthesizedStack.read(path, stack_of_it.node.path)
    return _single(stack.name, StackInFolder(stack, path.parent))


def stack_of(source: Any) -> Stack:
    """Return a stack, or the stack that a construct is in.

    Raises:
        InvalidValueError: it is no construct of a stack.
    """
    if isinstance(source, Stack):
        return source
    if not hasattr(source, "node"):
        raise InvalidValueError(
            f"stack: must be a stack, got {type(source).__name__} {str(source)[:60]!r}; {_ACCEPTED}"
        )
    try:
        return Stack.of(source)
    except RuntimeError:  # jsii raises this for each error of the CDK
        raise InvalidValueError(
            f"stack: {source.node.path or type(source).__name__} is in no stack; {_ACCEPTED}"
        ) from None


def synthesized(source: Stack | Stage) -> Path:
    """Return the folder of the cloud assembly of an app, or of the app that a stack is in.

    Raises:
        InvalidValueError: the stack is in no app.
    """
    stage = source if isinstance(source, Stage) else Stage.of(source)
    if stage is None:
        raise InvalidValueError(
            f"{source.node.path}: cannot be synthesized, because it is in no app; "
            "create it in a cdk.App()"
        )
    return Path(stage.synth().directory)


def _single(name: str, stack: StackInFolder) -> SynthesizedSource:
    return SynthesizedSource(name, {stack.stack.name: stack}, is_app=False)


def _app(directory: Path, name: str) -> SynthesizedSource:
    stacks = {
        artifact: StackInFolder(assembly.stack(artifact), assembly.directory)
        for assembly, artifact in Assembly(directory).artifacts()
    }
    if not stacks:
        raise InvalidValueError(f"{name}: has no stack, so a test of it cannot fail; {_ACCEPTED}")
    return SynthesizedSource(name, stacks, is_app=True)
