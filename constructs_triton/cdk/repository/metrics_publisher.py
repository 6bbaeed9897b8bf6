"""Adds the model that publishes Triton's own metrics to a copy of a model repository."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from constructs_triton_core.untrusted.written_files import write_whole
from triton_model_check.artifacts.container_metrics import PUBLISHER
from triton_model_check.artifacts.mirror import mirror
from triton_model_check.model_repository import ModelRepository
from triton_model_check.model_repository.composition import CompositionOptions

# The variables that the model reads; local runs set another one.
ENDPOINT_VARIABLE = "CONTAINER_METRICS_ENDPOINT"
VARIANT_VARIABLE = "CONTAINER_METRICS_VARIANT"
INTERVAL_VARIABLE = "CONTAINER_METRICS_INTERVAL"
CUSTOM_VARIABLE = "CONTAINER_METRICS_CUSTOM"

_FILES = ("config.pbtxt", "1/model.py")


def add_publisher(
    repository: ModelRepository, names: Sequence[str], directory: Path
) -> ModelRepository:
    """Write the models ``names`` and the publisher into ``directory``, which is empty, and return
    them.

    Files are links to those of ``repository``, of which ``names`` are the models of one archive.
    The archive of the first of them contains the publisher.

    Raises:
        ArchiveError: a file of the repository cannot or must not be archived.
    """
    linked = mirror(repository, names, directory)
    for name in _FILES:
        place = directory / PUBLISHER / name
        place.parent.mkdir(parents=True, exist_ok=True)
        write_whole(place, (Path(__file__).with_name(PUBLISHER) / name).read_bytes())
    found = ModelRepository.from_directory(directory, linked_files=linked)
    # Declared calls make the archive of a model contain others.
    found.compose(CompositionOptions({names[0]: (*names[1:], PUBLISHER)}))
    return found
