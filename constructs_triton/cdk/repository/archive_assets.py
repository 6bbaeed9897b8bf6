"""Archives as file assets of a stack, with object keys that end in ``.tar.gz``.

CDK's ``Asset`` hashes the file again and names it ``<hash>.gz``, which SageMaker refuses. The
synthesizer accepts our digest instead: a source hash of ``<digest>.tar`` and a file name ending in
``.gz`` give the key.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, NamedTuple

import jsii
from aws_cdk import (
    Aws,
    BootstraplessSynthesizer,
    FileAssetPackaging,
    FileAssetSource,
    IStackSynthesizer,
    LegacyStackSynthesizer,
    NestedStack,
    Stack,
    Stage,
)
from constructs import Construct

from constructs_triton_core.errors import InvalidValueError
from constructs_triton_core.untrusted.written_files import write_whole

if TYPE_CHECKING:
    from triton_model_check.model_repository.packing import PackedArchive

# The beginnings of the names that the CDK shows of an asset.
ARCHIVE_LABEL = "Model archive "
FILE_LABEL = "Model file "
LIST_LABEL = "List of model archives of "
FILE_LIST_LABEL = "List of model files of "
SMALL_FILES_LABEL = "Small model files of "
REQUESTS_LABEL = "Recorded requests of "
# Raised inside the CDK's JavaScript, so that the message is all that jsii passes on of it.
_NOT_BOUND = "must be bound to a Stack first"


@dataclass(frozen=True, slots=True)
class ArchiveAsset:
    """An archive that the CDK uploads: its place in S3 and its content.

    ``unpacked_size_bytes`` is the disk space that it needs on an instance. The first of
    ``model_names`` is the one to request: an ensemble, or the only model.
    """

    bucket_name: str
    object_key: str
    digest: str
    size_bytes: int
    unpacked_size_bytes: int
    model_names: tuple[str, ...]

    @property
    def model_data_url(self) -> str:
        """``s3://<bucket>/<digest>.tar.gz``."""
        return f"s3://{self.bucket_name}/{self.object_key}"

    @property
    def object_arn(self) -> str:
        """The ARN of the archive, for policies."""
        return f"arn:{Aws.PARTITION}:s3:::{self.bucket_name}/{self.object_key}"


class AssetLocation(NamedTuple):
    """The place of an asset in S3."""

    bucket_name: str
    object_key: str


class StackAssets:
    """The file assets of the stack that ``scope`` is in.

    A call to the CDK costs up to a millisecond, so properties that all files share are read once.
    Files are placed in ``directory`` before they are added.
    """

    def __init__(self, scope: Construct) -> None:
        self._stack = Stack.of(scope)
        self._synthesizer = self._stack.synthesizer
        _refuse_without_keys(self._synthesizer)
        stage = _stage(scope)
        self._outdir = stage.outdir
        self.directory = Path(stage.asset_outdir)

    def add_archive(self, archive: PackedArchive, model_names: tuple[str, ...]) -> ArchiveAsset:
        """Add an archive, which the CDK uploads."""
        location = self.add_file(
            archive.path, f"{archive.digest}.tar", f"{ARCHIVE_LABEL}{model_names[0]}"
        )
        return ArchiveAsset(
            bucket_name=location.bucket_name,
            object_key=location.object_key,
            digest=archive.digest,
            size_bytes=archive.size_bytes,
            unpacked_size_bytes=archive.unpacked_size_bytes,
            model_names=model_names,
        )

    def add_file(self, path: Path, source_hash: str, display_name: str) -> AssetLocation:
        """Add a file of the cloud assembly, which the CDK uploads as ``<source_hash>``
        with its ending.
        """
        # Relative, so the cloud assembly may be moved between synthesis and deployment.
        source = FileAssetSource(
            source_hash=source_hash,
            packaging=FileAssetPackaging.FILE,
            file_name=os.path.relpath(path, self._outdir),
            display_name=display_name,
        )
        try:
            return _add_file_asset(self._synthesizer, source)
        except RuntimeError as error:
            if _NOT_BOUND not in str(error):
                raise

        self._synthesizer = _bound_synthesizer(self._stack)
        return _add_file_asset(self._synthesizer, source)

    def add_json(self, text: str, digest: str, display_name: str) -> AssetLocation:
        """Add the string ``text``, which the CDK uploads as ``<digest>.json``."""
        path = self.directory / f"{digest}.json"
        write_whole(path, text)
        return self.add_file(path, digest, display_name)


