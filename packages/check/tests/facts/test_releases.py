"""What each release has: every row of the table is asked, so a new row needs no new test."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import onnx
import pytest
from check_examples.repositories import CLASS, HEAD, Files, write
from onnx import TensorProto, helper

from constructs_triton_core.facts.versions import parse_version
from triton_model_check.facts.backend_releases import onnx_runtime
from triton_model_check.facts.images import newest_release, published_versions, python_version
from triton_model_check.facts.published import load
from triton_model_check.facts.releases import (
    Release,
    first_release_with_fields,
    new_fields,
    newest_known_release,
    release,
    releases,
    unknown_facts,
)
from triton_model_check.model_config.release_fields import fields_after
from triton_model_check.model_config.schema import new_model_config
from triton_model_check.model_config.target import Target
from triton_model_check.model_files.model_file import ModelFile
from triton_model_check.model_files.onnx_file import describe_onnx
from triton_model_check.model_repository import ModelRepository

KNOWN = [row for row in releases() if row.is_known]
UNKNOWN = [row for row in releases() if not row.is_known]
OUTSIDE = ["20.12", "21.07", "27.12"]


def _version(row: Release) -> str:
    return row.version


def _described(folder: Path, image: str, opset: int, ir_version: int, ml_opset: int) -> ModelFile:
    tensors = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n"]) for name in "xy"]
    node = helper.make_node("Abs", ["x"], ["y"])
    graph = helper.make_graph([node], "g", tensors[:1], tensors[1:])
    imports = [helper.make_opsetid("", opset), helper.make_opsetid("ai.onnx.ml", ml_opset)]
    model = helper.make_model(graph, opset_imports=imports)
    model.ir_version = ir_version
    path = folder / "model.onnx"
    onnx.save(model, path)
    with path.open("rb") as file:
        return describe_onnx(path, file, image)


def _codes(file: ModelFile) -> list[str]:
    return [fault.code for fault in file.faults]


def test_table_has_every_month_up_to_the_newest_release() -> None:
    """NVIDIA publishes one release a month, and the newest one is that of the targets."""
    months = [parse_version(row.version) for row in releases()]
    assert months[0] == (21, 8)
    numbers = [year * 12 + month for year, month in months]
    assert numbers == list(range(numbers[0], numbers[0] + len(numbers)))
    assert releases()[-1].version == newest_release()


@pytest.mark.parametrize("row", KNOWN, ids=_version)
def test_limits_of_a_release_are_those_of_its_onnx_runtime(row: Release, tmp_path: Path) -> None:
    """A model at each limit has no fault, and one beyond it names the runtime of the image."""
    runtime = onnx_runtime(row.version)
    assert runtime is not None
    assert runtime.version == row.onnxruntime
    assert runtime.supports_bf16 is (parse_version(row.version) >= (26, 3))
    limits = (runtime.max_opset, runtime.max_ir_version, runtime.max_ml_opset)
    assert _codes(_described(tmp_path, row.version, *limits)) == []
    for index in range(3):
        beyond = [limit + (index == place) for place, limit in enumerate(limits)]
        (fault,) = _described(tmp_path, row.version, *beyond).faults
        assert fault.code == "onnx-version"
        assert f"ONNX Runtime {runtime.version} of the image" in fault.message


def test_limits_only_grow() -> None:
    """No release has an older ONNX Runtime or lower limits than the one before."""
    runtimes = [runtime for row in KNOWN if (runtime := onnx_runtime(row.version)) is not None]
    assert len(runtimes) == len(KNOWN)
    for before, after in pairwise(runtimes):
        assert _numbers(before.version) <= _numbers(after.version)
        assert before.max_opset <= after.max_opset
        assert before.max_ml_opset <= after.max_ml_opset
        assert before.max_ir_version <= after.max_ir_version


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))


@pytest.mark.parametrize("version", [*OUTSIDE, *map(_version, UNKNOWN)])
def test_unknown_runtime_refuses_and_accepts_nothing(version: str, tmp_path: Path) -> None:
    """Without the limits of the image, a model has no fault, and the report says why."""
    for opset in (7, 39):
        file = _described(tmp_path, version, opset, 3, 1)
        assert file.faults == ()
        assert f"the ONNX Runtime of image {version} is not known" in file.not_checked[-1]


@pytest.mark.parametrize("row", KNOWN, ids=_version)
def test_known_release_leaves_nothing_open(row: Release, tmp_path: Path) -> None:
    """A model in Python is checked completely, with the Python of the release."""
    found = _check(tmp_path, HEAD, row.version)
    assert (found.not_checked, found.errors) == ((), ())
    assert unknown_facts(row.version) == ()
    assert python_version(row.version) == row.python
    assert row.backends is not None
    assert {"python", "onnxruntime", "tensorrt", "pytorch"} <= row.backends
    assert ("tensorflow" in row.backends) is (parse_version(row.version) < (25, 3))


@pytest.mark.parametrize("version", [*OUTSIDE, *map(_version, UNKNOWN)])
def test_unknown_release_is_said_to_be_unknown(version: str, tmp_path: Path) -> None:
    """The report says what of an unknown image is not checked: backend, Python and old fields."""
    config = HEAD.replace('"python"', '"pytorch"')
    found = _check(tmp_path, config, version, "model.pt")
    said = " ".join(found.not_checked)
    assert f'whether image {version} has the backend "pytorch"' in said
    assert ("knows all fields" in said) is (version in OUTSIDE[:2])
    assert not [each for each in found.errors if each.code.startswith("target-")]

    in_python = _check(tmp_path / "python", HEAD, version)
    assert f"the Python of image {version}" in " ".join(in_python.not_checked)


def _check(folder: Path, config: str, version: str, file: str = "model.py") -> Any:
    files: Files = {"m/config.pbtxt": config, f"m/1/{file}": CLASS}
    repository = ModelRepository.from_directory(write(files, folder / "models"))
    return repository.check(Target.named("server", image_version=version), is_packed=False)


def test_own_images_and_given_backends_are_not_asked(tmp_path: Path) -> None:
    """What the user has added to an unknown image is not a question of the table."""
    files: Files = {"m/config.pbtxt": HEAD.replace('"python"', '"mine"'), "m/1/weights": CLASS}
    repository = ModelRepository.from_directory(write(files, tmp_path / "models"))
    for backends, is_open in (((), True), (("mine",), False)):
        target = Target.named("server", image_version="27.12", backends=backends)
        said = " ".join(repository.check(target, is_packed=False).not_checked)
        assert ("has the backend" in said) is is_open


def test_images_of_all_publishers_are_in_the_table() -> None:
    """AWS has images of known releases with the Python that AWS lists; so has KServe's default."""
    listed = load("images")["versions"]
    for version in published_versions():
        row = release(version)
        assert row is not None
        assert (row.is_known, row.python) == (True, listed[version]["python"])
    default = load("targets")["assumed"]["kserve"]["image_version"]
    assert list(load("releases")["kserve"].values())[-1] == default
    assert python_version(default) == "3.10"
    assert Target.named("server").image_version == newest_known_release().version


