"""The stack that an assertion looks at: synthesized, or read from a cloud assembly."""

from __future__ import annotations

from pathlib import Path

from aws_cdk import Stack, Stage

from constructs_triton_core.cloud_assembly.synthesized_stack import SynthesizedStack
from constructs_triton_core.errors import InvalidValueError


def synthesized_stack(source: Stack | Path | str) -> SynthesizedStack:
    """Synthesize a stack, or read a template such as ``cdk.out/Shop.template.json``.

    An app is synthesized once: later changes to its constructs have no effect.

    Raises:
        InvalidValueError: the stack is in no app, or the template cannot be read.
    """
    if not isinstance(source, Stack):
        return SynthesizedStack.read(Path(source))
    return SynthesizedStack.read(synthesized(source) / source.template_file, source.node.path)


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
