"""Names of a stack's assets that stay the same when their content changes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from constructs_triton.cdk.permissions.role_permissions import REPLACED_WITH_ITS_STATEMENTS
from constructs_triton.cdk.repository.archive_assets import (
    ARCHIVE_LABEL,
    FILE_LABEL,
    FILE_LIST_LABEL,
    LIST_LABEL,
    REQUESTS_LABEL,
    SMALL_FILES_LABEL,
)
from constructs_triton_core.cloud_assembly.synthesized_stack import SynthesizedStack
from constructs_triton_functions.model_sync import FILES_RESOURCE_TYPE
from constructs_triton_functions.model_sync.manifest import content_name

_LABELS = {
    ARCHIVE_LABEL: "archive",
    FILE_LABEL: "file",
    SMALL_FILES_LABEL: "files",
    LIST_LABEL: "manifest",
    FILE_LIST_LABEL: "manifest",
    REQUESTS_LABEL: "requests",
}
#: What the CDK appends to the path of the construct that an asset belongs to.
_CDK_ENDINGS = re.compile(r"(/Resource)?/(Code|Asset\d*|AssetImage|Content|Stage)$")
_TEMPLATE = " Template"
# Their content follows from the rest of the template or of the assets.
_DERIVED = ("manifest", "template")
#: The CDK appends a digest to the logical IDs of Lambda versions and of deployments of API Gateway.
_LOGICAL_ID_DIGEST = re.compile(r"[0-9a-f]{32}$")
#: The CDK appends a digest to the names of the places to which it uploads an asset.
_PLACE_DIGEST = re.compile(r"-[0-9a-f]{8}$")
_NO_STRING = "(?!)"
#: Properties with the address of a template: of nested stacks, of stack sets, and of products of
#: Service Catalog. The digest in it is all that a test sees of the template.
_TEMPLATE_ADDRESSES = ("TemplateURL", "LoadTemplateFromURL")
_STATEMENTS = re.compile(f"({re.escape(REPLACED_WITH_ITS_STATEMENTS)})[0-9a-f]+")


@dataclass(frozen=True)
class StableNames:
    """What replaces the digests in the strings of a template.

    ``digests`` has the digest of the content of each asset by its name.
    """

    by_text: Mapping[str, str]
    digests: Mapping[str, str]

    @classmethod
    def of(cls, stack: SynthesizedStack) -> StableNames:
        """Return the names of the assets of a stack."""
        by_text = dict(_shortened_places(stack))
        digests: dict[str, str] = {}
        for name, key in _named_assets(stack):
            shown = f"<{name}>"
            digest = key.partition(".")[0]
            by_text[key] = shown
            by_text[digest] = shown
            if name.startswith("archive:"):  # as in a TargetModel, "digits-3f9c2a1b.tar.gz"
                by_text[content_name("", digest)] = content_name("", "<digest>")
            if not name.startswith(_DERIVED):
                digests[shown] = digest
        by_text |= dict.fromkeys(_digests_of_resources(stack), "<digest>")
        return cls(by_text, digests)

    def replace(self, value: Any) -> Any:
        """Return a value of a template in which strings and keys have stable names.

        The addresses of other templates are unchanged.
        """
        # A key contains its digest: the first alternative that matches must be the longest one.
        longest_first = sorted(self.by_text, key=len, reverse=True)
        pattern = "|".join(re.escape(text) for text in longest_first)
        return self._replace(value, re.compile(pattern or _NO_STRING))

    def _replace(self, value: Any, pattern: re.Pattern[str]) -> Any:
        match value:
            case str():
                named = pattern.sub(lambda found: self.by_text[found[0]], value)
                return _STATEMENTS.sub(r"\1<digest>", named)
            case list():
                return [self._replace(item, pattern) for item in value]
            case dict():
                replaced = {}
                for key, member in value.items():
                    name = self._replace(key, pattern)
                    is_address = key in _TEMPLATE_ADDRESSES
                    replaced[name] = member if is_address else self._replace(member, pattern)
                return replaced
        return value


def _digests_of_resources(stack: SynthesizedStack) -> Iterator[str]:
    """Yield digests in logical IDs, and in the folders of models that are
    served without an archive.
    """
    for logical_id in stack.template.resources:
        if found := _LOGICAL_ID_DIGEST.search(logical_id):
            yield found[0]
    for resource in stack.template.resources_of_type(FILES_RESOURCE_TYPE).values():
        yield str(resource.properties["DestinationFolder"]).rstrip("/")


def _shortened_places(stack: SynthesizedStack) -> Iterator[tuple[str, str]]:
    """Yield the CDK's names of places, such as ``current_account-eu-west-1-94510497``,
    without a digest.
    """
    for asset in stack.file_assets():
        for place in asset.destinations:
            if found := _PLACE_DIGEST.search(place):
                yield place, f"{place[: found.start()]}-<digest>"


def _named_assets(stack: SynthesizedStack) -> Iterator[tuple[str, str]]:
    """Yield a unique name for each object key and image tag;
    the stages of an app may share an asset.
    """
    keys_of: dict[str, list[str]] = {}
    for name, key in (*_labeled_files(stack), *_labeled_images(stack)):
        keys = keys_of.setdefault(name, [])
        if key not in keys:
            keys.append(key)
        number = keys.index(key) + 1
        yield (name if number == 1 else f"{name} {number}"), key


def _labeled_files(stack: SynthesizedStack) -> Iterator[tuple[str, str]]:
    """Yield the name and the object key of each file asset; a name may occur several times."""
    for asset in stack.file_assets():
        for place in asset.destinations.values():
            yield _name(asset.display_name), place["objectKey"]


def _labeled_images(stack: SynthesizedStack) -> Iterator[tuple[str, str]]:
    """Yield the name and the tag of each image asset; a name may occur several times."""
    for manifest in stack.manifests:
        for label, tags in manifest.images():
            for tag in tags:
                yield f"image:{_without_ending(label)}", tag


def _name(label: str) -> str:
    """Return the name of an asset, such as ``archive:digits``, by the label in its manifest."""
    for prefix, kind in _LABELS.items():
        if label.startswith(prefix):
            return f"{kind}:{label.removeprefix(prefix)}"
    if label.endswith(_TEMPLATE):
        return f"template:{label.removesuffix(_TEMPLATE)}"
    return f"asset:{_without_ending(label)}"


def _without_ending(label: str) -> str:
    return _CDK_ENDINGS.sub("", label)
