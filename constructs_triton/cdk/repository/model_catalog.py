"""The models of a repository, by name."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from constructs_triton.cdk.repository.loaded_models import (
    ArchivePrefix,
    LoadedModels,
    LocalModels,
    PackedModels,
    StoredModels,
    UncompressedModels,
    UploadedArchive,
)
from constructs_triton.cdk.repository.looked_up_models import LookedUpModels
from constructs_triton.cdk.validation.arguments import LOOKED_UP_LATER
from constructs_triton_core.errors import InvalidValueError
from constructs_triton_core.spelling import did_you_mean, quoted
from triton_model_check.model_repository.s3_keys import check_model_name


def stand_in_name(name: str) -> str:
    """Return a name for a model whose name the CDK has not looked up yet."""
    known = name.replace("dummy-value-for-", "")
    return re.sub("[^A-Za-z0-9]+", "-", f"{LOOKED_UP_LATER}-{known}").strip("-")


class ModelCatalog:
    """The models of a repository's ``source``, and those that are added by name."""

    def __init__(self, source: LoadedModels | None) -> None:
        self.source = source
        self._named: dict[str, LoadedModels] = {}

    def sources(self) -> Iterator[LoadedModels]:
        """Yield all sources."""
        if self.source is not None:
            yield self.source
        yield from self._named.values()

    def refuse_name(self, name: str) -> None:
        """Check a name for a new model."""
        check_model_name("name", name)
        is_taken = name in self._named
        if isinstance(self.source, LocalModels):
            is_taken = is_taken or self.source.holds(name)
        if is_taken:
            raise InvalidValueError(
                f'name: the repository already has a model "{name}"; use another name'
            )

    def add(self, name: str, loaded: LoadedModels) -> None:
        """Add a source of one model."""
        self._named[name] = loaded

    def added(self) -> list[LoadedModels]:
        """Return the sources of single models."""
        return list(self._named.values())

    def find(self, model_name: str) -> tuple[LoadedModels, str]:
        """Return the source of a model, and the name of its folder there."""
        if model_name in self._named:
            loaded = self._named[model_name]
            return loaded, loaded.only_model(model_name)
        if isinstance(self.source, LookedUpModels):
            return self.source, self.source.only_model(model_name)
        if self.source is not None and self.source.holds(model_name):
            return self.source, model_name
        known = self.names
        listed = f"its models are {quoted(known)}" if known else self._without_models()
        hint = did_you_mean(model_name, known, listed)
        where = "model repository" if self.source is None else self.source.description
        raise InvalidValueError(f'{where}: has no model of that name, got "{model_name}"; {hint}')

    @property
    def names(self) -> list[str]:
        """The names of the models, as far as they are known at synth."""
        if isinstance(self.source, LocalModels):
            return [*self.source.repository.models, *self._named]
        return list(self._named)

    def _without_models(self) -> str:
        if isinstance(self.source, ArchivePrefix):
            return "use TritonMultiModelEndpoint, or ModelSource.from_bucket for one archive"
        return "call add_model"

    def only_name(self) -> str:
        """Return the name of the only model that is not just a step of an ensemble.

        Raises:
            InvalidValueError: there are several or none, or the names in the source are unknown.
        """
        source = self.source
        if isinstance(source, LookedUpModels):
            return LOOKED_UP_LATER
        names: list[str] = [
            *(source.cached.top_level if isinstance(source, LocalModels) else ()),
            *self._named,
        ]
        if len(names) == 1 and (source is None or isinstance(source, LocalModels)):
            return names[0]
        known = quoted(names) if names else "no names that are known at synth"
        fix = (
            self._without_models()
            if isinstance(source, ArchivePrefix) and not names
            else "set model"
        )
        raise InvalidValueError(
            f"model: is required unless the repository has exactly one model, got {known}; {fix}"
        )

    def entries(self) -> Mapping[str, tuple[LocalModels | StoredModels, str]]:
        """Return the models of a multi-model endpoint by name: each source and folder there.

        Raises:
            InvalidValueError: there are no models, or models that are not in archives.
        """
        found = dict(self._source_entries())
        for name, loaded in self._named.items():
            found[name] = (_loadable(loaded), loaded.only_model(name))
        if not found:
            raise InvalidValueError(
                "model repository: a multi-model endpoint needs at least one model; "
                "set source, or call add_model"
            )
        return found

    def served_with(self, model_name: str) -> list[str]:
        """Return the names of the models whose archives contain a model because they need it."""
        return [
            name
            for name, (loaded, folder) in self.entries().items()
            if isinstance(loaded, LocalModels) and model_name in loaded.contents_of(folder)[1:]
        ]

    def _source_entries(self) -> Iterator[tuple[str, tuple[LocalModels | StoredModels, str]]]:
        """Yield the models of ``source`` by the names under which they are requested."""
        source = self.source
        if isinstance(source, PackedModels):
            yield from ((name, (source, name)) for name in source.cached.top_level)
        elif isinstance(source, UploadedArchive):
            name = source.only_model("source")
            yield name, (source, name)
        elif source is not None:
            _loadable(source)
            raise InvalidValueError(
                f"source: the model names in {source.description} are unknown, so a multi-model "
                'endpoint cannot serve them; remove source, and call add_model("name", ...)'
            )


def _loadable(loaded: LoadedModels) -> LocalModels | StoredModels:
    if isinstance(loaded, UncompressedModels | ArchivePrefix) or not isinstance(
        loaded, LocalModels | StoredModels
    ):
        raise InvalidValueError(
            "model repository: a multi-model endpoint loads archives only, got "
            f"{loaded.description}; use TritonEndpoint"
        )
    return loaded
