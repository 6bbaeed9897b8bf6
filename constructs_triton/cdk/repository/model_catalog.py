"""Which models a repository has, and under which names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from constructs_triton.cdk.repository.loaded_models import (
    LoadedModels,
    LocalModels,
    PackedModels,
    StoredModels,
    UncompressedModels,
    UploadedArchive,
)
from constructs_triton.cdk.repository.target_model import check_model_name
from constructs_triton.errors import InvalidValueError
from constructs_triton.spelling import did_you_mean, quoted

__all__ = ["ModelCatalog"]


class ModelCatalog:
    """The models of a repository's ``source``, and those that were added by name."""

    def __init__(self, source: LoadedModels | None) -> None:
        self.source = source
        self._named: dict[str, LoadedModels] = {}

    def sources(self) -> Iterator[LoadedModels]:
        """Everything that models come from."""
        if self.source is not None:
            yield self.source
        yield from self._named.values()

    def refuse_name(self, name: str) -> None:
        """Raise ``InvalidValueError`` for a name that is malformed or taken."""
        check_model_name(name)
        is_taken = name in self._named
        if isinstance(self.source, LocalModels):
            is_taken = is_taken or self.source.holds(name)
        if is_taken:
            raise InvalidValueError(f'name: is taken already, got "{name}"; choose another')

    def add(self, name: str, loaded: LoadedModels) -> None:
        """Add a source of one model."""
        self._named[name] = loaded

    def find(self, model_name: str) -> tuple[LoadedModels, str]:
        """The source of a model, and the name of its folder there.

        Raises ``InvalidValueError`` where there is none.
        """
        if model_name in self._named:
            loaded = self._named[model_name]
            return loaded, loaded.only_model(model_name)
        if self.source is not None and self.source.holds(model_name):
            return self.source, model_name
        if isinstance(self.source, LocalModels):
            known = [*self.source.repository.models, *self._named]
        else:
            known = list(self._named)
        hint = did_you_mean(model_name, known, f"its models are {quoted(known)}")
        where = "model repository" if self.source is None else self.source.description
        raise InvalidValueError(f"{where}: has no such model, got {model_name!r}; {hint}")

    def entries(self) -> Mapping[str, tuple[LocalModels | StoredModels, str]]:
        """What a multi-model endpoint offers: by name, the source and the name of the folder there.

        Raises ``InvalidValueError`` where there is nothing, or something that it cannot load.
        """
        found = dict(self._source_entries())
        for name, loaded in self._named.items():
            found[name] = (_loadable(loaded), loaded.only_model(name))
        if not found:
            raise InvalidValueError(
                "model repository: a multi-model endpoint needs a model, got none; give it a source, or call "
                "add_model"
            )
        return found

    def _source_entries(self) -> Iterator[tuple[str, tuple[LocalModels | StoredModels, str]]]:
        source = self.source
        if isinstance(source, PackedModels):
            yield from ((name, (source, name)) for name in source.top_level)
        elif isinstance(source, UploadedArchive):
            name = source.only_model("source")
            yield name, (source, name)
        elif source is not None:
            _loadable(source)
            raise InvalidValueError(
                f"source: the models of {source.description} have no name, got it as the source of a "
                'multi-model endpoint; call add_model("name", ...)'
            )


def _loadable(loaded: LoadedModels) -> LocalModels | StoredModels:
    if isinstance(loaded, UncompressedModels) or not isinstance(loaded, LocalModels | StoredModels):
        raise InvalidValueError(
            f"model repository: a multi-model endpoint loads archives alone, got {loaded.description}; "
            "serve it with TritonEndpoint"
        )
    return loaded
