"""What reads bytes of unknown origin, with valid samples to mutate."""

from __future__ import annotations

import gzip
import io
import random
import shutil
import tarfile
import zipfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import file_targets as files
from check_examples.torch_and_plan import plan, torchscript, zipped
from client_targets import answers, read_answer
from reader_targets import READERS
from template_targets import read_assembly, seeds

from constructs_triton_client.server_sent_events import EventReader
from constructs_triton_client.wire import decode_request
from constructs_triton_client.wire.content_type import format_content_type
from constructs_triton_client.wire.responses import decode_response
from constructs_triton_core.errors import ConstructsTritonError
from constructs_triton_core.model_index import ModelIndex
from constructs_triton_functions.model_sync.index import Index
from constructs_triton_functions.model_sync.manifest import FileManifest, Manifest
from constructs_triton_tools.local.server.unpacking import unpack
from constructs_triton_tools.planning.measurements import read_measurements
from constructs_triton_tools.planning.traffic import read_traffic
from triton_model_check.model.folder import ModelFolder
from triton_model_check.model.packed_environment import packed_python
from triton_model_check.model.python_source import PythonSource
from triton_model_check.model_config.locations import Locations
from triton_model_check.model_config.text import parse_model_config
from triton_model_check.model_files import describe
from triton_model_check.model_repository import ModelRepository
from triton_model_check.model_repository.archive_inspection import inspect_archive

PROJECT = Path(__file__).resolve().parents[2]
CONTRACT = PROJECT / "packages" / "check" / "tests" / "contract"
ORACLES = (CONTRACT / "oracle" / "cases.tar.gz", CONTRACT / "oracle_onnx" / "cases.tar.gz")


@dataclass(frozen=True)
class FuzzTarget:
    """``read`` gets the bytes and an empty folder; it may raise only ``errors``."""

    name: str
    samples: Callable[[], list[bytes]]
    read: Callable[[bytes, Path], object]
    errors: tuple[type[Exception], ...] = (ConstructsTritonError,)


# --- samples --------------------------------------------------------------------------------------


def _oracle(suffix: str) -> Iterator[bytes]:
    for oracle in ORACLES:
        with tarfile.open(oracle) as archive:
            for member in archive:
                is_sample = (
                    member.isreg() and member.name.endswith(suffix) and 0 < member.size < 20_000
                )
                if is_sample and (file := archive.extractfile(member)) is not None:
                    yield file.read()


@cache
def configurations() -> list[bytes]:
    """Configurations of the cases that the real server has decided,
    and of the project's own models.
    """
    return [
        *_oracle("config.pbtxt"),
        *(path.read_bytes() for path in PROJECT.glob("assets/**/config.pbtxt")),
    ]


@cache
def sources() -> list[bytes]:
    """Python models."""
    return [
        *_oracle("model.py"),
        *(path.read_bytes() for path in PROJECT.glob("assets/**/model.py")),
    ]


@cache
def onnx_models() -> list[bytes]:
    """ONNX models of the cases that the real server has decided."""
    return list(_oracle(".onnx"))


def _torch_archives() -> list[bytes]:
    """Archives that PyTorch wrote."""
    return [
        path.read_bytes()
        for path in (PROJECT / "packages/check/tests/model_files/torch_archives").glob("*.pt*")
    ]


@cache
def _torch_code() -> list[bytes]:
    """Code in these archives: what follows the class's name, and one with each type of argument."""
    arguments = (
        "x: Tensor, y: List[Tensor], mask: Optional[Tensor], d: Dict[str, Tensor], scale: float=1."
    )
    return [zipfile.ZipFile(io.BytesIO(torchscript(arguments))).read("model/code/__torch__.py")]


def _other_models() -> list[bytes]:
    """The beginning of a model in each format that is recognized by its beginning."""
    return [
        plan("10.3.0.26"),
        b'<?xml version="1.0"?>\n'
        b'<net name="m" version="11"><layers><layer type="Const"/></layers></net>',
        b'{"learner": {"attributes": {}}}',
        b"{L\0\0\0\0\0\0\0\7learner{",
        b"tree\nversion=v3\n",
        b"\x08\x01\x12\x10saved_model",
        b"version https://git-lfs.github.com/spec/v1\n",
    ]


def tar_streams() -> list[bytes]:
    """An archive in each format, with long names and extended headers."""
    return [
        _tar(tar_format)
        for tar_format in (tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT)
    ]


def gzip_streams() -> list[bytes]:
    """Archives, also one whose content does not fit into a buffer of the reader."""
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as archive:
        info = tarfile.TarInfo("net/1/weights.bin")
        info.size = 150_000
        archive.addfile(info, io.BytesIO(random.Random(1).randbytes(info.size)))
    return [gzip.compress(each, mtime=0) for each in (*tar_streams(), stream.getvalue())]


