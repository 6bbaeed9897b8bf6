"""What model files say in formats other than ONNX."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import pytest
from check_examples.torch_and_plan import plan, torchscript, traced, zipped
from hypothesis import given, settings
from hypothesis import strategies as st

from triton_model_check.facts.backend_releases import unsupported_xgboost
from triton_model_check.model_files import describe
from triton_model_check.model_files.model_file import ModelFile
from triton_model_check.model_files.wrong_content import recognize

ARCHIVES = Path(__file__).parent / "torch_archives"


def _described(
    content: bytes, name: str, folder: Path, image_version: str | None = None
) -> ModelFile:
    path = folder / name
    path.write_bytes(content)
    return describe(path, image_version)


def test_folder_in_place_of_a_file_is_a_fault(tmp_path: Path) -> None:
    """A folder can be opened, but not as a file."""
    (tmp_path / "model.pt").mkdir()
    assert _messages(describe(tmp_path / "model.pt")) == [
        'failed to stat file "model.pt": it is a folder'
    ]


def _messages(found: ModelFile) -> list[str]:
    return [fault.message for fault in found.faults]


# --- TorchScript ----------------------------------------------------------------------------------


PAIR = [("ids", "Tensor"), ("mask", "Optional[Tensor]"), ("scale", "float")]


@pytest.mark.parametrize(
    ("name", "arguments", "types", "devices", "faults"),
    [
        ("traced.pt", [("x", "Tensor")], ("TYPE_FP32",), ("cpu",), 0),
        ("nested.pt", [("x", "Tensor"), ("y", "Tensor")], (), (), 0),
        ("mapping.pt", [("inputs", "Dict[str, Tensor]")], (), (), 0),
        ("pair.pt", PAIR, (), (), 2),
    ],
)
def test_arguments_of_real_archives(
    name: str,
    arguments: list[tuple[str, str]],
    types: tuple[str],
    devices: tuple[str, ...],
    faults: int,
) -> None:
    """The arguments of ``forward`` and the devices in the code, of archives that PyTorch wrote."""
    found = describe(ARCHIVES / name)
    assert [(each.name, each.data_type) for each in found.inputs] == arguments
    assert (found.traced_types, found.devices, len(found.faults)) == (types, devices, faults)


@pytest.mark.parametrize(
    ("storages", "types"),
    [
        (("LongStorage", "FloatStorage"), ("TYPE_INT64", "TYPE_FP32")),
        (("LongStorage", "LongStorage"), ("TYPE_INT64", "TYPE_INT64")),
        (("LongStorage", "QInt8Storage"), ()),
    ],
)
def test_types_of_a_traced_archive(
    storages: tuple[str, str], types: tuple[str, ...], tmp_path: Path
) -> None:
    """PyTorch 2.1 and newer store the inputs of the trace;
    a name that is used twice is stored once.
    """
    assert _described(traced(*storages), "model.pt", tmp_path).traced_types == types


@pytest.mark.parametrize(
    ("name", "what"),
    [
        ("state_dict.pt", "a state_dict or a pickled module of torch.save"),
        ("module.pt", "a state_dict or a pickled module of torch.save"),
        ("old_state_dict.pt", "a pickle, as older versions of torch.save write"),
        ("exported.pt2", "an exported program (.pt2) of torch.export"),
    ],
)
def test_other_files_of_pytorch_are_named(name: str, what: str) -> None:
    """Files that the backend cannot load, as PyTorch wrote them."""
    found = describe(ARCHIVES / name)
    assert _messages(found) == [f"is not a TorchScript archive: it is {what}"]


NO_CODE = "is not a TorchScript archive: it is a zip archive without the code of a model"


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("model.pt", b"", "is not a TorchScript archive: it is an empty file"),
        (
            "model.pt",
            torchscript()[:-30],
            "is not a TorchScript archive: it is an incomplete zip archive",
        ),
        ("model.pt", zipped({"readme.txt": b"x"}), NO_CODE),
        ("model.pt", b"hello", "is not a TorchScript archive"),
        ("model.plan", b"", "is not a TensorRT plan: it is an empty file"),
        ("model.plan", plan()[:20], "is not a TensorRT plan: it is an incomplete TensorRT plan"),
        ("model.plan", b"x" * 40, "is not a TensorRT plan"),
        ("model.xml", b"<html>", "is not an OpenVINO model: it is a web page"),
        ("model.xml", b"<opset/>", "is not an OpenVINO model: it has no element <net>"),
        ("model.savedmodel", b"\x08\x01", "is not a SavedModel: it is a file, not a folder"),
    ],
)
def test_what_is_in_place_of_a_model_is_named(
    name: str, content: bytes, message: str, tmp_path: Path
) -> None:
    """A file without the form of its ending is refused, also one of unknown content."""
    assert _messages(_described(content, name, tmp_path)) == [message]


def test_package_of_aot_inductor_is_named(tmp_path: Path) -> None:
    """The backend reads it with another platform, which the hint names."""
    content = zipped({"data/aotinductor/model/a.cpp": b"", "archive_format": b"pt2"})
    (fault,) = _described(content, "model.pt", tmp_path).faults
    assert "AOT Inductor" in fault.message
    assert 'platform: "torch_aoti"' in fault.hint


@pytest.mark.parametrize(
    ("arguments", "faulty"),
    [
        ("x: Tensor, y: List[Tensor]", []),
        ("x: Dict[str, Tensor]", []),
        ("x: Dict[str, Tensor], y: Tensor", ["x"]),
        ("x: Tensor, mask: Optional[Tensor], scale: float=1.", ["mask", "scale"]),
        ("x: __torch__.Own", []),
    ],
)
def test_arguments_that_the_backend_cannot_pass(
    arguments: str, faulty: list[str], tmp_path: Path
) -> None:
    """Tensors, lists, and one dictionary are passed; types of unknown meaning are not refused."""
    found = _described(torchscript(arguments), "model.pt", tmp_path)
    assert [fault.message.split('"')[1] for fault in found.faults] == faulty
    assert {fault.code for fault in found.faults} <= {"torchscript-arguments"}


@pytest.mark.parametrize(
    "content",
    [
        torchscript().replace(b"class Net", b"class Nut"),
        zipped({"constants.pkl": b"\x80\x02).", "data.pkl": b"\x80\x02}."}),
    ],
    ids=["wrong checksum", "no forward"],
)
def test_archive_without_readable_arguments_is_accepted(content: bytes, tmp_path: Path) -> None:
    """PyTorch does not compare checksums, and the class of an archive may not be found."""
    found = _described(content, "model.pt", tmp_path)
    assert (found.inputs, found.faults) == ((), ())


def test_large_members_are_not_unpacked(tmp_path: Path) -> None:
    """A member that unpacks to many megabytes is not read."""
    path = tmp_path / "model.pt"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("model/constants.pkl", b"\x80\x02).")
        archive.writestr("model/code/__torch__.py", b" " * (16 << 20))
    assert (describe(path).inputs, describe(path).faults) == ((), ())


@settings(deadline=None)
@given(
    position=st.integers(0, len(torchscript()) - 1), replacement=st.binary(min_size=1, max_size=4)
)
def test_damaged_archives_are_described(
    position: int, replacement: bytes, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Whatever bytes of an archive are changed, describing it raises no error."""
    content = bytearray(torchscript())
    content[position : position + len(replacement)] = replacement
    assert (
        _described(bytes(content), "model.pt", tmp_path_factory.getbasetemp()).format
        == "torchscript"
    )


