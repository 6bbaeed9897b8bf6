"""A stack of a cloud assembly: its template, its assets, and what is known before a deployment."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from constructs_triton_core.cloud_assembly.intrinsics import EvaluationBudget, TemplateBudgetError
from constructs_triton_core.cloud_assembly.placeholders import (
    PLACEHOLDER_ACCOUNT,
    PLACEHOLDER_REGION,
    Placeholders,
    StackOutputs,
)
from constructs_triton_core.cloud_assembly.shapes import ASSETS, PROPERTIES
from constructs_triton_core.cloud_assembly.template import (
    Resource,
    Template,
    check_shape,
    read_checked,
)
from constructs_triton_core.errors import TemplateError

__all__ = ["NESTED_STACK_TYPE", "SynthesizedStack"]

#: The CloudFormation type of a nested stack.
NESTED_STACK_TYPE = "AWS::CloudFormation::Stack"
_HINT = "run `npx cdk synth` again"


@dataclass(frozen=True)
class FileAsset:
    """A file, or a folder that is zipped, that the CDK uploads.

    ``path`` is ``None`` if a program makes it. ``destinations`` have a bucket and a key for each
    place.
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
        return cls(path.parent, read_checked(path, ASSETS, _HINT))

    def files(self) -> Iterator[FileAsset]:
        """Yield the file assets."""
        for asset in (self.content.get("files") or {}).values():
            source = asset.get("source") or {}
            path = self.directory / source["path"] if source.get("path") else None
            name = asset.get("displayName") or ("" if path is None else path.name)
            yield FileAsset(
                name, path, source.get("packaging", "file"), asset.get("destinations") or {}
            )

    def images(self) -> Iterator[tuple[str, list[str]]]:
        """Yield the display name and the tags of each container image."""
        for key, asset in (self.content.get("dockerImages") or {}).items():
            tags = [each["imageTag"] for each in (asset.get("destinations") or {}).values()]
            yield asset.get("displayName", key), tags


