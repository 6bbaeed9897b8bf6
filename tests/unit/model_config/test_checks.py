"""Every rule, by its twins: the smallest repository that trips it and the same one mended."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

from constructs_triton.model_config import Report, all_rules
from constructs_triton.model_config.target import Target
from constructs_triton.model_repository import ModelRepository

PROJECT = Path(__file__).resolve().parents[3]


def _load_twins() -> ModuleType:
    import sys

    spec = importlib.util.spec_from_file_location("check_twins", PROJECT / "tools" / "check_twins.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["check_twins"] = module
    spec.loader.exec_module(module)
    return module


twins = _load_twins()


def _check(files: object, target: Target | None, directory: Path) -> Report:
    repository = ModelRepository.from_directory(twins.write(files, directory / "models"))
    return repository.check(target, is_packed=False)


def test_every_rule_has_twins() -> None:
    """Each rule has its pair of examples, and there is no pair without a rule."""
    assert set(twins.TWINS) == set(all_rules())


@pytest.mark.parametrize("code", sorted(twins.TWINS))
def test_failing_twin_trips_exactly_its_rule(code: str, tmp_path: Path) -> None:
    """The failing twin is found by its own rule and by no other, and the verdict is the rule's."""
    twin, rule = twins.TWINS[code], all_rules()[code]
    report = _check(twin.failing, twin.target, tmp_path)
    assert {finding.code for finding in report.findings} == {code}
    assert report.findings[0].severity is rule.severity
    assert report.verdict == ("rejected" if rule.refuses else "loads")


@pytest.mark.parametrize("code", sorted(twins.TWINS))
def test_mended_twin_is_clean(code: str, tmp_path: Path) -> None:
    """The mended twin trips no rule at all."""
    twin = twins.TWINS[code]
    assert _check(twin.mended, twin.mended_target or twin.target, tmp_path).findings == ()


@pytest.mark.parametrize("code", sorted(twins.TWINS))
def test_finding_tells_where_and_how_to_mend(code: str, tmp_path: Path) -> None:
    """A finding names an existing path or the repository, and carries a hint and a source."""
    twin = twins.TWINS[code]
    for finding in _check(twin.failing, twin.target, tmp_path).findings:
        assert (
            finding.path == "."
            or (tmp_path / "models" / finding.path).is_symlink()
            or (tmp_path / "models" / finding.path).exists()
        )
        assert finding.hint
        assert finding.source
        assert not finding.message.endswith(".")


def test_template_with_placeholders_in_strings_gets_one_plain_message(tmp_path: Path) -> None:
    """A template is told to be one, once, however many of its strings are still to be filled in."""
    files = twins.one(
        twins.HEAD + 'name: "${name}"\nparameters { key: "k" value { string_value: "${v}" } }\n'
    )
    (finding,) = _check(files, None, tmp_path).findings
    assert (finding.code, finding.hint) == (
        "layout-name-differs",
        "check the file that your script generates from this template",
    )


def test_documentation_is_up_to_date() -> None:
    """``docs/checks.md`` is what the generator writes today."""
    spec = importlib.util.spec_from_file_location(
        "generate_checks_doc", PROJECT / "tools" / "generate_checks_doc.py"
    )
    assert spec is not None
    assert spec.loader is not None
    generator = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(generator)
    written = (PROJECT / "docs" / "checks.md").read_text(encoding="utf-8")
    assert written == generator.render(), "run python tools/generate_checks_doc.py"
