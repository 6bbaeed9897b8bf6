"""Archives as file assets of a stack, under object keys that end in ``.tar.gz``.

CDK's own ``Asset`` hashes the file again and names it ``<hash>.gz``, which SageMaker refuses. The synthesizer
takes our digest instead: a source hash of ``<digest>.tar`` and a file name ending in ``.gz`` give the key.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from aws_cdk import Aws, FileAssetPackaging, Stack, Stage
from constructs import Construct

from constructs_triton.model_repository import Archive, ModelRepository, pack

__all__ = ["ModelArchive", "pack_into_assembly", "publish"]


@dataclass(frozen=True, slots=True)
class ModelArchive:
    """An archive that the CDK uploads: where it will lie, and what it holds.

    ``unpacked_size_bytes`` is what an instance needs on its disk for it. ``model_names`` are the models
    inside; the first is the one that is asked for: an ensemble, or the only model.
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
        """The ARN a policy names to allow exactly this archive."""
        return f"arn:{Aws.PARTITION}:s3:::{self.bucket_name}/{self.object_key}"


def pack_into_assembly(scope: Construct, repository: ModelRepository, model_name: str) -> Archive:
    """Pack a model with all it needs into the cloud assembly, where its content names it."""
    return pack(repository, repository.closure(model_name), _asset_directory(scope))


def publish(scope: Construct, archive: Archive, model_names: tuple[str, ...]) -> ModelArchive:
    """Make the archive a file asset of the stack that ``scope`` is in."""
    stage = Stage.of(scope)
    assert stage is not None  # _asset_directory has seen one
    location = Stack.of(scope).synthesizer.add_file_asset(
        source_hash=f"{archive.digest}.tar",
        packaging=FileAssetPackaging.FILE,
        # Relative, so that the assembly may be moved between synth and deploy.
        file_name=os.path.relpath(archive.path, stage.outdir),
        display_name=f"Model archive {model_names[0]}",
    )
    return ModelArchive(
        bucket_name=location.bucket_name,
        object_key=location.object_key,
        digest=archive.digest,
        size_bytes=archive.size_bytes,
        unpacked_size_bytes=archive.unpacked_size_bytes,
        model_names=model_names,
    )


def _asset_directory(scope: Construct) -> Path:
    stage = Stage.of(scope)
    if stage is None:
        raise RuntimeError(f"{scope.node.path} is in no App or Stage")  # CDK itself would fail later
    return Path(stage.asset_outdir)