@dataclass(frozen=True)
class SynthesizedStack:
    """A template with its assets. ``name`` is the stack's name, which messages contain.

    ``names`` are all names by which it can be selected. ``manifests`` have its assets, and may have
    those of other stacks. ``parameters`` are the values that a parent stack passes to a nested
    stack. ``outputs`` are those of the other stacks of the app. ``budget`` bounds the evaluation of
    all of them.
    """

    name: str
    template: Template
    manifests: Sequence[AssetManifest] = ()
    region: str = PLACEHOLDER_REGION
    account: str = PLACEHOLDER_ACCOUNT
    parameters: Mapping[str, Any] = field(default_factory=dict)
    names: frozenset[str] = frozenset()
    outputs: StackOutputs | None = None
    budget: EvaluationBudget = field(default_factory=EvaluationBudget, compare=False)
    # What was asked for before. Readers do not change it.
    _complete: dict[str, dict[str, Any]] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )
    _known: dict[str, dict[str, Any]] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )
    _names: dict[str, str] = field(default_factory=dict, init=False, repr=False, compare=False)

    @classmethod
    def read(cls, path: Path, name: str | None = None) -> SynthesizedStack:
        """Read a template such as ``cdk.out/Shop.template.json`` and the assets beside it.

        Its assets include those of stages in the same app, because a pipeline of the CDK names them
        too.
        """
        return cls(name or path.name.partition(".")[0], Template.read(path), list(_manifests(path)))

    # What is known before a deployment.

    def properties(self, logical_id: str) -> dict[str, Any]:
        """Return the properties of a resource without intrinsic functions."""
        if logical_id not in self._complete:
            given = self.template.resources[logical_id].properties
            try:
                with self._located(logical_id):
                    found = self._placeholders.evaluator.evaluate(given)
            except TemplateError as error:
                raise TemplateError(f"{self.name}/{logical_id}: {error}") from None
            self._complete[logical_id] = self._checked(logical_id, found)
        return self._complete[logical_id]

    def known_properties(self, logical_id: str) -> dict[str, Any]:
        """Return the properties of a resource; what is known only at deployment is as declared."""
        if logical_id not in self._known:
            given = self.template.resources[logical_id].properties
            with self._located(logical_id):
                found = self._placeholders.evaluator.evaluate_known(given)
            self._known[logical_id] = self._checked(logical_id, found)
        return self._known[logical_id]

    def _checked(self, logical_id: str, properties: Any) -> dict[str, Any]:
        shape = PROPERTIES.get(self.template.resources[logical_id].type, {})
        check_shape(
            properties,
            shape,
            f"{self.name}/{logical_id}",
            "write it as in CloudFormation's reference",
        )
        return {name: value for name, value in properties.items() if value is not None}

    def name_of(self, logical_id: str) -> str:
        """Return the name of a resource: that of the template, else the logical ID."""
        if logical_id not in self._names:
            with self._located(logical_id):
                self._names[logical_id] = self._placeholders.name_of(logical_id)
        return self._names[logical_id]

    def output(self, name: str) -> Any:
        """Return the value of an output."""
        return self._placeholders.evaluator.evaluate_known(self.template.outputs[name].get("Value"))

    def exports(self) -> dict[str, str]:
        """Return the outputs that other stacks can import, by the name of their export."""
        exported = {
            name: each["Export"] for name, each in self.template.outputs.items() if "Export" in each
        }
        evaluate = self._placeholders.evaluator.evaluate_known
        return {str(evaluate(each["Name"])): name for name, each in exported.items()}

    def created(self, *types: str) -> list[str]:
        """Return the logical IDs of the resources of these types,
        without those of a false condition.
        """
        with self._located(types[0]):
            self.budget.spend(len(self.template.resources))
        return [
            name
            for name, each in self.template.resources_of_type(*types).items()
            if self._exists(each)
        ]

    def existing(self) -> dict[str, Resource]:
        """Return the resources without those of a false condition, in the declared order."""
        self.budget.spend(len(self.template.resources))
        return {name: each for name, each in self.template.resources.items() if self._exists(each)}

    @cached_property
    def _placeholders(self) -> Placeholders:
        return Placeholders(
            self.template,
            self.name,
            self.region,
            self.account,
            self.parameters,
            self.outputs,
            self.budget,
        )

    def _exists(self, resource: Resource) -> bool:
        if resource.condition is None:
            return True
        try:
            with self._located(resource.logical_id):
                return self._placeholders.evaluator.condition(resource.condition)
        except TemplateError:
            return True  # decided by a parameter without a default

    @contextmanager
    def _located(self, place: str) -> Iterator[None]:
        """Name the resource or type in the error of a template that takes too much work."""
        try:
            yield
        except TemplateBudgetError as error:
            raise TemplateBudgetError(f"{self.name}/{place}: {error}") from None

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
        """The files that are uploaded, by their object keys."""
        found = {}
        for asset in self.file_assets():
            if asset.path is None:
                continue
            for destination in asset.destinations.values():
                found[destination["objectKey"]] = asset.path
        self.budget.spend(len(found))  # many stacks can share one manifest
        return found

    def nested(
        self, directory: Path, read: Callable[[Path], Template], outer: frozenset[str] = frozenset()
    ) -> Iterator[SynthesizedStack]:
        """Yield its nested stacks, and theirs; ``directory`` is the folder of their templates.

        ``read`` returns the template in a file. ``outer`` are the templates that they are nested
        in. A nested stack whose template is not in the cloud assembly is left out.
        """
        for logical_id in self.created(NESTED_STACK_TYPE):
            file = self.nested_template(logical_id)
            if file is None:
                continue
            if file in outer:
                raise TemplateError(
                    f"{self.name}/{logical_id}: the nested stack contains itself; {_HINT}"
                )
            given = self.known_properties(logical_id).get("Parameters") or {}
            stack = replace(
                self,
                name=f"{self.name}/{logical_id}",
                template=read(directory / file),
                parameters={
                    name: each for name, each in given.items() if not isinstance(each, dict)
                },
                names=self.names | {f"{self.name}/{logical_id}"},
            )
            yield stack
            yield from stack.nested(directory, read, outer | {file})

    def nested_template(self, logical_id: str) -> str | None:
        """Return the file with the template of a nested stack.

        ``None`` if the cloud assembly has none, as of a template that is only in S3.

        The ``cdk`` command line writes it into the metadata of the resource. An app that runs
        without the command line, as in a test, has only the address of the template in S3.
        """
        file = self.template.resources[logical_id].metadata.get("aws:asset:path")
        if file is not None:
            return str(file)

        address = self.known_properties(logical_id).get("TemplateURL")
        if not isinstance(address, str):
            return None
        # The key may have a prefix, so it is one or more of the last parts of the address.
        parts = address.split("/")
        for first in range(len(parts) - 1, 0, -1):
            asset = self.asset("/".join(parts[first:]))
            if asset is not None:
                return str(asset.absolute())
        return None


def _manifests(template: Path) -> Iterator[AssetManifest]:
    """Yield the manifest that contains the template, and those of stages below its folder.

    A nested stack is in the manifest of its parent.
    """
    for path in sorted(template.parent.glob("*.assets.json")):
        manifest = AssetManifest.read(path)
        if any(
            each.path is not None and each.path.name == template.name for each in manifest.files()
        ):
            yield manifest
    for path in sorted(template.parent.glob("*/*.assets.json")):
        yield AssetManifest.read(path)
