"""Killing a process that packs, and the memory that packing uses."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

from sample_repositories import write_repository

from constructs_triton_core.untrusted.drafts import partial_folder, remove_abandoned
from triton_model_check.model_repository import pack
from triton_model_check.model_repository.archive_inspection import inspect_archive

FILES = {"net/config.pbtxt": b'backend: "python"\n', "net/1/model.py": b""}

PACK_ENDLESSLY = """
import itertools, sys
from triton_model_check.model_repository import ModelRepository, pack
repository = ModelRepository.from_directory(sys.argv[1])
for run in itertools.count():
    pack(repository, ["net"], sys.argv[2], archive_name="net.tar.gz", compression_level=run % 4)
    print(run, flush=True)
"""

MEASURE_MEMORY = """
import resource, sys
from triton_model_check.model_repository import ModelRepository, pack
peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
repository = ModelRepository.from_directory(sys.argv[1])
pack(repository, ["small"], sys.argv[2], use_cache=False)
before = peak()
pack(repository, ["net"], sys.argv[2], use_cache=False)
print(peak() - before)
"""


def start(code: str, *arguments: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", code, *map(str, arguments)], stdout=subprocess.PIPE, text=True
    )


def test_killed_pack_leaves_nothing(tmp_path: Path, own_cache: Path) -> None:
    """After SIGKILL at any moment, files are complete,
    and the next run deletes what is left over.
    """
    chance = random.Random(7)
    repository = write_repository(
        tmp_path / "r", {**FILES, "net/1/weights.bin": chance.randbytes(20_000_000)}
    )
    expected = pack(repository, ["net"], tmp_path / "reference", use_cache=False)
    out, name = tmp_path / "out", "net.tar.gz"
    for _ in range(4):
        with start(PACK_ENDLESSLY, tmp_path / "r", out) as process:
            assert process.stdout is not None
            process.stdout.readline()  # it is packing by now
            time.sleep(chance.uniform(0, 0.3))
            process.send_signal(signal.SIGKILL)
        assert inspect_archive(out / name).digest == expected.digest
        again = pack(repository, ["net"], out, archive_name=name)
        assert again.path.read_bytes() == expected.path.read_bytes()
        assert [path.name for path in out.iterdir()] == [name]
    other = write_repository(
        tmp_path / "other", FILES
    )  # the next run that writes the cache deletes what is left over
    pack(other, ["net"], out)
    assert not list(own_cache.rglob(".constructs-triton-*"))


def test_only_folders_of_dead_processes_are_abandoned(tmp_path: Path) -> None:
    """The folder of a running process is kept; that of a dead one is deleted."""
    (tmp_path / ".constructs-triton-dead").mkdir()
    with partial_folder(tmp_path) as alive:
        remove_abandoned(tmp_path)
        assert list(tmp_path.iterdir()) == [alive]
    assert list(tmp_path.iterdir()) == []


def test_lock_is_released(tmp_path: Path) -> None:
    """After the block, the next file that is opened gets the same descriptor as before it."""

    def next_descriptor() -> int:
        descriptor = os.open(tmp_path, os.O_RDONLY)
        os.close(descriptor)
        return descriptor

    before = next_descriptor()
    with partial_folder(tmp_path):
        pass
    assert next_descriptor() == before


def test_memory_does_not_grow_with_the_model(tmp_path: Path) -> None:
    """Packing 300 MB takes less than 64 MB more memory than packing a few bytes."""
    write_repository(tmp_path / "r", {**FILES, "small/config.pbtxt": FILES["net/config.pbtxt"]})
    with (tmp_path / "r/net/1/weights.bin").open("wb") as file:
        file.truncate(300_000_000)
    with start(MEASURE_MEMORY, tmp_path / "r", tmp_path / "out") as process:
        grown_mib, _ = process.communicate()
    assert int(grown_mib) < 64
