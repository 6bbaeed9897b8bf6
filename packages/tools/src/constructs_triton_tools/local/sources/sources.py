"""Reads what ``local up`` runs: a cloud assembly, a model repository, or archives."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path

from constructs_triton_core.errors import LocalEndpointError, RepositoryError
from constructs_triton_core.model_index import INDEX_FILE, ModelIndex
from constructs_triton_tools.local.sources.assembly import read_endpoints
from constructs_triton_tools.local.sources.inference_type import INFERENCE_TYPE, is_decoupled
from constructs_triton_tools.local.sources.specs import ContainerSpec, EndpointSpec, VariantSpec
from triton_model_check.artifacts.environments.placement import as_packed
from triton_model_check.model_config.target import OTHER_NAME, Target
from triton_model_check.model_repository import ModelRepository, pack
from triton_model_check.model_repository.archive_inspection import inspect_archive
from triton_model_check.model_repository.composition import CompositionOptions

_SUFFIX = ".tar.gz"
_MODEL_FILES = (".onnx", ".pt", ".plan")
_DEFAULT_MODEL = "SAGEMAKER_TRITON_DEFAULT_MODEL_NAME"
_ADDITIONAL_ARGS = "SAGEMAKER_TRITON_ADDITIONAL_ARGS"
#: The variant name of the constructs, and of most SageMaker examples.
_VARIANT = "AllTraffic"


def read_source(
    path: Path,
    scratch: Path,
    *,
    stack: str | None = None,
    endpoint: str | None = None,
    model: str | None = None,
    is_multi_model: bool = False,
    calls: Mapping[str, Sequence[str]] | None = None,
) -> tuple[EndpointSpec, ...]:
    """Read the endpoints of a folder that ``cdk synth`` wrote, a model repository, or an archive.

    A repository or an archive becomes one endpoint with the name ``endpoint`` (default: the name of
    the file or folder). ``model`` is its default model. With ``is_multi_model`` each top-level
    model of a repository becomes an archive, and a folder of archives takes the place of the S3
    prefix. ``calls`` are the models that models of a repository call, by the caller. Archives are
    packed into ``scratch``.

    Raises:
        LocalEndpointError: ``path`` is none of these, or an option does not apply to it.
        RepositoryError: the models have errors.
    """
    if calls and (path.is_file() or (path / "manifest.json").is_file()):
        raise LocalEndpointError(
            f"{path}: --called-models applies only to a model repository; remove it"
        )
    if path.is_file():
        if stack is not None:
            raise _stray_option("--stack", path)
        return (_endpoint_of_archive(path, endpoint, model, is_multi_model),)
    if not path.exists():
        raise LocalEndpointError(
            f"{path}: does not exist; run `npx cdk synth`, or pass the path of a cloud assembly, a "
            "model repository or an archive"
        )
    if (path / "manifest.json").is_file():
        if model is not None or is_multi_model:
            raise LocalEndpointError(
                f"{path}: --model and --multi-model do not apply to a cloud assembly, whose "
                "template defines both; remove them"
            )
        return read_endpoints(path, stack=stack, endpoint=endpoint)
    if stack is not None:
        raise _stray_option("--stack", path)
    return (_endpoint_of_folder(path, scratch, endpoint, model, is_multi_model, calls=calls or {}),)


def _stray_option(option: str, path: Path) -> LocalEndpointError:
    return LocalEndpointError(f"{path}: {option} applies only to a cloud assembly; remove it")


def _endpoint_of_archive(
    path: Path, name: str | None, model: str | None, is_multi_model: bool
) -> EndpointSpec:
    if path.suffix in _MODEL_FILES:
        raise LocalEndpointError(
            f"{path}: is a model file; run `constructs-triton model new {shlex.quote(str(path))}`, "
            "then pass the folder models"
        )
    if not path.name.endswith(_SUFFIX):
        raise LocalEndpointError(
            f"{path}: is not an archive; pass a {_SUFFIX} file, a folder of models or cdk.out"
        )
    name = name or _endpoint_name(path.name.removesuffix(_SUFFIX))
    if is_multi_model:
        _refuse_default_model(path.parent, model)
        return _multi_model(name, {path.name: path}, {})
    models = inspect_archive(path).models
    if model is None and len(models) > 1:
        raise LocalEndpointError(
            f"{path}: contains several models, got {', '.join(models)}; choose one with --model"
        )
    return _single_model(name, path, model or models[0])


def _endpoint_of_folder(
    path: Path,
    scratch: Path,
    name: str | None,
    model: str | None,
    is_multi_model: bool,
    *,
    calls: Mapping[str, Sequence[str]],
) -> EndpointSpec:
    name = name or _endpoint_name(path.resolve().name)
    if is_multi_model:
        _refuse_default_model(path, model)
        found = () if _has_models(path) else sorted(path.rglob(f"*{_SUFFIX}"))
        archives = {str(file.relative_to(path)): file for file in found}
        if archives:
            return _multi_model(name, archives, _names_below(path))
        packed = _pack_each(_checked(path, calls, is_multi_model=True), scratch)
        archives = {f"{model}{_SUFFIX}": archive for model, archive in packed.items()}
        names = {model: f"{model}{_SUFFIX}" for model in packed}
        return _multi_model(name, archives, names, source=path)
    repository = _checked(path, calls)
    model = model or _only_model(repository, path)
    archive = pack(repository, repository.closure(model), scratch, archive_name=f"model{_SUFFIX}")
    called = repository.called_models(model)
    is_streamed = is_decoupled(path, model)
    return _single_model(name, archive.path, model, called, is_streamed=is_streamed, source=path)


def _has_models(path: Path) -> bool:
    """Return whether the folder is a repository.

    A model may contain archives, such as an environment.
    """
    models = ModelRepository.from_directory(path).models.values()
    return any(model.has_config or model.version_directories for model in models)


def _checked(
    path: Path, calls: Mapping[str, Sequence[str]], *, is_multi_model: bool = False
) -> ModelRepository:
    """Return the repository as it is packed."""
    repository = ModelRepository.from_directory(path)
    if not repository.models and any(path.rglob(f"*{_SUFFIX}")):
        raise LocalEndpointError(
            f"{path}: contains archives and no models; "
            "serve them with --multi-model, or pass one of them"
        )
    if not repository.models and (path / "config.pbtxt").exists():
        raise LocalEndpointError(
            f"{path}: is itself a model; pass its parent folder {path.resolve().parent}"
        )
    if not repository.models:
        raise LocalEndpointError(
            f"{path}: contains neither a cloud assembly nor a model; run `npx cdk synth`, or pass "
            "a folder with one subfolder per model"
        )
    repository.compose(CompositionOptions.of(calls))
    placed = as_packed(repository)
    errors = placed.errors_after_packing(placed.check(Target("server", onnx_runtime="auto")))
    if is_multi_model:
        errors = tuple(error for error in errors if error.code != OTHER_NAME)
    if errors:
        raise RepositoryError(str(path), errors)
    return placed


def _refuse_spaces(path: Path, model: str) -> None:
    """The start script of the image does not quote the name, and the server gets its second word as
    an argument.
    """
    if " " in model:
        raise LocalEndpointError(
            f'{path}: the name of the model contains a space, got "{model}"; rename its '
            "folder without spaces"
        )


def _only_model(repository: ModelRepository, path: Path) -> str:
    names = repository.top_level_models()
    if len(names) != 1:
        raise LocalEndpointError(
            f"{path}: must have one top-level model, got {', '.join(names) or 'none'}; choose "
            "one with --model, or serve all with --multi-model"
        )
    return names[0]


def _names_below(path: Path) -> Mapping[str, str]:
    """Return the names of a folder of archives, which are in its index as in S3;
    none without an index.
    """
    index = path / INDEX_FILE
    if not index.is_file():
        return {}
    return ModelIndex.from_json(index.read_bytes(), str(index)).target_models


def _pack_each(repository: ModelRepository, scratch: Path) -> dict[str, Path]:
    """Return the archive of each top-level model, by the model's name."""
    return {
        name: pack(
            repository, repository.closure(name), scratch, archive_name=f"{name}{_SUFFIX}"
        ).path
        for name in repository.top_level_models()
    }


