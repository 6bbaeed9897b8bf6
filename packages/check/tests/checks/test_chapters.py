"""When each chapter of the rules is imported, and what a check loads."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import pytest

from triton_model_check.checks import chapters
from triton_model_check.checks.chapters import CHAPTERS, RULES

MODELS = Path(__file__).resolve().parents[4] / "assets" / "model_repositories"
LOADED = """
import json, sys
from triton_model_check.cli import main
assert main(["check", *sys.argv[1:]]) == 0
print(json.dumps([*sys.modules]))
"""
FORMATS = {
    f"model_files.{name}"
    for name in ("onnx_file", "torchscript", "tensorrt_plan", "trees", "other_formats")
}
RULE_MODULES = {f"checks.{chapter.module}" for chapter in CHAPTERS}
#: What no model of the Python backend needs that has neither an environment nor an error.
NEEDLESS = {
    *FORMATS,
    "artifacts.environments.placement",
    "cli.fixing",
    "google.protobuf.message_factory",
    "google.protobuf.text_format",
    "builder.typed_message",
    "checks.comments",
    "model.ensemble_graph",
    "model_config.locations",
    "model.packed_environment",
    "model.places",
    "untrusted.toml_files",
}


def _loaded(cache: Path, *arguments: str) -> set[str]:
    """The modules that a check loads, ours and protobuf's."""
    environment = {"CONSTRUCTS_TRITON_CACHE_DIR": str(cache), "HOME": str(cache)}
    run = subprocess.run(
        [sys.executable, "-c", LOADED, *arguments],
        capture_output=True,
        text=True,
        check=True,
        env=environment,
        cwd=cache,
    )
    found = json.loads(run.stdout.splitlines()[-1])
    names = (name for name in found if name.startswith(("triton_model_check.", "google.protobuf")))
    return {name.removeprefix("triton_model_check.") for name in names}


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    """A new folder for the caches and for the models, above which no project has settings."""
    folder = tmp_path / "cache"
    folder.mkdir(mode=0o700)
    shutil.copytree(MODELS, folder / "models")
    return folder


@pytest.mark.parametrize("chapter", CHAPTERS, ids=lambda chapter: chapter.module)
def test_chapter_applies_where_its_rules_do(chapter: chapters.Chapter) -> None:
    """A chapter names the scopes, fields and platforms of its rules, and no others."""
    fields: dict[str, set[str]] = defaultdict(set)
    platforms: set[str] = set()
    scopes_without_condition = set()
    for rule in chapter.rules:
        fields[rule.scope].update(rule.when)
        platforms.update(rule.platforms)
        if not rule.when:
            scopes_without_condition.add(rule.scope)
    # A rule that needs no field applies to every model of its scope.
    for scope in scopes_without_condition:
        fields[scope] = set()

    assert {scope: set(names) for scope, names in chapter.scopes.items()} == fields
    assert set(chapter.platforms) == platforms


def test_every_module_with_rules_is_a_chapter() -> None:
    """No module of the folder registers rules that the list of chapters does not have."""
    with_rules = set()
    for path in Path(chapters.__file__).parent.glob("*.py"):
        code = path.read_text()
        if "\n@" in code and "-> Iterator[Problem]" in code:
            with_rules.add(path.stem)
    assert with_rules == {chapter.module for chapter in CHAPTERS}

    codes = {rule.code for chapter in CHAPTERS for rule in chapter.rules}
    assert len(codes) == len(RULES)


def test_check_loads_what_the_models_need(cache: Path) -> None:
    """A check of Python models loads no reader, no graph of ensembles and no builder."""
    modules = _loaded(cache, "models/catalog")
    chapters = {name.removeprefix("checks.") for name in modules & RULE_MODULES}
    assert "python_backend" in chapters
    assert not chapters & {
        "onnx",
        "ensemble",
        "environment_use",
        "vllm",
        "sagemaker",
    }
    assert not modules & NEEDLESS


def test_check_loads_the_reader_of_the_format(cache: Path) -> None:
    """A check of an ONNX model and an ensemble loads the reader of ONNX alone, and the graph."""
    modules = _loaded(cache, "models/reviews")
    assert modules & FORMATS == {"model_files.onnx_file"}
    assert {
        "checks.onnx",
        "checks.ensemble",
        "model.ensemble_graph",
    } <= modules


def test_repeated_check_loads_no_rules(cache: Path) -> None:
    """A check of an unchanged repository loads neither rules, nor protobuf,
    nor the reader of texts.
    """
    _loaded(cache, "models/catalog")
    modules = _loaded(cache, "models/catalog")
    assert not modules & {*NEEDLESS, *RULE_MODULES, "checks.rules", "model_config.text"}
    assert "google.protobuf" not in modules