def _tar(tar_format: int) -> bytes:
    stream = io.BytesIO()
    files = {"net/config.pbtxt": b'backend: "onnxruntime"\n', "net/1/model.onnx": bytes(700)}
    with tarfile.open(fileobj=stream, mode="w", format=tar_format) as archive:
        for name, content in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            info.pax_headers = {"comment": "a comment", "mtime": "1.5"}
            archive.addfile(info, io.BytesIO(content))
        if tar_format != tarfile.USTAR_FORMAT:
            archive.addfile(tarfile.TarInfo("net/1/" + "long/" * 40 + "name"))
        link = tarfile.TarInfo("net/1/link")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc"
        archive.addfile(link)
    return stream.getvalue()


def _environments() -> list[bytes]:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as archive:
        archive.addfile(tarfile.TarInfo("lib/python3.11/site.py"))
    return [stream.getvalue(), gzip.compress(stream.getvalue(), mtime=0)]


def _tables() -> list[bytes]:
    return [path.read_bytes() for path in PROJECT.glob("examples/*/*/benchmark.csv")]


# --- readers --------------------------------------------------------------------------------------


def _read_configuration(content: bytes, _: Path) -> None:
    parse_model_config(content)
    Locations(content.decode("utf-8", "replace")).find(("input", 0, "dims"))


def _check_repository(content: bytes, folder: Path) -> None:
    (folder / "m" / "1").mkdir(parents=True)
    (folder / "m" / "config.pbtxt").write_bytes(content)
    ModelRepository.from_directory(folder).check()
    ModelFolder("m", folder / "m").locate(("input", 0))


def _check_onnx_model(content: bytes, folder: Path) -> None:
    (folder / "m" / "1").mkdir(parents=True)
    (folder / "m" / "1" / "model.onnx").write_bytes(content)
    (folder / "m" / "config.pbtxt").write_text('backend: "onnxruntime" max_batch_size: 4')
    describe(folder / "m" / "1" / "model.onnx")
    ModelRepository.from_directory(folder).check()


OTHER_NAMES = (
    "model.plan",
    "model.xml",
    "xgboost.json",
    "xgboost.model",
    "model.txt",
    "model.dali",
    "m",
)


def _describe_torch(content: bytes, folder: Path) -> None:
    (folder / "m" / "1").mkdir(parents=True)
    (folder / "m" / "1" / "model.pt").write_bytes(content)
    (folder / "m" / "config.pbtxt").write_text('backend: "pytorch"')
    describe(folder / "m" / "1" / "model.pt")
    ModelRepository.from_directory(folder).check()


def _describe_torch_code(content: bytes, folder: Path) -> None:
    data = b"\x80\x02c__torch__\nNet\n" + content[:200]
    files = {"constants.pkl": b"\x80\x02).", "data.pkl": data, "code/__torch__.py": content}
    (folder / "model.pt").write_bytes(zipped(files))
    describe(folder / "model.pt")


def _describe_others(content: bytes, folder: Path) -> None:
    for name in OTHER_NAMES:
        (folder / name).write_bytes(content)
        describe(folder / name)
    (folder / "model.savedmodel").mkdir()
    (folder / "model.savedmodel" / "saved_model.pb").write_bytes(content)
    describe(folder / "model.savedmodel")


def _read_archive(content: bytes, folder: Path) -> None:
    path = folder / "a.tar.gz"
    path.write_bytes(content)
    try:
        unpack(path, folder / "unpacked")
    except ConstructsTritonError:
        assert [entry.name for entry in folder.iterdir()] == ["a.tar.gz"], (
            "something is left behind"
        )
    shutil.rmtree(folder / "unpacked", ignore_errors=True)
    inspect_archive(path)


def _read_tar(content: bytes, folder: Path) -> None:
    _read_archive(gzip.compress(_with_checksums(content), 1, mtime=0), folder)


def _with_checksums(content: bytes) -> bytes:
    """Correct the checksums, so that damaged headers are read."""
    fixed = bytearray(content)
    for start in range(0, len(fixed) - 511, 512):
        if fixed[start + 257 : start + 262] == b"ustar":
            total = sum(fixed[start : start + 148]) + sum(fixed[start + 156 : start + 512]) + 256
            fixed[start + 148 : start + 156] = b"%06o\0 " % total
    return bytes(fixed)


def _read_environment(content: bytes, folder: Path) -> None:
    (folder / "env.tar.gz").write_bytes(content)
    packed_python(str(folder / "env.tar.gz"))


def _read_source(content: bytes, _: Path) -> None:
    source = PythonSource("m/1/model.py", content)
    assert source.binds_model in (True, False)
    assert source.lacks_execute in (True, False)
    assert source.may_complete in (True, False)


def _read_csv(content: bytes, folder: Path) -> None:
    (folder / "a.csv").write_bytes(content)
    read_measurements(folder / "a.csv")


def _read_traffic(content: bytes, folder: Path) -> None:
    for name in ("a.csv", "a.json"):
        (folder / name).write_bytes(content)
        with suppress(ConstructsTritonError):
            read_traffic(folder / name)