def test_table_has_the_fields_of_the_schema() -> None:
    """The fields of all releases together are those that the parser knows."""
    added = load("releases")["new_fields"]
    known = {name for names in added.values() for name in names}
    assert known == set(_schema_names(new_model_config().DESCRIPTOR.file))


def _schema_names(file: Any) -> Iterator[str]:
    waiting = list(file.message_types_by_name.values())
    enums = list(file.enum_types_by_name.values())
    while waiting:
        message = waiting.pop()
        if message.GetOptions().map_entry:
            continue
        waiting += message.nested_types
        enums += message.enum_types
        yield from (f"{_name(message)}.{field.name}" for field in message.fields)
    for enum in enums:
        yield from (f"{_name(enum)}.{value.name}" for value in enum.values)


def _name(descriptor: Any) -> str:
    return str(descriptor.full_name).removeprefix("inference.")


@pytest.mark.parametrize("name", new_fields())
def test_field_is_known_from_its_first_release_on(name: str) -> None:
    """A configuration with the field is refused by the release before it, in protobuf's words."""
    since = new_fields()[name]
    before = releases()[[row.version for row in releases()].index(since) - 1].version
    owner, _, part = name.rpartition(".")
    config = _config_with(owner, part)

    assert not [each for each in fields_after(config, since, _never) if each.name == part]
    found = {f"{each.owner}.{each.name}": each for each in fields_after(config, before, _never)}
    # A new message is named by the field that has it.
    field = found.get(name) or next(iter(found.values()))
    assert field.since == since
    assert f'"{field.name}"' in field.said


