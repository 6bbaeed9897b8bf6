"""``constructs-triton config show``: print a model's configuration."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from constructs_triton_core.errors import InvalidValueError
from constructs_triton_core.program.argument_types import add_common
from constructs_triton_core.spelling import quoted
from constructs_triton_core.untrusted.terminal import print_json, print_lines, print_table
from triton_model_check.artifacts.environments.placement import find_environments
from triton_model_check.builder.description import ConfigDescription
from triton_model_check.checks.loaded_config import complete
from triton_model_check.model.folder import ModelFolder
from triton_model_check.model_config import ModelConfig
from triton_model_check.model_repository import ModelRepository
from triton_model_check.model_repository.composition import DESCRIPTION_FILE


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``config`` to its parser."""
    parser.description = "Show model configurations."
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    show = actions.add_parser(
        "show",
        help="print settings and tensors as tables, and the graph of an ensemble",
        description=(
            "Print the settings and tensors of each model as Triton completes them when it loads "
            "the model, and the graph of an ensemble. What config.pbtxt does not contain is marked "
            "as filled in. Notes have what triton-models.toml declares."
        ),
    )
    show.add_argument(
        "path",
        type=Path,
        metavar="PATH",
        help="a config.pbtxt, a model's folder, or a model repository",
    )
    show.add_argument("--model", metavar="NAME", help="show only this model of a repository")
    form = show.add_mutually_exclusive_group()
    form.add_argument(
        "--mermaid", action="store_true", help="print the graphs of ensembles as Mermaid"
    )
    add_common(form, "--json")


def run(arguments: argparse.Namespace) -> int:
    """Print the configurations and return 0."""
    described = list(_described(arguments.path, arguments.model))
    if arguments.json:
        print_json({"models": [item.to_dict() for item in described]})
    elif arguments.mermaid:
        print_lines(*_mermaid(arguments.path, described).split("\n"))
    else:
        print_tables(described)
    return 0


# --- what to show ---------------------------------------------------------------------------------


def _described(path: Path, model: str | None) -> Iterator[ConfigDescription]:
    if path.is_dir() and not _is_model(path):
        return _of_repository(path, model)
    if model is not None:
        raise InvalidValueError(
            f"--model: {path} is one model, not a repository, got {model!r}; leave it out"
        )
    return iter([_described_file(path)])


def _is_model(path: Path) -> bool:
    return (path / "config.pbtxt").is_file() or bool(ModelFolder(path.name, path).versions)


def _of_repository(path: Path, model: str | None) -> Iterator[ConfigDescription]:
    repository = ModelRepository.from_directory(path)
    folders = [repository.model(model)] if model is not None else list(repository.models.values())
    if not folders:
        raise InvalidValueError(
            f"{path}: contains no model; pass a model's folder or a model repository"
        )
    return (_with_declared(_described_folder(folder), repository) for folder in folders)


def _with_declared(item: ConfigDescription, repository: ModelRepository) -> ConfigDescription:
    """Add what ``triton-models.toml`` has of a model."""
    environment = find_environments(repository).get(item.name)
    called = repository.composition.calls.get(item.name)
    notes = []
    if environment is not None:
        notes.append(
            f"Python environment of {environment.requirements} for image "
            f"{environment.image_version}"
        )
    if called is not None:
        notes.append(f"calls {quoted(called)}")
    if item.name in repository.composition.also_served:
        notes.append("also served alone")
    return replace(item, notes=(*item.notes, *(f"{DESCRIPTION_FILE}: {note}" for note in notes)))


def _described_file(path: Path) -> ConfigDescription:
    folder = (path if path.is_dir() else path.parent).resolve()
    if path.is_dir() or path.name == "config.pbtxt":
        return _described_folder(ModelFolder(folder.name, folder))
    config = ModelConfig.read(path).to_message()
    return ConfigDescription(config.name or folder.name, config)


def described_folder(path: Path) -> ConfigDescription:
    """Describe the configuration of a model's folder, completed as Triton completes it."""
    folder = path.resolve()
    return _described_folder(ModelFolder(folder.name, folder))


def _described_folder(folder: ModelFolder) -> ConfigDescription:
    if folder.has_config:
        ModelConfig.read(folder.directory)  # raises what is wrong with the file
    loaded = complete(folder)
    return ConfigDescription(loaded.config.name, loaded.config, loaded.filled_in, loaded.notes)


# --- how to show it -------------------------------------------------------------------------------


def _mermaid(path: Path, described: list[ConfigDescription]) -> str:
    graphs = [item.graph for item in described if item.graph is not None]
    if not graphs:
        names = ", ".join(item.name for item in described)
        raise InvalidValueError(f"{path}: contains no ensemble, got {names}; leave out --mermaid")
    return "\n\n".join(graph.to_mermaid() for graph in graphs)


def print_tables(described: list[ConfigDescription]) -> None:
    """Print the settings, tensors and graph of each configuration."""
    for index, item in enumerate(described):
        if index:
            print_lines("")
        _print_one(item)


def _print_one(item: ConfigDescription) -> None:
    """Print the fields, tensors and graph of one configuration."""
    print_lines([(item.name, "1")])
    if item.settings:
        rows = [
            (name, value, "filled in" if name in item.filled_in else "")
            for name, value in item.settings
        ]
        print_table(("field", "value", ""), rows, box="SIMPLE_HEAD")
    print_tensors(item)
    if item.graph is not None:
        print_lines(*item.graph.to_text().split("\n"))
    print_lines(*(f"note: {note}" for note in item.notes))


def print_tensors(described: ConfigDescription) -> None:
    """Print the table of inputs and outputs."""
    if described.tensors:
        shapes = (f"[{', '.join(map(str, tensor.shape))}]" for tensor in described.tensors)
        rows = (
            (tensor.direction, tensor.name, tensor.data_type, shape, tensor.notes)
            for tensor, shape in zip(described.tensors, shapes, strict=True)
        )
        print_table(("tensor", "name", "data_type", "shape", "notes"), rows, box="SIMPLE_HEAD")