# --- TensorRT -------------------------------------------------------------------------------------


def test_version_of_a_plan(tmp_path: Path) -> None:
    """The version is compared with that of the image, if it is known."""
    found = _described(plan("10.5.0.18"), "model.plan", tmp_path)
    assert found.versions == {"tensorrt": "10.5.0.18"}
    not_checked = "the image must have the same version, which is not checked"
    assert found.not_checked == (f"built with TensorRT 10.5.0.18; {not_checked}",)
    assert _described(plan("10.0.1.6"), "model.plan", tmp_path, "24.05").faults == ()
    (fault,) = _described(plan("10.5.0.18"), "model.plan", tmp_path, "24.05").faults
    assert "expecting library version 10.0 got 10.5.0.18" in fault.message
    assert "image 24.05 has TensorRT 10.0" in fault.message
    assert "compile --image-version 24.05" in fault.hint


@pytest.mark.parametrize(
    "content",
    [plan()[:4] + b"\x01" + plan()[5:], b"ptrt" + plan()[4:], plan("0.0.0.0")],
    ids=["serialization", "older tag", "no version"],
)
def test_plan_with_an_unknown_header_is_not_judged(content: bytes, tmp_path: Path) -> None:
    """The place of the version is known for one header only."""
    found = _described(content, "model.plan", tmp_path, "24.05")
    assert (found.versions, found.faults, found.not_checked) == ({}, (), ("content not checked",))


# --- the others -----------------------------------------------------------------------------------


def test_openvino_needs_its_weights(tmp_path: Path) -> None:
    """The XML file has a ``<net>``, and the weights are beside it if a layer reads any."""
    with_weights = b'<?xml version="1.0"?><net><layer type="Const"/></net>'
    found = _described(with_weights, "model.xml", tmp_path)
    assert _messages(found) == ['the weights "model.bin" do not exist']
    (tmp_path / "model.bin").touch()
    assert describe(tmp_path / "model.xml").faults == ()
    (tmp_path / "model.bin").unlink()
    assert _described(b"<net><layer/></net>", "model.xml", tmp_path).faults == ()


