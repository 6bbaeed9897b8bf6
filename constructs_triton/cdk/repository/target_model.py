"""The ``TargetModel`` of a request to a multi-model endpoint, and how archives are named."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from constructs_triton.cdk.repository.properties import TargetModelNaming
from constructs_triton.cdk.validation.arguments import LOOKED_UP_LATER
from constructs_triton_core.errors import InvalidValueError
from constructs_triton_core.model_index import some_of
from constructs_triton_core.spelling import did_you_mean, quoted
from constructs_triton_core.tokens import is_lookup_dummy, is_token
from constructs_triton_functions.model_sync.manifest import content_name
from triton_model_check.model_repository.s3_keys import archive_pattern, pattern_owner

_PATTERN = re.compile(r"[*?]")


class TargetModel(str):
    """The ``TargetModel`` of a request: the key of an archive, relative to the prefix.

    Args:
        key: The key.
        model_name: Logical name of the model in the archive.
    """

    __slots__ = ("model_name",)
    model_name: str

    def __new__(cls, key: str, *, model_name: str) -> TargetModel:
        target_model = super().__new__(cls, key)
        target_model.model_name = model_name
        return target_model


class TargetModels(dict[str, TargetModel]):
    """The target models of a repository by model.

    The first synthesis has a stand-in for each name that the CDK looks up, and for each model of a
    folder whose path it looks up: ``are_known`` is ``False`` then.
    """

    def __init__(self, found: Mapping[str, TargetModel], *, are_known: bool) -> None:
        super().__init__(found)
        self._are_known = are_known

    def __missing__(self, name: str) -> TargetModel:
        """Return a stand-in for the name of a model that is not known yet."""
        if self._are_known and not is_lookup_dummy(name):
            raise KeyError(name)
        return TargetModel(f"{LOOKED_UP_LATER}.tar.gz", model_name=name)


def archive_name(naming: TargetModelNaming, name: str, content_digest: str) -> TargetModel:
    """Return the name of a model's archive. ``content_digest`` is that of the archive's content."""
    is_plain = naming is TargetModelNaming.PLAIN
    key = f"{name}.tar.gz" if is_plain else content_name(name, content_digest)
    return TargetModel(key, model_name=name)


def archive_patterns(naming: TargetModelNaming, name: str) -> list[str]:
    """Return patterns for the archives that a model has now and after its content has changed.

    ``?`` stands for one character, as in IAM policies.
    """
    changing = archive_pattern(name)
    return [f"{name}.tar.gz", changing] if naming is TargetModelNaming.PLAIN else [changing]


def check_target_model(
    name: str, known: Mapping[str, TargetModel], ensembles: Sequence[str]
) -> None:
    """Check what a grant names. CDK tokens and patterns with ``*`` or ``?`` pass.

    ``known`` maps the models of the repository to their archives. ``ensembles`` are the models
    whose archives contain ``name`` as a step.
    """
    if is_token(name) or name in known or name in known.values() or _PATTERN.search(name):
        return
    if ensembles:
        step = name.removesuffix(".tar.gz")
        raise InvalidValueError(
            f'target_models: "{step}" is a step inside {quoted(ensembles)} and has no archive of '
            f'its own; grant {quoted(ensembles)}, or set also_served=["{step}"]'
        )
    listed = f'its models are {some_of(known)}; grant one of them, or use a pattern with "*"'
    fix = did_you_mean(
        name.removesuffix(".tar.gz"), known, listed
    )  # an archive's name has a digest
    raise InvalidValueError(
        f'target_models: the repository has no model or archive of that name, got "{name}"; {fix}'
    )


def refuse_collisions(target_models: Mapping[str, str]) -> None:
    """Check that a grant for one model does not allow another one.

    A grant allows a model's name with any digest. The archive ``scorer-backbone.tar.gz`` of another
    model would match ``scorer-????????.tar.gz``.
    """
    for name, target_model in target_models.items():
        owner = pattern_owner(target_model)
        if owner is not None and owner != name and owner in target_models:
            raise InvalidValueError(
                f'model "{name}": its archive "{target_model}" is also covered by grants for '
                f'"{owner}", which allow "{archive_pattern(owner)}"; rename one of the models, or '
                "use TargetModelNaming.CONTENT"
            )
