"""``triton-model-check`` with several paths, one model, one file, and a choice of codes."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from check_examples import write
from check_examples.repositories import CLASS, HEAD, ONE_STEP, ensemble

from triton_model_check.cli import main

WARMUP = 'model_warmup { name: "w" batch_size: 1 }'
WRONG = f"{HEAD}{WARMUP}\n"
PLACEHOLDER = 'parameters { key: "path" value { string_value: "${path}" } }\n'


@pytest.fixture
def models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two repositories: an ensemble ``pipe`` of ``a`` with a model ``m`` beside
    it, all wrong; and ``n``.
    """
    monkeypatch.chdir(tmp_path)
    wrong = {
        "a/config.pbtxt": WRONG,
        "m/config.pbtxt": WRONG,
        "m/1/model.py": CLASS,
        "m/1/data/9/x.bin": "x",
    }
    pipe = f"{ensemble(ONE_STEP)['pipe/config.pbtxt']!s}{PLACEHOLDER}"
    write({**ensemble(ONE_STEP), **wrong, "pipe/config.pbtxt": pipe}, tmp_path / "shop")
    write({"n/config.pbtxt": HEAD, "n/1/model.py": CLASS}, tmp_path / "other")
    return tmp_path


def _json(words: Sequence[str], capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    main([*words, "--json"])
    document: dict[str, Any] = json.loads(capsys.readouterr().out)
    return document


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("shop", {"a", "m", "pipe"}),
        ("shop/triton-models.toml", {"a", "m", "pipe"}),
        ("shop/m", {"m"}),
        ("shop/m/config.pbtxt", {"m"}),
        ("shop/m/1/data/9/x.bin", {"m"}),
        # The ensemble uses the model.
        ("shop/a/1/model.py", {"a", "pipe"}),
        ("shop/pipe/", {"pipe"}),
        ("shop/m/1", {"m"}),
    ],
)
def test_path_of_a_model_or_a_file_names_the_models(
    path: str, found: set[str], models: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The whole repository is checked, and the findings of named models and of
    their users are printed.
    """
    (models / "shop" / "triton-models.toml").write_text("")
    for given in (path, str(models / path)):
        document = _json([given], capsys)
        assert {each["path"].partition("/")[0] for each in document["findings"]} == found
    os.chdir(models / "shop" / "m")
    assert {each["path"] for each in _json(["."], capsys)["findings"]} == {"m/config.pbtxt"}


def test_each_repository_of_several_paths_is_checked_once(
    models: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Paths are relative to the working folder, and each repository has its own
    last line and document.
    """
    paths = ["shop/m/config.pbtxt", "other", str(models / "shop" / "m" / "1" / "model.py")]
    assert main(paths) == 1
    printed = capsys.readouterr().out.splitlines()
    assert printed[0].startswith("shop/m/config.pbtxt:5:1: error[")
    assert printed[1] == f"   5 | {WARMUP}"
    assert [line.partition(": ")[0] for line in printed if "0 warnings" in line] == [
        "shop",
        "other",
    ]
    documents = _json(paths, capsys)["repositories"]
    assert [(each["path"], each["verdict"]) for each in documents] == [
        ("shop", "rejected"),
        ("other", "loads"),
    ]
    assert documents[0]["findings"][0]["place"]["file"] == "shop/m/config.pbtxt"
    assert main(["other", "absent"]) == 2
    assert 'no such file or directory), got "' in capsys.readouterr().err


def test_choice_decides_the_verdict_and_is_counted(
    models: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What is ignored counts in the last line alone; what is not selected is not mentioned."""
    path = str(models / "shop")
    assert main([path, "--ignore", "warmup-input,text"]) == 0
    assert "0 errors, 0 warnings, 3 ignored: Triton" in capsys.readouterr().out
    assert main([path, "--select", "text", "--select", "onnx"]) == 0
    assert "0 errors, 1 warning: Triton" in capsys.readouterr().out
    assert main([path, "--statistics"]) == 1
    assert capsys.readouterr().out.splitlines()[:2] == [
        "     2  warmup-input",
        "     1  text-placeholder",
    ]
    assert _json([path, "--statistics"], capsys)["statistics"] == {
        "warmup-input": 2,
        "text-placeholder": 1,
    }
    assert main([path, "--ignore", "text-placehoder"]) == 2
    assert '--ignore: no check and no group has this name, got "text-placehoder"; did you mean' in (
        capsys.readouterr().err
    )


def test_verdict_on_one_model_is_not_about_others(
    models: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It names the model, and what was not checked of another model does not make it unknown."""
    write({"x/config.pbtxt": HEAD, "x/1/model.py": f"import mlflow\n{CLASS}"}, models / "other")
    document = _json(["other/n"], capsys)
    assert (document["verdict"], document["models"], document["not_checked"]) == (
        "loads",
        ["n"],
        [],
    )
    (left,) = _json(["other/x"], capsys)["not_checked"]
    assert (left["model"], left["path"]) == ("x", "x/1/model.py")
    assert main(["other/n"]) == 0
    line = '0 errors, 0 warnings: Triton 26.08 on a server loads the model "n"'
    assert capsys.readouterr().out.splitlines() == [line]


def test_unknown_of_several_repositories_fails_if_asked(
    models: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each repository has its own verdict, and its settings decide whether unknown fails."""
    write({"x/config.pbtxt": HEAD, "x/1/model.py": f"import mlflow\n{CLASS}"}, models / "more")
    documents = _json(["other", "more"], capsys)["repositories"]
    assert [each["verdict"] for each in documents] == ["loads", "unknown"]
    assert documents[1]["not_checked"][0]["path"] == "more/x/1/model.py"
    assert main(["other", "more"]) == 0
    assert main(["other", "more", "--fail-on-unknown"]) == 1
    (models / "more" / "triton-model-check.toml").write_text("fail-on-unknown = true\n")
    assert main(["other", "more"]) == 1
    assert main(["other"]) == 0


def test_ignored_finding_leaves_nothing_open(
    models: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Who ignores that AWS's image lacks a package says that the image of the endpoint has it."""
    write({"x/config.pbtxt": HEAD, "x/1/model.py": f"import mlflow\n{CLASS}"}, models / "more")
    words = ["more", "--target", "sagemaker", "--default-model", "x"]
    assert _json(words, capsys)["verdict"] == "unknown"
    ignored = _json([*words, "--ignore", "python-import-missing"], capsys)
    assert (ignored["verdict"], ignored["not_checked"]) == ("loads", [])