def _add_file_asset(synthesizer: IStackSynthesizer, source: FileAssetSource) -> AssetLocation:
    """Add an asset, and read only the two properties of its location that are needed.

    ``add_file_asset`` reads all six, with a call to the CDK each: for a thousand archives, more
    than half of all calls. The undecorated ``jsii.invoke`` returns the location without reading it.
    """
    kernel = getattr(jsii.invoke, "__self__", None)
    undecorated_invoke = getattr(jsii.invoke, "__wrapped__", None)
    is_class_of_cdk = type(synthesizer).__module__.startswith("aws_cdk")
    if undecorated_invoke is None or not is_class_of_cdk:
        location = synthesizer.add_file_asset(
            source_hash=source.source_hash,
            packaging=source.packaging,
            file_name=source.file_name,
            display_name=source.display_name,
        )
        return AssetLocation(location.bucket_name, location.object_key)

    reference = undecorated_invoke(kernel, synthesizer, "addFileAsset", [source])
    unread_location = SimpleNamespace(__jsii_ref__=reference)
    return AssetLocation(
        bucket_name=jsii.get(unread_location, "bucketName"),
        object_key=jsii.get(unread_location, "objectKey"),
    )


def label_of(label: str, construct: Construct) -> str:
    """Return the name that the CDK shows of an asset:
    ``label`` and the construct's path in its stack.
    """
    stack_path = Stack.of(construct).node.path
    path_in_stack = construct.node.path.removeprefix(f"{stack_path}/")
    return f"{label}{path_in_stack}"


def _bound_synthesizer(stack: Stack) -> IStackSynthesizer:
    """Return a synthesizer that adds assets to the stack, if ``stack.synthesizer`` cannot.

    A stack binds a copy of the synthesizer that it is given. In Python, ``stack.synthesizer`` is
    the given object and not the copy, because jsii does not tell the two apart. The object belongs
    to no stack, so it raises an error. The synthesizer of a nested stack refers to the copy, so a
    nested stack is created for its synthesizer and removed again.
    """
    name = "ConstructsTritonSynthesizer"
    synthesizer = NestedStack(stack, name).synthesizer
    for child in (name, f"{name}.NestedStack"):
        stack.node.try_remove_child(child)
    return synthesizer


def _refuse_without_keys(synthesizer: IStackSynthesizer) -> None:
    """Refuse a synthesizer that does not let its caller decide the object key of an asset.

    Raises:
        InvalidValueError: the synthesizer is one of these.
    """
    if isinstance(synthesizer, BootstraplessSynthesizer | LegacyStackSynthesizer):
        raise InvalidValueError(
            "synthesizer: cannot upload archives with keys that end in .tar.gz, got "
            f"{type(synthesizer).__name__}; use DefaultStackSynthesizer or "
            "CliCredentialsStackSynthesizer"
        )


def asset_directory(scope: Construct) -> Path:
    """Return the folder of the cloud assembly that contains the assets."""
    return Path(_stage(scope).asset_outdir)


def _stage(scope: Construct) -> Stage:
    """Return the ``App`` or ``Stage`` of a construct, without which the CDK fails later."""
    stage = Stage.of(scope)
    if stage is None:
        raise RuntimeError(f"{scope.node.path} is in no App or Stage")
    return stage
