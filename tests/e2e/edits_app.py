"""Stacks with one endpoint each, in versions that differ in one edit, for rehearsals."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aws_cdk as cdk
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3
from constructs import Construct
from files_app import write_models
from files_states import State as Content

from constructs_triton import (
    InstanceType,
    ModelSource,
    TritonComponentEndpoint,
    TritonEndpoint,
    TritonImage,
    TritonInferenceComponent,
    TritonModelRepository,
    TritonMultiModelEndpoint,
    TritonVariant,
)


@dataclass(frozen=True)
class Version:
    """What one version of a stack has. ``serves`` says of which type its endpoint ``E`` is.

    ``options`` and ``models`` are properties of the endpoint and of the repository ``R``. In place
    of a resource they have the name of one that every version has: a key ``K``, a network or a
    bucket.
    """

    serves: str = "one"
    name: str = "E"
    label: int = 1
    image: str = "25.04"
    scaled_to: int | None = None
    variants: tuple[str, ...] = ()
    memory: int = 4
    keeps_counts: bool = False
    has_second: bool = False
    is_shared: bool = False
    """Whether the repository is in a stack ``Base``, which is deployed first."""
    has_reader: bool = True
    """Whether there is an endpoint."""
    options: dict[str, Any] = field(default_factory=dict)
    models: dict[str, Any] = field(default_factory=dict)


class _Edited(cdk.Stack):
    def __init__(
        self, scope: Construct, id: str, *, folder: Path, version: Version, base: cdk.Stack | None
    ) -> None:
        super().__init__(scope, id)
        self.version = version
        isolated = ec2.SubnetConfiguration(name="own", subnet_type=ec2.SubnetType.PRIVATE_ISOLATED)
        self.known: dict[str, Any] = {
            "K": kms.Key(self, "K"),
            "vpc": ec2.Vpc(self, "Vpc", nat_gateways=0, subnet_configuration=[isolated]),
            "bucket": s3.Bucket(self, "Own"),
        }
        scope = self if base is None else base
        self.repository = TritonModelRepository(
            scope, "R", source=ModelSource.from_directory(folder), **self._known(version.models)
        )
        {"component": self.add_component, "many": self.add_many}.get(version.serves, self.add_one)()

    def _known(self, options: dict[str, Any]) -> dict[str, Any]:
        return {name: self.known.get(str(value), value) for name, value in options.items()}

    def _options(self) -> dict[str, Any]:
        image = TritonImage.dlc(self.version.image)
        options = {"image": image, "instance_type": InstanceType.of("ml.c6i.xlarge")}
        return {"model_repository": self.repository, **options, **self._known(self.version.options)}

    def add_one(self) -> None:
        version = self.version
        if not version.has_reader:
            return
        variants = [TritonVariant(variant_name=name) for name in version.variants] or None
        endpoint = TritonEndpoint(
            self, version.name, model="adder", variants=variants, **self._options()
        )
        if version.scaled_to is not None:
            count = endpoint.variants[-1].auto_scale_instance_count(
                min_capacity=1, max_capacity=version.scaled_to
            )
            count.scale_on_cpu_utilization("Cpu", target_utilization_percent=60)
        if version.keeps_counts:
            endpoint.retain_instance_counts()
        if version.has_second:
            TritonEndpoint(self, "Second", model="adder", **self._options())

    def add_many(self) -> None:
        TritonMultiModelEndpoint(self, self.version.name, **self._options())

    def add_component(self) -> None:
        options = self._options()
        repository = options.pop("model_repository")
        host = TritonComponentEndpoint(
            self, "E", min_instance_count=1, max_instance_count=2, **options
        )
        TritonInferenceComponent(
            self,
            "C",
            endpoint=host,
            model_repository=repository,
            model="adder",
            min_memory=cdk.Size.gibibytes(self.version.memory),
        )


def synthesize(folder: Path, version: Version) -> Path:
    """Write the assembly of a version into a new folder."""
    models = write_models(folder / "models", Content(label=version.label))
    app = cdk.App(outdir=str(folder / "cdk.out"), builtin_cloud_formation_validation=False)
    base = cdk.Stack(app, "Base") if version.is_shared else None
    _Edited(app, "Edited", folder=models, version=version, base=base)
    app.synth()
    return folder / "cdk.out"
