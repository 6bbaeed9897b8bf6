"""The template of a stack and the manifest of its assets, as ``cdk synth`` writes them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from aws_cdk import Stack, Stage

from constructs_triton.errors import InvalidValueError

__all__ = ["StackSource", "SynthesizedStack"]

StackSource = Stack | Path | str
"""A stack, which is synthesized, or the path of a template in a cloud assembly."""


@dataclass(frozen=True)
class SynthesizedStack:
    """A template with its assets. ``name`` is used in messages."""

    name: str
    template: Mapping[str, Any]
    directory: Path
    assets: Mapping[str, Any]

    @classmethod
    def of(cls, source: StackSource) -> SynthesizedStack:
        """Synthesize a stack, or read a template such as ``cdk.out/Shop.template.json``.

        An app is synthesized once: later changes to its constructs have no effect.

        Raises:
            InvalidValueError: the stack is in no app, or the template cannot be read.
        """
        path = _synthesized(source) if isinstance(source, Stack) else Path(source)
        name = source.node.path if isinstance(source, Stack) else path.name.partition(".")[0]
        return cls(name, _read(path), path.parent, _assets_of(path))

    def file_assets(self) -> Iterator[tuple[str, Path, list[str]]]:
        """Yield the display name, the file and the object keys of each file asset."""
        for asset in self.assets.get("files", {}).values():
            keys = [each["objectKey"] for each in asset.get("destinations", {}).values()]
            path = self.directory / asset.get("source", {}).get("path", "")
            yield asset.get("displayName", path.name), path, keys

    def images(self) -> Iterator[tuple[str, list[str]]]:
        """Yield the display name and the tags of each container image."""
        for key, asset in self.assets.get("dockerImages", {}).items():
            tags = [each["imageTag"] for each in asset.get("destinations", {}).values()]
            yield asset.get("displayName", key), tags

    def resources(self, resource_type: str) -> dict[str, dict[str, Any]]:
        """Return the resources of a CloudFormation type by logical ID."""
        found = self.template.get("Resources", {}).items()
        return {name: resource for name, resource in found if resource.get("Type") == resource_type}


def _synthesized(stack: Stack) -> Path:
    stage = Stage.of(stack)
    if stage is None:
        raise InvalidValueError(
            f"{stack.node.path}: cannot be synthesized, because it is in no app; create it in a cdk.App()"
        )
    return Path(stage.synth().directory) / stack.template_file


def _read(path: Path) -> dict[str, Any]:
    try:
        template = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        raise InvalidValueError(
            f"{path}: cannot be read ({error}); pass a stack, or the path of a template from `cdk synth`"
        ) from None
    if not isinstance(template, dict):
        raise InvalidValueError(
            f"{path}: must be a template, got {type(template).__name__}; run `cdk synth` again"
        )
    return template


def _assets_of(template: Path) -> dict[str, Any]:
    """Read the asset manifest that contains the template; a nested stack shares the one of its parent."""
    for path in sorted(template.parent.glob("*.assets.json")):
        manifest: dict[str, Any] = json.loads(path.read_bytes())
        files = manifest.get("files", {}).values()
        if any(each.get("source", {}).get("path") == template.name for each in files):
            return manifest
    return {}
