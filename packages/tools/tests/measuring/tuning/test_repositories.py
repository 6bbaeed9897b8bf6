"""Copies of a repository for candidates."""

from __future__ import annotations

from pathlib import Path

import pytest

from constructs_triton_tools.measuring.tuning.candidates import Candidate, ModelSettings
from constructs_triton_tools.measuring.tuning.repositories import TunedRepository
from triton_model_check.model_config.text import parse_model_config
from triton_model_check.model_repository import ModelRepository

CONFIG = '# kept\nbackend: "python" max_batch_size: 8 response_cache { enable: true }\n'
PRESENT = Candidate.of(m=ModelSettings())


@pytest.fixture
def repository(tmp_path: Path) -> TunedRepository:
    """A repository with a model and one that is not served."""
    for name, config in (("m", CONFIG), ("other", 'backend: "python"')):
        (tmp_path / "models" / name / "1").mkdir(parents=True)
        (tmp_path / "models" / name / "config.pbtxt").write_text(config)
        (tmp_path / "models" / name / "1" / "model.py").write_bytes(b"#" * (2 << 20))
    return TunedRepository(ModelRepository.from_directory(tmp_path / "models"), "m", PRESENT)


def test_copy_has_the_settings_and_leaves_the_repository(
    repository: TunedRepository, tmp_path: Path
) -> None:
    """A copy has the served model with other settings;
    the repository's file stays byte for byte.
    """
    repository.copy(Candidate.of(m=ModelSettings(2, 4)), tmp_path / "copy")
    copied = parse_model_config((tmp_path / "copy" / "m" / "config.pbtxt").read_bytes())
    assert (copied.max_batch_size, copied.instance_group[0].count) == (4, 2)
    assert [path.name for path in (tmp_path / "copy").iterdir()] == ["m"]
    assert (tmp_path / "models" / "m" / "config.pbtxt").read_text() == CONFIG


def test_response_cache_is_measured_off_and_kept_in_the_result(
    repository: TunedRepository, tmp_path: Path
) -> None:
    """Copies have no response cache, the present one included; the result has that of the file."""
    repository.copy(PRESENT, tmp_path / "copy")
    assert "response_cache" not in (tmp_path / "copy" / "m" / "config.pbtxt").read_text()
    folder = repository.folders[0]
    assert repository.config(folder, ModelSettings(2, 4)).response_cache.enable


def test_large_files_are_not_copied(repository: TunedRepository, tmp_path: Path) -> None:
    """A large file of a copy is the same file on the disk."""
    repository.copy(PRESENT, tmp_path / "copy")
    paths = [tmp_path / folder / "m" / "1" / "model.py" for folder in ("models", "copy")]
    assert paths[0].samefile(paths[1])


def test_digest_changes_with_the_served_files_only(
    repository: TunedRepository, tmp_path: Path
) -> None:
    """The digest that decides about resuming depends on the files of the served model,
    and on no others.
    """
    before = repository.digest()
    (tmp_path / "models" / "other" / "1" / "model.py").write_text("changed")
    assert repository.digest() == before
    (tmp_path / "models" / "m" / "1" / "model.py").write_text("changed")
    assert repository.digest() != before