def _never(path: tuple[str | int, ...]) -> bool:
    return False


def _config_with(owner: str, part: str) -> Any:
    """Return a configuration with a field or an enum value, in the first message that has it."""
    config = new_model_config()
    message, field = _find(config, owner, part)
    if field.enum_type is not None and _name(field.enum_type) == owner:
        value: Any = field.enum_type.values_by_name[part].number
    else:
        value = _some_value(field)
    if field.message_type is not None:
        target = getattr(message, field.name)
        target.add() if hasattr(target, "add") else target.SetInParent()
    elif hasattr(getattr(message, field.name), "append"):
        getattr(message, field.name).append(value)
    else:
        setattr(message, field.name, value)
    return config


def _some_value(field: Any) -> Any:
    if field.type == field.TYPE_STRING:
        return "x"
    return 1


def _find(config: Any, owner: str, part: str) -> tuple[Any, Any]:
    """Return a message below ``config``, made if needed, and its field with the name or enum."""
    paths: list[tuple[Any, ...]] = [()]
    for path in paths:
        descriptor = path[-1].message_type if path else config.DESCRIPTOR
        for field in descriptor.fields:
            has_value = field.enum_type is not None and _name(field.enum_type) == owner
            if (_name(descriptor) == owner and field.name == part) or has_value:
                return _made(config, path), field
            if field.message_type is not None and not _is_map(field) and field not in path:
                paths.append((*path, field))
    raise AssertionError(f"{owner}.{part} is not below ModelConfig")


def _is_map(field: Any) -> bool:
    return bool(field.message_type.GetOptions().map_entry)


def _made(config: Any, path: tuple[Any, ...]) -> Any:
    message = config
    for field in path:
        inner = getattr(message, field.name)
        if hasattr(inner, "add"):
            message = inner.add()
        else:
            inner.SetInParent()
            message = inner
    return message


def test_written_default_is_a_field_too(tmp_path: Path) -> None:
    """An older parser refuses a new field also where its value is the default."""
    config = HEAD.replace("dims: [ 4 ]", "dims: [ 4 ] optional: false", 1)
    assert "optional: false" in config
    (found,) = _check(tmp_path, config, "21.12").errors
    assert (found.code, found.path) == ("target-field-too-new", "m/config.pbtxt")
    assert 'message type "inference.ModelInput" has no field named "optional"' in found.message
    assert _check(tmp_path, config, "22.01").errors == ()


def test_new_enum_value_is_refused_by_an_older_release(tmp_path: Path) -> None:
    """BF16 is an unknown enumeration value before 22.05."""
    config = HEAD.replace("TYPE_FP32", "TYPE_BF16")
    (found, *_) = _check(tmp_path, config, "22.04").errors
    assert 'unknown enumeration value of "TYPE_BF16" for field "data_type"' in found.message
    assert _check(tmp_path, config, "22.05").errors == ()


def test_first_release_with_fields_is_that_of_the_table() -> None:
    """Fields and releases begin with the same release."""
    assert first_release_with_fields() == releases()[0].version
