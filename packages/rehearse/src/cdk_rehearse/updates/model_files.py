"""Which files each model of an endpoint consists of in the simulated account."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from constructs_triton_core.errors import InvalidValueError
from constructs_triton_core.model_index import INDEX_FILE, ModelIndex, is_archive

from ..account import SimulatedAccount
from ..moto_account.backends import objects_of

__all__ = ["ModelFiles", "ServedModel", "contents_by_etag", "model_files", "target_models"]

_DEFAULT_MODEL = "SAGEMAKER_TRITON_DEFAULT_MODEL_NAME"
_ARCHIVE = "model.tar.gz"


class ServedModel(NamedTuple):
    """A model that callers can name, by the path of names that lead to it.

    ``part`` is the variant, with the component or the container if callers name one. ``model`` is
    the name of the model in a multi-model container, or else the one that Triton serves by default;
    empty if it is the only one.
    """

    endpoint: str
    part: str
    model: str


@dataclass(frozen=True)
class ModelFiles:
    """The ETag of each file of a model by its path; ``model.tar.gz`` alone if it is an archive."""

    etags: Mapping[str, str]


def model_files(account: SimulatedAccount) -> dict[ServedModel, ModelFiles | None]:
    """Return the files of each model that is served now.

    A model has ``None`` if the account does not contain its files: they are in a bucket that no
    stack creates and to which no asset is uploaded.
    """
    found: dict[ServedModel, ModelFiles | None] = {}
    for endpoint, part, container in _containers(account):
        for model, etags in _models_of(account, container):
            found[ServedModel(endpoint, part, model)] = ModelFiles(etags) if etags else None
    return found


def contents_by_etag(account: SimulatedAccount) -> dict[str, Any]:
    """Return all objects of the account by ETag.

    An object that was deleted from its bucket is still in the bucket of the assets it came from.
    """
    return {
        found.etag: found
        for bucket in account.api.backend("s3").buckets.values()
        for found in objects_of(bucket).values()
    }


def target_models(account: SimulatedAccount, url: str) -> Mapping[str, str]:
    """Return the archive of each model of a multi-model container, by the name that callers use:
    as in its index, or the archives themselves.
    """
    objects, prefix = _objects(account, url)
    try:
        return ModelIndex.from_json(objects[prefix + INDEX_FILE].value).target_models
    except (KeyError, InvalidValueError):  # there is no index, or it is damaged
        archives = [
            key.removeprefix(prefix)
            for key in objects
            if key.startswith(prefix) and is_archive(key)
        ]
        return {name: name for name in archives}


def _containers(account: SimulatedAccount) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    """Yield endpoint, part, and each container that callers reach."""
    backend = account.api.backend("sagemaker")
    for endpoint, running in backend.endpoints.items():
        config = backend.endpoint_configs.get(running.endpoint_config_name)
        if config is None:
            continue
        for variant in config.production_variants:
            model = backend.models.get(variant.get("ModelName"))
            for host, container in _containers_of(model):
                yield endpoint, _path(variant["VariantName"], host), container
        for component in account.components.of_endpoint(endpoint):
            for specification in component.specifications():
                model = backend.models.get(specification.get("ModelName"))
                for host, container in _containers_of(model):
                    yield endpoint, _path(component.name, host), container


def _path(*names: str) -> str:
    return "/".join(filter(None, names))


def _containers_of(model: Any) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the only container of a model, or those that callers name, with their host names.

    In a chain of containers, callers see the input of the first and the output of the last only.
    """
    if model is None:
        return
    if model.primary_container:
        yield "", model.primary_container
    elif model.kept_members.get("InferenceExecutionConfig", {}).get("Mode") == "Direct":
        for container in model.containers:
            yield container["ContainerHostname"], container


def _models_of(
    account: SimulatedAccount, container: Mapping[str, Any]
) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield each model of a container, with the ETags of its files; none are not known."""
    url = container.get("ModelDataUrl", "")
    name = (container.get("Environment") or {}).get(_DEFAULT_MODEL, "")
    if container.get("Mode") == "MultiModel":
        objects, prefix = _objects(account, url)
        for model, archive in target_models(account, url).items():
            yield model, _etags(objects, {_ARCHIVE: prefix + archive})
    elif url:
        objects, key = _objects(account, url)
        yield name, _etags(objects, {_ARCHIVE: key})
    else:
        source = (container.get("ModelDataSource") or {}).get("S3DataSource") or {}
        objects, prefix = _objects(account, source.get("S3Uri", ""))
        keys = [key for key in objects if prefix and key.startswith(prefix)]
        yield name, _etags(objects, {key.removeprefix(prefix): key for key in keys})


def _etags(objects: Mapping[str, Any], keys: Mapping[str, str]) -> dict[str, str]:
    return {path: objects[key].etag for path, key in keys.items() if key in objects}


def _objects(account: SimulatedAccount, url: str) -> tuple[dict[str, Any], str]:
    """Return the objects of a URL's bucket by key, and the key of the URL."""
    name, _, key = url.removeprefix("s3://").partition("/")
    bucket = account.api.backend("s3").buckets.get(name)
    return ({} if bucket is None else objects_of(bucket)), key
