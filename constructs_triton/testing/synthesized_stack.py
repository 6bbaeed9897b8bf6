"""The template of a stack and the manifest of its assets, as ``cdk synth`` writes them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from aws_cdk import Stack, Stage

from constructs_triton.errors import InvalidValueError

__all__ = ["AssetManifest", "FileAsset", "SynthesizedStack"]


@dataclass(frozen=True)
class FileAsset:
    """A file that the CDK uploads. ``destinations`` has its object keys by the CDK's name of each place."""

    display_name: str
    path: Path
    destinations: Mapping[str, str]


@dataclass(frozen=True)
class AssetManifest:
    """The content of an ``*.assets.json`` file."""

    directory: Path
    content: Mapping[str, Any]

    @classmethod
    def read(cls, path: Path) -> AssetManifest:
        """Read a manifest."""
        return cls(path.parent, json.loads(path.read_bytes()))

    def files(self) -> Iterator[FileAsset]:
        """Yield the file assets."""
        for asset in self.content.get("files", {}).values():
            path = self.directory / asset.get("source", {}).get("path", "")
            keys = {name: each["objectKey"] for name, each in asset.get("destinations", {}).items()}
            yield FileAsset(asset.get("displayName", path.name), path, keys)

    def images(self) -> Iterator[tuple[str, list[str]]]:
        """Yield the display name and the tags of each container image."""
        for key, asset in self.content.get("dockerImages", {}).items():
            tags = [each["imageTag"] for each in asset.get("destinations", {}).values()]
            yield asset.get("displayName", key), tags


@dataclass(frozen=True)
class SynthesizedStack:
    """A template with its assets. ``name`` is used in messages.

    ``manifests`` are the manifest with the stack's assets, and those of the stages in the same app, because a
    pipeline of the CDK names their assets too.
    """

    name: str
    template: Mapping[str, Any]
    manifests: Sequence[AssetManifest]

    @classmethod
    def of(cls, source: Stack | Path | str) -> SynthesizedStack:
        """Synthesize a stack, or read a template such as ``cdk.out/Shop.template.json``.

        An app is synthesized once: later changes to its constructs have no effect.

        Raises:
            InvalidValueError: the stack is in no app, or the template cannot be read.
        """
        path = _synthesized(source) if isinstance(source, Stack) else Path(source)
        name = source.node.path if isinstance(source, Stack) else path.name.partition(".")[0]
        return cls(name, _read(path), list(_manifests(path)))

    def file_assets(self) -> Iterator[FileAsset]:
        """Yield the file assets of the stack, then those of stages in the same app."""
        for manifest in self.manifests:
            yield from manifest.files()

    def images(self) -> Iterator[tuple[str, list[str]]]:
        """Yield the display name and the tags of each container image."""
        for manifest in self.manifests:
            yield from manifest.images()

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


def _manifests(template: Path) -> Iterator[AssetManifest]:
    """Yield the manifest that contains the template, and those of stages below its folder.

    A nested stack is in the manifest of its parent.
    """
    for path in sorted(template.parent.glob("*.assets.json")):
        manifest = AssetManifest.read(path)
        if any(each.path.name == template.name for each in manifest.files()):
            yield manifest
    for path in sorted(template.parent.glob("*/*.assets.json")):
        yield AssetManifest.read(path)
