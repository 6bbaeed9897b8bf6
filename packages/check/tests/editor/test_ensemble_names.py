"""Definitions and possible names in an ensemble."""

from __future__ import annotations

from pathlib import Path

import pytest
from check_examples import write
from check_examples.repositories import CLASS, HEAD, ensemble, pipe, step

from triton_model_check.editor.completion import complete
from triton_model_check.editor.ensemble_names import EnsembleNames
from triton_model_check.editor.model_files import ModelFile

TEXT = pipe(step("a", "X", "between"), step("bare", "between", "Y"))


@pytest.fixture
def file(tmp_path: Path) -> ModelFile:
    """An ensemble of a model with a configuration, and of one without."""
    files = {**ensemble(TEXT), "bare/1/model.py": CLASS}
    root = write(files, tmp_path / "models")
    return ModelFile(root, "pipe", root / "pipe" / "config.pbtxt")


def _declared(file: ModelFile, text: str, place: str) -> list[tuple[str, str]]:
    """Return the file and the text of each declaration of the name at a bar."""
    offset = place.index("|") + text.index(place.replace("|", ""))
    found = EnsembleNames(file, text).declarations(offset)
    return [
        (each.path.relative_to(file.repository).as_posix(), each.text[slice(*each.span)])
        for each in found
    ]


@pytest.mark.parametrize(
    ("place", "declared"),
    [
        ('model_name: "|a"', [("a/config.pbtxt", "")]),
        ('model_name: "|bare"', [("bare/1/model.py", "")]),
        ('input_map { key: "X" value: "|between" }', [("pipe/config.pbtxt", '"between"')]),
        ('output_map { key: "Y" value: "|between" }', [("pipe/config.pbtxt", '"between"')]),
        ('input_map { key: "|X" value: "X" }', [("a/config.pbtxt", '"X"')]),
        ('output_map { key: "|Y" value: "between" }', [("a/config.pbtxt", '"Y"')]),
        ('output_map { key: "|Y" value: "Y" }', []),
        ('input_map { key: "X" value: "|X" }', [("pipe/config.pbtxt", '"X"')]),
        ('output_map { key: "Y" value: "|Y" }', [("pipe/config.pbtxt", '"Y"')]),
        ('output [ { name: "|Y"', [("pipe/config.pbtxt", '"Y"')]),
        ('platform: "|ensemble"', []),
        ("max_|batch_size", []),
    ],
)
def test_declaration(file: ModelFile, place: str, declared: list[tuple[str, str]]) -> None:
    """Models lead to their files, and tensors to their steps, inputs and outputs."""
    assert _declared(file, TEXT, place) == declared


@pytest.mark.parametrize("name", ["..", "../a", "", "."])
def test_name_does_not_lead_out_of_the_repository(file: ModelFile, name: str) -> None:
    """What is written as the name of a model is one folder of the repository."""
    text = TEXT.replace('model_name: "a"', f'model_name: "{name}"')
    assert _declared(file, text, 'model_name: "|') == []


def test_key_without_declaration_leads_to_the_model(file: ModelFile) -> None:
    """The configuration is shown in which the tensor should be."""
    text = TEXT.replace('input_map { key: "X" value: "X" }', 'input_map { key: "Q" value: "X" }')
    assert _declared(file, text, 'key: "|Q"') == [("a/config.pbtxt", "")]


@pytest.mark.parametrize(
    ("before", "typed", "labels"),
    [
        ('model_name: "a"', 'model_name: "|"', ["a", "bare"]),
        ('model_name: "a"', "model_name: |", ["a", "bare"]),
        ('input_map { key: "X" value: "X" }', 'input_map { key: "|" }', ["X"]),
        ('output_map { key: "Y" value: "between" }', 'output_map { key: "|" }', ["Y"]),
        ('key: "X" value: "between"', 'key: "X" value: "|"', ["X", "between", "Y"]),
        ('key: "Y" value: "between"', 'key: "Y" value: "|"', ["Y", "X", "between"]),
    ],
)
def test_possible_names(file: ModelFile, before: str, typed: str, labels: list[str]) -> None:
    """Models are those of the folder, and tensors those of the called model and the steps."""
    text = TEXT.replace(before, typed)
    found = complete(text.replace("|", ""), text.index("|"), file)
    assert found is not None
    assert [proposal.label for proposal in found.proposals if proposal.label] == labels
    written = {proposal.snippet for proposal in found.proposals}
    assert (f'"{labels[0]}"' in written) == ('"|' not in typed)


def test_models_without_configuration_have_no_known_tensors(file: ModelFile) -> None:
    """Nothing is proposed that was not read."""
    text = TEXT.replace('key: "X" value: "between"', 'key: "|" value: "between"')
    found = complete(text.replace("|", ""), text.index("|"), file)
    assert found is not None
    assert found.proposals == ()


def test_configuration_of_the_editor_is_read(file: ModelFile) -> None:
    """A tensor of a called model that is not saved yet is found."""
    from triton_model_check.untrusted.unsaved_files import unsaved_files

    renamed = HEAD.replace('"X"', '"New"')
    text = TEXT.replace('input_map { key: "X" value: "X" }', 'input_map { key: "|" value: "X" }')
    with unsaved_files({str(file.repository / "a" / "config.pbtxt"): renamed.encode()}):
        found = complete(text.replace("|", ""), text.index("|"), file)
    assert found is not None
    assert [proposal.label for proposal in found.proposals] == ["New"]