@pytest.mark.parametrize(
    ("content", "model_type"),
    [
        (b"binf\0\0", ""),
        (json.dumps({"learner": {}}).encode(), "xgboost_json"),
        (b"{L\0\0\0\0\0\0\0\x07learner{", "xgboost_ubj"),
        (b"tree\nversion=v4\n", "lightgbm"),
        (b"\x04\0\0\0", ""),
        (b'{"name": "tree"}', ""),
        (b"\x1f\x8b?@\0", ""),
        (b"\x80\x02?@\0", ""),
    ],
)
def test_trees(content: bytes, model_type: str, tmp_path: Path) -> None:
    """The beginning of the file proves some formats; two bytes alone may be those of a number."""
    found = _described(content, "xgboost.model", tmp_path)
    assert (found.model_type, found.faults, found.not_checked) == (
        model_type,
        (),
        ("content not checked",),
    )


@pytest.mark.parametrize(
    ("content", "version", "not_checked"),
    [
        (b'{"learner": {}, "version": [1, 7, 6]}', "1.7", 0),
        (b'{"learner": {}, "version": [3,2,0]}', "3.2", 1),
        (
            b"{L\0\0\0\0\0\0\0\x07learner{}L\0\0\0\0\0\0\0\x07version[#L\0\0\0\0\0\0\0\x03i\2i\1i\0}",
            "2.1",
            0,
        ),
        (b'{"learner": {}}', None, 0),
    ],
)
def test_version_of_xgboost(
    content: bytes, version: str | None, not_checked: int, tmp_path: Path
) -> None:
    """JSON and UBJSON contain the version; of new versions it is not published
    which images read them.
    """
    found = _described(content, "xgboost.json", tmp_path)
    assert found.versions.get("xgboost") == version
    assert sum("is not published" in line for line in found.not_checked) == not_checked


@pytest.mark.parametrize(
    ("image", "model_type", "xgboost", "is_supported"),
    [
        ("21.07", "xgboost_json", (3, 0), True),  # not in the table
        ("22.05", "xgboost_json", (1, 5), True),
        ("22.05", "xgboost_json", (1, 6), False),
        ("24.01", "xgboost_json", (1, 6), True),
        ("24.01", "xgboost_json", (1, 7), False),
        ("24.03", "xgboost_json", (3, 2), True),
        ("24.09", "xgboost_ubj", (2, 1), False),
        ("24.10", "xgboost_ubj", (2, 0), False),
        ("26.05", "xgboost_ubj", (2, 1), True),
    ],
)
def test_formats_of_xgboost_by_image(
    image: str, model_type: str, xgboost: tuple[int, int], is_supported: bool
) -> None:
    """NVIDIA's table decides, and what it does not contain is accepted."""
    assert (unsupported_xgboost(image, model_type, xgboost) == "") == is_supported


def test_saved_model_is_a_folder(tmp_path: Path) -> None:
    """The folder contains ``saved_model.pb``."""
    folder = tmp_path / "model.savedmodel"
    assert _messages(describe(folder)) == [
        'failed to stat file "model.savedmodel": it does not exist'
    ]
    folder.mkdir()
    assert _messages(describe(folder)) == ["the folder does not contain saved_model.pb"]
    (folder / "saved_model.pb").write_bytes(b"\x08\x01")
    assert describe(folder).faults == ()
    (folder / "saved_model.pb").write_bytes(b"")
    assert _messages(describe(folder)) == ["is not a SavedModel: it is an empty file"]


@pytest.mark.parametrize(
    ("name", "what"),
    [
        ("model.dali", "a DALI pipeline"),
        ("model.txt", "a model of decision trees"),
        ("weights.bin", "a model"),
    ],
)
def test_file_that_is_certainly_not_a_model(name: str, what: str, tmp_path: Path) -> None:
    """Anything is accepted unless it is known to be something else."""
    assert _described(b"\x0a\x05", name, tmp_path).faults == ()
    assert _messages(_described(b"\x1f\x8b\x08", name, tmp_path)) == [
        f"is not {what}: it is a compressed file"
    ]


@pytest.mark.parametrize(
    ("content", "what"),
    [
        (b"", "an empty file"),
        (b"\0" * 20, "a file of zeros"),
        (b"  <!DOCTYPE html>", "a web page"),
        (b"BZh9", "a compressed file"),
        (b"\x89HDF\r\n\x1a\n", "an HDF5 file"),
        (b"\x80\x04\x95\0", "a Python pickle"),
        (b"ftrt", "an incomplete TensorRT plan"),
        (b"\x08\x07\x12", None),
    ],
)
def test_recognized_content(content: bytes, what: str | None, tmp_path: Path) -> None:
    """Files that are often in the place of a model are recognized by their beginning."""
    path = tmp_path / "file"
    path.write_bytes(content)
    with path.open("rb") as file:
        found = recognize(file)
    assert (found and found.description) == what
