"""What a request to a multi-model endpoint names, and how those names are made."""

from __future__ import annotations

import re
from enum import StrEnum

from constructs_triton.cdk.validation.tokens import is_concrete
from constructs_triton.custom_resource_handlers.model_sync.manifest import content_name
from constructs_triton.errors import InvalidValueError

__all__ = ["TargetModel", "TargetModelNaming", "check_model_name"]

_MODEL_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*(/[A-Za-z0-9_][A-Za-z0-9_.-]*)*")
_LONGEST_NAME = 512


class TargetModelNaming(StrEnum):
    """How archives below the prefix of a multi-model endpoint are called."""

    CONTENT = "content"
    """``resnet-3f9c2a1b.tar.gz``: new content has a new name, and ``index.json`` tells which is current."""

    PLAIN = "plain"
    """``resnet.tar.gz``: an instance that has loaded it goes on serving the old content after a change."""

    def target_model(self, name: str, content_digest: str) -> TargetModel:
        """The name of the archive of the model ``name``."""
        is_plain = self is TargetModelNaming.PLAIN
        key = f"{name}.tar.gz" if is_plain else content_name(name, content_digest)
        return TargetModel(key, model_name=name)


class TargetModel(str):
    """The ``TargetModel`` of a request: the key of an archive below the prefix.

    ``model_name`` is the logical name that it stands for.
    """

    __slots__ = ("model_name",)
    model_name: str

    def __new__(cls, key: str, *, model_name: str) -> TargetModel:
        target_model = super().__new__(cls, key)
        target_model.model_name = model_name
        return target_model


def check_model_name(name: str) -> None:
    """Raise ``InvalidValueError`` for a logical name that cannot be part of a key."""
    if not is_concrete(name) or not _MODEL_NAME.fullmatch(name) or len(name) > _LONGEST_NAME:
        raise InvalidValueError(
            f'name: must be letters, digits, "_", "-" and "." known at synth, with "/" between folders, '
            f'got "{name}"; write for example "resnet"'
        )
