"""A stack of a cloud assembly: its template, its assets, and what is known before a deployment."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from constructs_triton.cloud_assembly.placeholders import (
    PLACEHOLDER_ACCOUNT,
    PLACEHOLDER_REGION,
    Placeholders,
    StackOutputs,
)
from constructs_triton.cloud_assembly.shapes import ASSETS, PROPERTIES, check_shape
from constructs_triton.cloud_assembly.template import Resource, Template, read_json_object
from constructs_triton.errors import TemplateError

__all__ = ["AssetManifest", "FileAsset", "SynthesizedStack"]

_HINT = "run `npx cdk synth` again"


@dataclass(frozen=True)
class FileAsset:
    """A file, or a folder that is zipped, that the CDK uploads.

    ``path`` is ``None`` if a program makes it. ``destinations`` have a bucket and a key for each place.
    """

    display_name: str
    path: Path | None
    packaging: str
    destinations: Mapping[str, Mapping[str, str]]


@dataclass(frozen=True)
class AssetManifest:
    """An ``*.assets.json`` file. ``directory`` is its folder, ``content`` its JSON."""

    directory: Path
    content: Mapping[str, Any]

    @classmethod
    def read(cls, path: Path) -> AssetManifest:
        """Read a manifest."""
        content = read_json_object(path, _HINT)
        check_shape(content, ASSETS, str(path), _HINT)
        return cls(path.parent, content)

    def files(self) -> Iterator[FileAsset]:
        """Yield the file assets."""
        for asset in (self.content.get("files") or {}).values():
            source = asset.get("source") or {}
            path = self.directory / source["path"] if source.get("path") else None
            name = asset.get("displayName") or ("" if path is None else path.name)
            yield FileAsset(name, path, source.get("packaging", "file"), asset.get("destinations") or {})

    def images(self) -> Iterator[tuple[str, list[str]]]:
        """Yield the display name and the tags of each container image."""
        for key, asset in (self.content.get("dockerImages") or {}).items():
            tags = [each["imageTag"] for each in (asset.get("destinations") or {}).values()]
            yield asset.get("displayName", key), tags


@dataclass(frozen=True)
class SynthesizedStack:
    """A template with its assets. ``name`` is the stack's name, which messages contain.

    ``names`` are all names by which it can be selected. ``manifests`` have its assets, and may have those of
    other stacks. ``parameters`` are the values that a parent stack passes to a nested stack. ``outputs`` are
    those of the other stacks of the app.
    """

    name: str
    template: Template
    manifests: Sequence[AssetManifest] = ()
    region: str = PLACEHOLDER_REGION
    account: str = PLACEHOLDER_ACCOUNT
    parameters: Mapping[str, Any] = field(default_factory=dict)
    names: frozenset[str] = frozenset()
    outputs: StackOutputs | None = None

    @classmethod
    def read(cls, path: Path, name: str | None = None) -> SynthesizedStack:
        """Read a template such as ``cdk.out/Shop.template.json`` and the assets beside it.

        Its assets include those of stages in the same app, because a pipeline of the CDK names them too.
        """
        return cls(name or path.name.partition(".")[0], Template.read(path), list(_manifests(path)))

    # What is known before a deployment.

    def properties(self, logical_id: str) -> dict[str, Any]:
        """Return the properties of a resource without intrinsic functions."""
        given = self.template.resources[logical_id].properties
        try:
            found = self._placeholders.evaluator.evaluate(given)
        except TemplateError as error:
            raise TemplateError(f"{self.name}/{logical_id}: {error}") from None
        return self._checked(logical_id, found)

    def known_properties(self, logical_id: str) -> dict[str, Any]:
        """Return the properties of a resource; what is known only at deployment is as declared."""
        given = self.template.resources[logical_id].properties
        return self._checked(logical_id, self._placeholders.evaluator.evaluate_known(given))

    def _checked(self, logical_id: str, properties: Any) -> dict[str, Any]:
        shape = PROPERTIES.get(self.template.resources[logical_id].type, {})
        check_shape(
            properties, shape, f"{self.name}/{logical_id}", "write it as in CloudFormation's reference"
        )
        return {name: value for name, value in properties.items() if value is not None}

    def name_of(self, logical_id: str) -> str:
        """Return the name of a resource: that of the template, else the logical ID."""
        return self._placeholders.name_of(logical_id)

    def output(self, name: str) -> Any:
        """Return the value of an output."""
        return self._placeholders.evaluator.evaluate_known(self.template.outputs[name].get("Value"))

    def exports(self) -> dict[str, str]:
        """Return the outputs that other stacks can import, by the name of their export."""
        exported = {name: each["Export"] for name, each in self.template.outputs.items() if "Export" in each}
        evaluate = self._placeholders.evaluator.evaluate_known
        return {str(evaluate(each["Name"])): name for name, each in exported.items()}

    def created(self, *types: str) -> list[str]:
        """Return the logical IDs of the resources of these types, without those of a false condition."""
        return [name for name, each in self.template.resources_of_type(*types).items() if self._exists(each)]

    @cached_property
    def _placeholders(self) -> Placeholders:
        return Placeholders(
            self.template, self.name, self.region, self.account, self.parameters, self.outputs
        )

    def _exists(self, resource: Resource) -> bool:
        try:
            return resource.condition is None or self._placeholders.evaluator.condition(resource.condition)
        except TemplateError:
            return True  # decided by a parameter without a default

    # Its assets and nested stacks.

    def file_assets(self) -> Iterator[FileAsset]:
        """Yield the file assets."""
        for manifest in self.manifests:
            yield from manifest.files()

    def asset(self, key: object) -> Path | None:
        """Return the file with this key in the asset bucket; it may not exist."""
        # A key in the properties of a resource may be an intrinsic function.
        return self._assets.get(key) if isinstance(key, str) else None

    @cached_property
    def _assets(self) -> dict[str, Path]:
        return {
            place["objectKey"]: asset.path
            for asset in self.file_assets()
            if asset.path is not None
            for place in asset.destinations.values()
        }

    def nested(self, directory: Path, outer: frozenset[str] = frozenset()) -> Iterator[SynthesizedStack]:
        """Yield its nested stacks, and theirs; ``directory`` is the folder of their templates.

        ``outer`` are the templates that they are nested in.
        """
        for logical_id in self.created("AWS::CloudFormation::Stack"):
            file = self.template.resources[logical_id].metadata.get("aws:asset:path")
            if file is None:
                continue
            if file in outer:
                raise TemplateError(f"{self.name}/{logical_id}: the nested stack contains itself; {_HINT}")
            given = self.known_properties(logical_id).get("Parameters") or {}
            stack = replace(
                self,
                name=f"{self.name}/{logical_id}",
                template=Template.read(directory / file),
                parameters={name: each for name, each in given.items() if not isinstance(each, dict)},
                names=self.names | {f"{self.name}/{logical_id}"},
            )
            yield stack
            yield from stack.nested(directory, outer | {file})


def _manifests(template: Path) -> Iterator[AssetManifest]:
    """Yield the manifest that contains the template, and those of stages below its folder.

    A nested stack is in the manifest of its parent.
    """
    for path in sorted(template.parent.glob("*.assets.json")):
        manifest = AssetManifest.read(path)
        if any(each.path is not None and each.path.name == template.name for each in manifest.files()):
            yield manifest
    for path in sorted(template.parent.glob("*/*.assets.json")):
        yield AssetManifest.read(path)
