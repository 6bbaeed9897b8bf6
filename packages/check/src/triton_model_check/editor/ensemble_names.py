"""The names in an ensemble: where a model or a tensor is declared, and which names are possible."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from triton_model_check.editor.model_files import ModelFile
from triton_model_check.editor.outline import Block, Field, Outline
from triton_model_check.model.folder import CONFIG_FILE, ModelFolder
from triton_model_check.model_config.locations import Span
from triton_model_check.model_repository.repository import ModelRepository

_STEP = ("ensemble_scheduling", "step")
_INPUT_MAP = (*_STEP, "input_map")
_OUTPUT_MAP = (*_STEP, "output_map")


class Declaration(NamedTuple):
    """A place in a file with its text; the beginning of the file if only the file is known."""

    path: Path
    text: str
    span: Span


class EnsembleNames:
    """The names of one configuration in an editor.

    Other models are read from their folders, in the form that the editor has of them.
    """

    def __init__(self, file: ModelFile, text: str) -> None:
        self._file = file
        self._text = text
        self._outline = Outline(text)

    # --- where a name is declared -----------------------------------------------------------------

    def declarations(self, offset: int) -> list[Declaration]:
        """Return where the name at an offset is declared; none if that is not known."""
        for field in self._outline.fields():
            for scalar in field.scalars:
                if scalar.span[0] <= offset <= scalar.span[1]:
                    return list(self._declared(field, scalar.text))
        return []

    def _declared(self, field: Field, name: str) -> Iterator[Declaration]:
        names = (*field.block.names, field.name)
        if names == (*_STEP, "model_name"):
            yield from self._model(name)
        elif names == (*_INPUT_MAP, "value"):
            yield from self._produced(name)
        elif names == (*_OUTPUT_MAP, "value"):
            yield from self._tensors("output", name) or self._read(name)
        elif names in ((*_INPUT_MAP, "key"), (*_OUTPUT_MAP, "key")):
            kind = "input" if names[2] == "input_map" else "output"
            yield from self._tensor_of_step(field.block, kind, name)
        elif names == ("output", "name"):
            yield from self._mapped("output_map", name)

    def _model(self, name: str) -> Iterator[Declaration]:
        """Yield the configuration of a model, or its file if it has none."""
        folder = self._folder(name)
        if folder is None:
            return
        if folder.config_text is not None:
            yield Declaration(folder.directory / CONFIG_FILE, folder.config_text, (0, 0))
            return
        for version in folder.versions_to_load:
            for file, is_folder in sorted(folder.list(version).items()):
                if not is_folder:
                    yield Declaration(folder.directory / version / file, "", (0, 0))
                    return

    def _produced(self, tensor: str) -> list[Declaration]:
        """Return the outputs of steps that write a tensor, or the input of the ensemble."""
        return self._mapped("output_map", tensor) or self._tensors("input", tensor)

    def _read(self, tensor: str) -> list[Declaration]:
        """Return the inputs of steps that read a tensor."""
        return self._mapped("input_map", tensor)

    def _tensors(self, kind: str, name: str) -> list[Declaration]:
        """Return the inputs or outputs of the ensemble that have a name."""
        spans = _spans_of_tensors(self._outline, kind, name)
        return [Declaration(self._file.path, self._text, span) for span in spans]

    def _mapped(self, map_name: str, tensor: str) -> list[Declaration]:
        """Return the entries of the steps' maps that have a tensor."""
        found = []
        for entry in self._entries(map_name):
            value = entry.scalar("value")
            if value is not None and value.text == tensor:
                found.append(Declaration(self._file.path, self._text, value.span))
        return found

    def _tensor_of_step(self, entry: Block, kind: str, name: str) -> Iterator[Declaration]:
        """Yield a tensor in the configuration of a step's model, or that configuration."""
        model = _model_of_step(entry)
        folder = None if model is None else self._folder(model)
        if folder is None or folder.config_text is None:
            return
        text = folder.config_text
        spans = _spans_of_tensors(Outline(text), kind, name) or [(0, 0)]
        for span in spans:
            yield Declaration(folder.directory / CONFIG_FILE, text, span)

    # --- which names are possible -----------------------------------------------------------------

    def possible(self, block: Block, name: str) -> list[str]:
        """Return the names that a field of a message can have; none if that is not known.

        Args:
            block: The message, which need not be complete.
            name: Name of the field.
        """
        names = (*block.names, name)
        if names == (*_STEP, "model_name"):
            models = ModelRepository.from_directory(self._file.repository).models
            return [model for model in models if model != self._file.model]
        if names == (*_INPUT_MAP, "value"):
            return self._distinct("input", "output_map")
        if names == (*_OUTPUT_MAP, "value"):
            return self._distinct("output", "input_map")
        if names == (*_INPUT_MAP, "key"):
            return self._tensors_of_step(self._complete(block), "input")
        if names == (*_OUTPUT_MAP, "key"):
            return self._tensors_of_step(self._complete(block), "output")
        return []

    def _distinct(self, kind: str, map_name: str) -> list[str]:
        """Return the tensors of the ensemble and those of the steps' maps, each once."""
        names = _tensor_names(self._outline, kind)
        for entry in self._entries(map_name):
            value = entry.scalar("value")
            if value is not None:
                names.append(value.text)
        return list(dict.fromkeys(names))

    def _complete(self, block: Block) -> Block:
        """Return the message that begins at the same place, with what follows the cursor."""
        return block_at(self._outline, block.start) or block

    def _tensors_of_step(self, entry: Block, kind: str) -> list[str]:
        model = _model_of_step(entry)
        folder = None if model is None else self._folder(model)
        if folder is None or folder.config_text is None:
            return []
        return _tensor_names(Outline(folder.config_text), kind)

    # --- parts ------------------------------------------------------------------------------------

    def _entries(self, map_name: str) -> Iterator[Block]:
        """Yield the entries of a map of all steps."""
        for scheduling in self._outline.root.blocks(_STEP[0]):
            for step in scheduling.blocks(_STEP[1]):
                yield from step.blocks(map_name)

    def _folder(self, name: str) -> ModelFolder | None:
        """Return the folder of a model; ``None`` for a name that leads out of the repository."""
        if name in ("", ".", "..") or Path(name).name != name:
            return None
        return ModelFolder(name, self._file.repository / name)


def block_at(outline: Outline, start: int) -> Block | None:
    """Return the message whose content begins at an offset."""
    if outline.root.start == start:
        return outline.root
    for field in outline.fields():
        for block in field.blocks:
            if block.start == start:
                return block
    return None


def _model_of_step(entry: Block) -> str | None:
    """Return the model of the step that has an entry of a map."""
    step = entry.parent.block if entry.parent else None
    model = None if step is None else step.scalar("model_name")
    return None if model is None else model.text


def _tensor_names(outline: Outline, kind: str) -> list[str]:
    """Return the names of the inputs or outputs of a configuration."""
    names = []
    for tensor in outline.root.blocks(kind):
        name = tensor.scalar("name")
        if name is not None:
            names.append(name.text)
    return names


def _spans_of_tensors(outline: Outline, kind: str, wanted: str) -> list[Span]:
    """Return where the inputs or outputs of a name are."""
    spans = []
    for tensor in outline.root.blocks(kind):
        name = tensor.scalar("name")
        if name is not None and name.text == wanted:
            spans.append(name.span)
    return spans
