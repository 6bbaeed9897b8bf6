"""The endpoints of a template that run locally, as plain values."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from constructs_triton_core.cloud_assembly.placeholders import (
    PLACEHOLDER_ACCOUNT,
    PLACEHOLDER_REGION,
)
from constructs_triton_core.errors import LocalEndpointError
from constructs_triton_functions.model_sync.manifest import FileManifest, ListedFile
from constructs_triton_tools.local.sources.role_permissions import RolePermissions
from triton_model_check.model_repository.uncompressed.names import name_problems

FindAsset = Callable[[str, str], Path]
"""Returns the file of an asset by its object key; the second string is what needs it,
for messages.
"""


@dataclass(frozen=True, slots=True)
class FileContent:
    """The content of a file: ``size_bytes`` bytes from ``offset`` of ``path``.

    Without a size, all of it.
    """

    path: Path
    offset: int = 0
    size_bytes: int | None = None


def file_content(file: ListedFile, manifest: FileManifest, find_asset: FindAsset) -> FileContent:
    """Return where the content of a file of a manifest is: in an asset of its own,
    or in the zip.
    """
    if file.source_key is not None:
        return FileContent(find_asset(file.source_key, file.path))
    assert manifest.zip_key is not None
    return FileContent(find_asset(manifest.zip_key, file.path), file.offset, file.size_bytes)


def check_names(url: str, paths: Mapping[str, object]) -> None:
    """Check the paths of files below a prefix by SageMaker's rules."""
    problems = name_problems(paths)
    if problems:
        raise LocalEndpointError("\n".join(f"{url}: {problem}" for problem in problems))


@dataclass(frozen=True, slots=True)
class ContainerSpec:
    """The container of a model.

    ``archive`` is the ``.tar.gz`` of a single-model container. ``archives`` are those of a
    multi-model container, by ``TargetModel``. ``model_data_url`` is the URL in the template. For a
    deployed container ``fetch_archive`` downloads the archive of a target model, and returns
    ``None`` if there is none.
    """

    model: str
    image: str
    model_data_url: str
    environment: Mapping[str, str] = field(default_factory=dict)
    archive: Path | None = None
    #: The files of a single-model container without an archive, by their paths below
    #: ``/opt/ml/model``.
    files: Mapping[str, FileContent] | None = None
    archives: Mapping[str, Path] = field(default_factory=dict)
    #: The names in ``index.json`` and their target models, by the resource that copies the
    #: archives.
    indexed: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    #: ``Disabled``: a multi-model container unloads a model after each call.
    model_cache_setting: str = "Enabled"
    fetch_archive: Callable[[str], Path | None] | None = None
    #: The folder in place of the prefix, below the folder in place of S3. It is read at each call.
    archive_folder: Path | None = None
    #: Whether the model has network isolation: no network, inbound or outbound.
    is_isolated: bool = False
    #: The user's folder of models that the archives were packed from, if it is known.
    source: Path | None = None
    #: The variables whose values the template does not contain.
    secrets: frozenset[str] = frozenset()

    @property
    def is_multi_model(self) -> bool:
        """Whether models are loaded on their first call and chosen by ``TargetModel``."""
        return self.archive is None and self.files is None


@dataclass(frozen=True, slots=True)
class VariantSpec:
    """A production or shadow variant. ``weight`` is its share of the traffic relative to the
    others.

    ``instance_types`` are the types that it may run on, in order of priority.
    """

    name: str
    container: ContainerSpec
    weight: float = 1.0
    instance_types: Sequence[str] = ()
    startup_timeout_seconds: int | None = None


@dataclass(frozen=True, slots=True)
class ComponentSpec(VariantSpec):
    """An inference component, which has a server of its own as a variant has. ``name`` is the
    component's.

    ``variant_name`` is the variant whose instances run it. With ``starts_at_zero`` it has no copies
    until it is called.
    """

    variant_name: str = "AllTraffic"
    starts_at_zero: bool = False


@dataclass(frozen=True, slots=True)
class AsyncInferenceSpec:
    """The S3 prefixes of an asynchronous endpoint, and how many requests run at the same time.

    ``permissions`` are those of its execution role. ``None``: they are not known, so that all are
    granted.
    """

    output_path: str
    failure_path: str | None = None
    max_concurrent_invocations: int = 4
    permissions: RolePermissions | None = None

    @classmethod
    def of(cls, config: Mapping[str, Any]) -> AsyncInferenceSpec | None:
        """Read an endpoint configuration; ``None`` if its endpoint answers immediately."""
        asynchronous = config.get("AsyncInferenceConfig")
        if not asynchronous:
            return None
        output = asynchronous.get("OutputConfig", {})
        together = asynchronous.get("ClientConfig", {}).get("MaxConcurrentInvocationsPerInstance")
        spec = cls(output.get("S3OutputPath", ""), output.get("S3FailurePath"))
        return replace(spec, max_concurrent_invocations=int(together)) if together else spec

    @property
    def input_prefix(self) -> str:
        """A prefix of the output's bucket whose objects the endpoint can read."""
        bucket = f"s3://{self.output_path.removeprefix('s3://').partition('/')[0]}/"
        readable = (
            [] if self.permissions is None else self.permissions.allowed_prefixes("s3:GetObject")
        )
        return next(
            (location for location in readable if location.startswith(bucket)),
            f"{bucket}async/input/",
        )


@dataclass(frozen=True, slots=True)
class EndpointSpec:
    """An endpoint. ``name`` is its ``EndpointName``.

    An endpoint has either ``variants`` or ``components``. ``not_run`` are the names of components
    whose container is not Triton.
    """

    name: str
    stack: str
    variants: tuple[VariantSpec, ...]
    shadow_variants: tuple[VariantSpec, ...] = ()
    region: str = PLACEHOLDER_REGION
    account: str = PLACEHOLDER_ACCOUNT
    asynchronous: AsyncInferenceSpec | None = None
    components: tuple[ComponentSpec, ...] = ()
    not_run: tuple[str, ...] = ()


def variants_of(specs: Sequence[EndpointSpec]) -> list[tuple[EndpointSpec, VariantSpec]]:
    """Return everything that has a server of its own, with its endpoint: variants,
    shadows, components.
    """
    pairs: list[tuple[EndpointSpec, VariantSpec]] = []
    for spec in specs:
        served = (*spec.variants, *spec.shadow_variants, *spec.components)
        pairs += ((spec, variant) for variant in served)
    return pairs


def label_of(spec: EndpointSpec, variant: VariantSpec) -> str:
    """Return the name of a variant or component in messages: ``endpoint/variant``."""
    return f"{spec.name}/{variant.name}"