def _single_model(
    name: str,
    archive: Path,
    model: str,
    called: Sequence[str] = (),
    *,
    is_streamed: bool = False,
    source: Path | None = None,
) -> EndpointSpec:
    _refuse_spaces(source or archive, model)
    environment = {_DEFAULT_MODEL: model}
    if called:  # as the constructs set it
        environment[_ADDITIONAL_ARGS] = " ".join(
            f"--load-model={called_model}" for called_model in called
        )
    if is_streamed:  # there is no template that says otherwise, and infer cannot answer
        environment[INFERENCE_TYPE] = "generate_stream"
    container = ContainerSpec(
        model, "", archive.resolve().as_uri(), environment, archive, source=source
    )
    return _endpoint(name, container)


def _refuse_default_model(folder: Path, model: str | None) -> None:
    if model is not None:
        raise LocalEndpointError(
            f"{folder}: a multi-model endpoint has no default model, got --model {model}; "
            "remove it, callers choose a model with TargetModel"
        )


def _multi_model(
    name: str, archives: Mapping[str, Path], names: Mapping[str, str], *, source: Path | None = None
) -> EndpointSpec:
    # As the constructs set it: otherwise one model that does not load makes /ping fail permanently.
    environment = {"SAGEMAKER_TRITON_PING_MODE": "live"}
    indexed = {name: names} if names else {}
    url = f"s3://local/{name}/"
    container = ContainerSpec(
        name, "", url, environment, archives=archives, indexed=indexed, source=source
    )
    return _endpoint(name, container)


def _endpoint(name: str, container: ContainerSpec) -> EndpointSpec:
    return EndpointSpec(name=name, stack="", variants=(VariantSpec(_VARIANT, container),))


def _endpoint_name(text: str) -> str:
    """Return a name that SageMaker accepts: letters, digits and hyphens, at most 63 characters."""
    return re.sub(r"[^0-9A-Za-z]+", "-", text).strip("-")[:63].rstrip("-") or "local"