def _read_events(content: bytes, _: Path) -> None:
    whole, in_bytes = EventReader(), EventReader()
    events = [*whole.feed(content), *whole.finish()]
    parts = (content[at : at + 1] for at in range(len(content)))
    assert [
        *(event for part in parts for event in in_bytes.feed(part)),
        *in_bytes.finish(),
    ] == events


def _read_response(content: bytes, _: Path) -> None:
    decode_response(content, "application/json")
    decode_response(content, "")


def _read_request(content: bytes, _: Path) -> None:
    decode_request(content, "application/json")
    size = format_content_type(min(len(content), len(REQUEST)))
    decode_request(content, size)


INDEX = (
    b'{"version": 1, "target_models": {"a": "a.tar.gz"}, "deployed": {"a": "x"}, '
    b'"retired": {"b": 1.5}}'
)
MANIFEST = (
    b'{"version": 1, "archives": [{"Name": "a", "SourceKey": "b", "TargetModel": "c", '
    b'"SizeBytes": 1}]}'
)
FILE_MANIFEST = (
    b'{"version": 1, "zip": "z", "files": [{"Path": "a/1", "SizeBytes": 1, "SourceKey": "b"},'
    b' {"Path": "a/2", "SizeBytes": 2, "Offset": 3, "Crc32": 4}]}'
)
RESPONSE = b"""{"model_name": "m", "outputs": [
 {"name": "Y", "datatype": "FP32", "shape": [1, 2], "data": [1.5, 2]},
 {"name": "S", "datatype": "BYTES", "shape": [1], "data": ["a"]}]}"""
TRAFFIC = (
    b"minute,invocations\n0,10\n1,20\n5,0\n",
    b"timestamp,invocations\n2026-01-05T08:30:00Z,10\n2026-01-05T08:35:00+01:00,1.5\n",
    b'{"MetricDataResults": [{"Timestamps": ["2026-01-05T08:30:00Z", 1767600000], '
    b'"Values": [1.0, 2]}]}',
)
REQUEST = b"""{"id": "1", "parameters": {"sequence_id": 1},
 "outputs": [{"name": "Y", "parameters": {"binary_data": true}}],
 "inputs": [{"name": "X", "datatype": "INT32", "shape": [2], \
"parameters": {"binary_data_size": 8}}]}"""
EVENTS = b': c\n\ndata: {"a": 1}\r\n\r\ndata: x\ndata: y\n\nevent: z\rdata:\xc3\xbc\r\r'

TARGETS = (
    FuzzTarget("configuration", configurations, _read_configuration),
    FuzzTarget("repository", configurations, _check_repository),
    FuzzTarget("onnx", onnx_models, _check_onnx_model),
    FuzzTarget("torchscript", _torch_archives, _describe_torch),
    FuzzTarget("torchscript-code", _torch_code, _describe_torch_code),
    FuzzTarget("other-models", _other_models, _describe_others),
    FuzzTarget("tar", tar_streams, _read_tar),
    FuzzTarget("gzip", gzip_streams, _read_archive),
    FuzzTarget("environment", _environments, _read_environment),
    FuzzTarget("python", sources, _read_source),
    FuzzTarget(
        "index", lambda: [INDEX], lambda content, _: Index.from_json(content), (ValueError,)
    ),
    FuzzTarget("client-index", lambda: [INDEX], lambda content, _: ModelIndex.from_json(content)),
    FuzzTarget(
        "manifest",
        lambda: [MANIFEST],
        lambda content, _: Manifest.from_json(content),
        (ValueError,),
    ),
    FuzzTarget(
        "files",
        lambda: [FILE_MANIFEST],
        lambda body, _: FileManifest.from_json(body),
        (ValueError,),
    ),
    FuzzTarget("response", lambda: [RESPONSE], _read_response),
    FuzzTarget("request", lambda: [REQUEST + bytes(8)], _read_request),
    FuzzTarget("events", lambda: [EVENTS], _read_events),
    FuzzTarget("answers", answers, read_answer),
    FuzzTarget("csv", _tables, _read_csv),
    FuzzTarget("traffic", lambda: [*TRAFFIC], _read_traffic),
    FuzzTarget("json", lambda: [*files.VALUES], files.read_values),
    FuzzTarget("arrays", files.arrays, files.read_array_file),
    FuzzTarget("recorded", lambda: [files.RECORDED], files.read_recorded),
    FuzzTarget("lines", lambda: [files.LINES], files.read_line_file),
    FuzzTarget("prices", lambda: [files.PRICES], files.read_price_file),
    FuzzTarget("patterns", lambda: [files.PATTERNS], files.read_patterns),
    FuzzTarget("generation", lambda: [files.GENERATION], files.read_generation_events),
    FuzzTarget("logs", lambda: [files.LOG], files.read_log),
    FuzzTarget("templates", seeds, read_assembly),
    FuzzTarget("names", lambda: [*files.NAMES], files.read_name),
    *(FuzzTarget(each.name, each.samples, each.read) for each in READERS),
)
