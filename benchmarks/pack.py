"""Compares pack with ``tar -czf``, ``pigz -1`` and Python's ``tarfile``, for the same weights.

    python benchmarks/pack.py [--megabytes 512] [--weights model.safetensors] [--memory-gigabytes 4]

Each runs in its own process and reads its files from the page cache. The startup time of the
interpreter is subtracted for pack and for ``tarfile``. The time of pack includes the fingerprint,
without a cache. ``--memory-gigabytes`` also measures the peak memory of packing one file of that
size.
"""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

OURS = """
import sys
from triton_model_check.model_repository import ModelRepository, pack
repository = ModelRepository.from_directory(sys.argv[1])
pack(repository, ["model"], sys.argv[2], archive_name="ours.tar.gz", use_cache=False)
"""
OUR_PEAK_MEMORY = (
    OURS + "import resource; print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)\n"
)
PYTHON_TARFILE = """
import sys, tarfile
with tarfile.open(sys.argv[2] + "/tarfile.tar.gz", "w:gz") as tar:
    tar.add(sys.argv[1] + "/model", "model")
"""
CHUNK_VALUES = 4 << 20


class Times(NamedTuple):
    """Wall time and processor time in seconds; other load affects the processor time less."""

    wall: float
    cpu: float

    def minus(self, other: Times) -> Times:
        return Times(self.wall - other.wall, self.cpu - other.cpu)


class Result(NamedTuple):
    """The shortest times of the rounds, and the bytes of the archive."""

    name: str
    times: Times
    size_bytes: int


def main() -> None:
    arguments = parse_arguments()
    with tempfile.TemporaryDirectory(prefix="pack-benchmark-", dir=arguments.directory) as name:
        folder = Path(name)
        repository = make_repository(folder / "repository")
        weights = repository / "model/1/weights.bin"
        if arguments.weights is not None:
            shutil.copyfile(arguments.weights, weights)
        else:
            write_random_weights(weights, arguments.megabytes * 1_000_000)
        (folder / "out").mkdir()
        print_results(
            list(measure(repository, folder / "out", arguments.rounds)), weights.stat().st_size
        )
        if arguments.memory_gigabytes:
            write_random_weights(weights, arguments.memory_gigabytes * 1_000_000_000)
            print(
                f"peak memory, {arguments.memory_gigabytes} GB: "
                f"{peak_memory(repository, folder / 'out')} MiB"
            )


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--megabytes", type=int, default=512, help="of generated float32 weights")
    parser.add_argument("--weights", type=Path, help="pack this file instead of generated weights")
    parser.add_argument(
        "--memory-gigabytes", type=int, default=0, help="measure peak memory on this much"
    )
    parser.add_argument(
        "--rounds", type=int, default=1, help="number of rounds, of which the best counts"
    )
    parser.add_argument(
        "--directory", type=Path, help="where to work; by default the temporary folder"
    )
    return parser.parse_args()


def make_repository(path: Path) -> Path:
    (path / "model/1").mkdir(parents=True)
    (path / "model/config.pbtxt").write_text('backend: "python"\n')
    return path


def write_random_weights(path: Path, size_bytes: int) -> None:
    """Write float32 weights from a normal distribution, which are hard to compress."""
    import numpy as np  # noqa: PLC0415 - not for --help

    generator = np.random.default_rng(0)
    with path.open("wb") as file:
        left = size_bytes // 4
        while left:
            count = min(left, CHUNK_VALUES)
            (generator.standard_normal(count, dtype=np.float32) * 0.02).tofile(file)
            left -= count


def measure(repository: Path, out: Path, rounds: int) -> Iterator[Result]:
    start = best_of(rounds + 2, lambda: run_python("pass"))
    ours = best_of(max(rounds, 2), lambda: run_python(OURS, repository, out)).minus(start)
    yield Result("constructs-triton", ours, (out / "ours.tar.gz").stat().st_size)
    for name, command in shell_commands(repository, out).items():
        run = partial(subprocess.run, command, shell=True, check=True)
        times = best_of(rounds, run)
        yield Result(name, times, (out / "shell.tar.gz").stat().st_size)
    times = best_of(rounds, lambda: run_python(PYTHON_TARFILE, repository, out)).minus(start)
    yield Result("Python tarfile", times, (out / "tarfile.tar.gz").stat().st_size)


def shell_commands(repository: Path, out: Path) -> dict[str, str]:
    archive = out / "shell.tar.gz"
    commands = {"tar -czf": f"tar -czf '{archive}' -C '{repository}' model"}
    if shutil.which("pigz"):
        commands["pigz -1"] = f"tar -cf - -C '{repository}' model | pigz -1 > '{archive}'"
    return commands


def run_python(code: str, *arguments: Path) -> None:
    subprocess.run([sys.executable, "-c", code, *map(str, arguments)], check=True)


def best_of(rounds: int, action: Callable[[], object]) -> Times:
    """Return the shortest of several times, because other load can only add time."""

    def timed() -> Times:
        begun = clocks()
        action()
        return clocks().minus(begun)

    return min(timed() for _ in range(rounds))


def clocks() -> Times:
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return Times(time.perf_counter(), children.ru_utime + children.ru_stime)


def peak_memory(repository: Path, out: Path) -> int:
    command = [sys.executable, "-c", OUR_PEAK_MEMORY, str(repository), str(out)]
    return round(float(subprocess.run(command, check=True, capture_output=True, text=True).stdout))


def print_results(results: list[Result], content_bytes: int) -> None:
    ours = results[0]
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    print(f"{content_bytes / 1e6:.0f} MB of weights, {cores} cores, load {os.getloadavg()[0]:.1f}")
    columns = ("seconds", "CPU s", "MB/s", "MB", "our time", "our CPU", "our size")
    print(f"{'':18}" + "".join(f"{column:>10}" for column in columns))
    for name, times, size_bytes in results:
        megabytes_a_second = content_bytes / 1e6 / times.wall
        print(
            f"{name:18}{times.wall:10.2f}{times.cpu:10.2f}{megabytes_a_second:10.0f}"
            f"{size_bytes / 1e6:10.1f}{times.wall / ours.times.wall:8.1f} "
            f"x{times.cpu / ours.times.cpu:8.1f} x{ours.size_bytes / size_bytes:10.4f}"
        )


if __name__ == "__main__":
    main()
