"""The verdict on every example of a check: text, JSON, exit code and the message at synth agree."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from check_examples import EXAMPLES, Example, code_of, write

from constructs_triton.cdk.repository.contents import check_source_models
from constructs_triton.cdk.repository.loaded_models import PackedModels
from constructs_triton.cdk.repository.properties import RepositoryCheck
from constructs_triton.cli import main
from constructs_triton_core.errors import RepositoryError
from constructs_triton_core.findings import Severity
from triton_model_check.checks.chapters import RULES
from triton_model_check.cli import target_check
from triton_model_check.model_config.target import OTHER_NAME, Target
from triton_model_check.model_repository import ModelRepository

WORDS = {
    "rejected": ("rejects it",),
    "cannot-be-served": ("it cannot be served",),
    "unknown": (": unknown: ",),
    "loads": ("loads it",),
}
#: Packing creates version folders of ensembles, follows links, and leaves out folders that are no
#: models.
FIXED_BY_PACKING = {
    "layout-no-version: ensemble",
    "sagemaker-archive-link",
    "sagemaker-archive-order: stray folder",
    "server-stray-folder",
    "server-stray-folder: hidden",
}
#: A packed model has no other repository beside it, so that the warning of servers is an error.
OF_SERVERS = {"python-called-model-elsewhere"}
#: A construct without a target may serve a multi-model endpoint, which takes any ``name``.
OF_ONE_MODEL = {
    OTHER_NAME: Target(default_model="m"),
    f"{OTHER_NAME}: step": Target(default_model="pipe"),
}
#: A server ends at a folder that is no model; the rules are the same for endpoints, where they are
#: milder.
REJECTED_ON_SERVERS = ("layout-folder-is-model", "layout-no-model")
#: The command takes its path for the one of a model, and checks the repository around it.
PATH_OF_A_MODEL = "layout-folder-is-model"


def _expected(code: str) -> str:
    rule = RULES[code]
    if code in REJECTED_ON_SERVERS:
        return "rejected"
    if rule.severity is Severity.WARNING:
        return "loads"
    return "rejected" if rule.rejects else "cannot-be-served"


def _run(example: Example, folder: Path, monkeypatch: pytest.MonkeyPatch, *words: str) -> int:
    """Run the command for the example's endpoint, of which options set only a part."""
    target = example.target
    monkeypatch.setattr(target_check, "target_of", lambda *_: (target or Target("server"), False))
    return main(["check", str(folder), *words])


@pytest.mark.parametrize("key", [key for key in RULES if key != PATH_OF_A_MODEL])
def test_text_json_and_exit_code_agree(
    key: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The summary, the JSON and the exit code of ``check`` are those of the rule's verdict."""
    folder, expected = write(EXAMPLES[key].failing, tmp_path / "models"), _expected(key)
    exit_code = 0 if expected == "loads" else 1
    assert _run(EXAMPLES[key], folder, monkeypatch, "--json") == exit_code
    document = json.loads(capsys.readouterr().out)
    if expected == "loads" and document["not_checked"]:
        expected = "unknown"
    assert document["verdict"] == expected
    assert _run(EXAMPLES[key], folder, monkeypatch) == exit_code
    summary = next(line for line in capsys.readouterr().out.splitlines() if line[:1].isdigit())
    assert any(words in summary for words in WORDS[expected])
    assert {each["severity"] for each in document["findings"]} == {RULES[key].severity}


def test_comment_counts_at_synth(tmp_path: Path) -> None:
    """A finding that a comment ignores with a reason is neither raised nor shown,
    as if acknowledged.
    """
    comment = "# triton-model-check: ignore[backend-max-batch-size] our fork of Triton accepts it\n"
    text = f'backend: "identity"\n{comment}max_batch_size: -1\n'
    files = {"m/config.pbtxt": text, "m/1/.keep": ""}
    models = PackedModels(ModelRepository.from_directory(write(files, tmp_path / "models")))
    assert check_source_models(models, Target(default_model="m"), RepositoryCheck.on()) == []
    (tmp_path / "models" / "m" / "config.pbtxt").write_text(text.replace(comment, ""))
    models = PackedModels(ModelRepository.from_directory(tmp_path / "models"))
    with pytest.raises(RepositoryError, match="backend-max-batch-size"):
        check_source_models(models, Target(default_model="m"), RepositoryCheck.on())


@pytest.mark.parametrize("key", sorted(EXAMPLES.keys() - OF_SERVERS))
def test_message_at_synth_agrees(key: str, tmp_path: Path) -> None:
    """A construct raises an error with the same verdict, unless packing fixes the example."""
    example, expected = EXAMPLES[key], _expected(code_of(key))
    target = OF_ONE_MODEL.get(key, example.target)
    models = PackedModels(
        ModelRepository.from_directory(write(example.failing, tmp_path / "models"))
    )
    if expected == "loads" or key in FIXED_BY_PACKING:
        check_source_models(models, target, RepositoryCheck.on())
        return
    with pytest.raises(RepositoryError) as raised:
        check_source_models(models, target, RepositoryCheck.on())
    (words,) = WORDS[expected]
    first, _, findings = str(raised.value).partition("\n")
    assert first.endswith(words)
    assert raised.value.verdict == expected
    assert f"error[{code_of(key)}]: " in findings
    assert {each.code for each in raised.value.findings} == {code_of(key)}
