"""Any bytes, folders and messages raise only this package's errors, and nothing is lost."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from constructs_triton_core.errors import ModelConfigError
from triton_model_check.model_config.target import PLATFORMS, Target
from triton_model_check.model_config.text import (
    format_model_config,
    parse_model_config,
    read_text_fault,
)
from triton_model_check.model_repository import ModelRepository

FRAGMENTS = (
    *(
        'name: "m"',
        'backend: "python"',
        'platform: "ensemble"',
        "max_batch_size: 8",
        "input",
        "output",
    ),
    *("[", "]", "{", "}", "<", ">", ":", ",", ";", "\n", "#", "//", '"', "'", "\\"),
    *(
        "dims: [ -1, 4 ]",
        "data_type: TYPE_FP32",
        "reshape { shape: [ ] }",
        "parameters",
        "model_warmup",
    ),
    *("ensemble_scheduling", "step", 'model_name: "m"', "input_map", 'key: "X"', 'value: "Y"'),
    *(
        "- 1",
        "+1",
        "0x7f",
        "99999999999999999999",
        "nan",
        "1e400",
        "${x}",
        "\ufeff",
        "\xa0",
        "\x00",
    ),
    *("instance_group [ { kind: KIND_GPU gpus: [ 0 ] } ]", "sequence_batching { direct { } }"),
    *("dynamic_batching { }", "version_policy { latest { } }"),
)
NAMES = (
    *(
        "config.pbtxt",
        "1",
        "2",
        "01",
        "1abc",
        "-1",
        "99999999999999999999",
        "model.py",
        "warmup",
        "a",
        "b",
    ),
    ".git",
)
texts = st.lists(st.sampled_from(FRAGMENTS), max_size=25).map(" ".join).map(str.encode)
contents = st.one_of(st.binary(max_size=200), texts)
names = st.one_of(
    st.sampled_from(NAMES),
    st.text(
        st.characters(exclude_characters="/\0", exclude_categories=["Cs"]), min_size=1, max_size=6
    ).filter(lambda name: name not in (".", "..")),
)
trees: st.SearchStrategy[Any] = st.recursive(
    contents, lambda inner: st.dictionaries(names, inner, max_size=4), max_leaves=12
)
repositories = st.dictionaries(names, trees, max_size=4)
targets = st.builds(
    Target,
    platform=st.sampled_from(PLATFORMS),
    gpu_count=st.sampled_from([None, 0, 1, 4]),
    memory_gib=st.sampled_from([None, 1.0]),
    storage_gb=st.sampled_from([None, 1]),
    image_version=st.sampled_from([None, "24.09", "26.05"]),
    default_model=st.sampled_from([None, "a", "b", ".."]),
    local_files=st.booleans(),
)


def write(tree: dict[str, Any], directory: Path) -> None:
    """Write the tree to disk, without the names that the file system rejects."""
    for name, value in tree.items():
        try:
            if isinstance(value, dict):
                (directory / name).mkdir()
                write(value, directory / name)
            else:
                (directory / name).write_bytes(value)
        except OSError:
            continue


@settings(max_examples=300, deadline=None)
@given(contents)
@example(b"max_batch_size: \xff")
@example(b'name: "\\')
@example(b"input { data_type: 99999999999 }")
def test_any_bytes_are_read_or_located(content: bytes) -> None:
    """Bytes either become a message, or a ``ModelConfigError`` whose finding names the file."""
    message, fault = read_text_fault(content)
    assert (message is None) == (fault is not None)
    if fault is not None:
        with pytest.raises(ModelConfigError, match=r"m/config\.pbtxt"):
            parse_model_config(content, "m/config.pbtxt")


@settings(max_examples=150, deadline=None)
@given(repositories, st.one_of(st.none(), targets), st.booleans())
def test_any_tree_of_folders_has_a_report(
    tree: dict[str, Any], target: Target | None, is_packed: bool
) -> None:
    """For any content of a folder, the verdict of the report agrees with its findings."""
    with tempfile.TemporaryDirectory() as folder:
        write(tree, Path(folder))
        repository = ModelRepository.from_directory(folder)
        report = repository.check(target, is_packed=is_packed)
        assert (report.verdict in ("loads", "unknown")) is not bool(report.errors)
        assert report.errors or (report.verdict == "unknown") is bool(report.not_checked)
        for name in repository.models:
            assert name in repository.closure(name)


@pytest.mark.parametrize("text", ['platform: "ensemble"', "platform : 'ensemble'"])
def test_ensembles_are_written_as_the_loader_looks_for_them(text: str) -> None:
    """An ensemble is always written as the multi-model loader recognizes it."""
    assert 'platform: "ensemble"\n' in format_model_config(parse_model_config(text))
