"""Compares a large model as files with an archive and with ``aws_s3_assets.Asset``, new and
changed.

    python benchmarks/files.py [--megabytes 200] [--rounds 3]

The model has random weights and a few small files. Three cases are measured: a new model, with
empty caches and an empty ``cdk.out``; the unchanged model; and the model after one small file has
changed. Each runs in its own process and reads from the page cache. The time is that of creating
the constructs, which checks the model and copies or packs it. It contains neither the start of the
CDK nor ``app.synth()``.

The bytes to upload are those of assets that the run before did not have. The CDK's command line
compresses the folder of an ``Asset`` into a zip while it deploys; the time for this is not
included, and the bytes are those of the folder, since random weights do not become smaller.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from synth import CONFIG, MODEL, SETTLING_SECONDS, write_random

CASES = ("new", "unchanged", "one small file changed")

PRELUDE = """
import sys, time
import aws_cdk as cdk
from aws_cdk import aws_s3_assets as assets
from constructs_triton import (
    CompressionType, InstanceType, ModelSource, TritonEndpoint, TritonModelRepository
)
app = cdk.App(outdir=sys.argv[2])
stack = cdk.Stack(app, "Benchmark", env=cdk.Environment(account="123456789012", region="eu-west-1"))
warm = cdk.Stack(cdk.App(), "Warm", env=cdk.Environment(account="123456789012", region="eu-west-1"))


def add(stack, path, **options):
    source = ModelSource.from_directory(path)
    repository = TritonModelRepository(stack, "Models", source=source)
    type = InstanceType.of("ml.g5.xlarge")
    TritonEndpoint(stack, "Endpoint", model_repository=repository, instance_type=type, **options)


compression_type = CompressionType(sys.argv[4]) if sys.argv[4] != "Asset" else None
add(warm, sys.argv[3], compression_type=compression_type)
assets.Asset(warm, "Asset", path=sys.argv[3])
begun = time.perf_counter()
"""
OURS = PRELUDE + "add(stack, sys.argv[1], compression_type=compression_type)\n"
CDK_ASSET = PRELUDE + 'assets.Asset(stack, "Asset", path=sys.argv[1])\n'
END = "print(time.perf_counter() - begun)\napp.synth()\n"

SUBJECTS = {
    "files (NONE)": ("None", OURS),
    "archive (GZIP)": ("Gzip", OURS),
    "Asset": ("Asset", CDK_ASSET),
}


class Result(NamedTuple):
    """Seconds to create the constructs, bytes to upload, and bytes of ``cdk.out`` on disk."""

    seconds: float
    upload_bytes: int
    disk_bytes: int


def main() -> None:
    arguments = parse_arguments()
    with tempfile.TemporaryDirectory(prefix="files-benchmark-", dir=arguments.directory) as name:
        folder = Path(name)
        write_model(folder / "warm", 0)
        write_model(folder / "model", arguments.megabytes * 1_000_000)
        time.sleep(SETTLING_SECONDS)
        found = {
            subject: best_of(folder, subject, arguments.rounds) for subject in arguments.subjects
        }
    print_results(found, arguments.megabytes)


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--megabytes", type=int, default=200, help="of the model's weights")
    parser.add_argument(
        "--rounds", type=int, default=3, help="number of rounds, of which the best counts"
    )
    parser.add_argument(
        "--directory", type=Path, help="where to work; by default the temporary folder"
    )
    parser.add_argument("--subjects", nargs="+", choices=SUBJECTS, default=list(SUBJECTS))
    return parser.parse_args()


def write_model(directory: Path, weight_bytes: int) -> None:
    version = directory / "model" / "1"
    version.mkdir(parents=True)
    (directory / "model" / "config.pbtxt").write_text(CONFIG)
    (version / "model.py").write_text(MODEL)
    (version / "labels.txt").write_text("0")
    if weight_bytes:
        write_random(version / "weights.bin", weight_bytes)


def best_of(folder: Path, subject: str, rounds: int) -> list[Result]:
    found = [list(measure(folder, subject)) for _ in range(rounds)]
    return [min(each, key=lambda result: result.seconds) for each in zip(*found, strict=True)]


def measure(folder: Path, subject: str) -> Iterator[Result]:
    """Yield the result of each case, from empty caches on."""
    for name in ("cache", "out", "home"):
        shutil.rmtree(folder / name, ignore_errors=True)
        (folder / name).mkdir()
    known: set[str] = set()
    for case in CASES:
        if case == CASES[-1]:
            labels = folder / "model" / "model" / "1" / "labels.txt"
            labels.write_text(str(int(labels.read_text()) + 1))
            time.sleep(SETTLING_SECONDS)
        seconds = run(folder, subject)
        assets = dict(assets_of(folder / "out"))
        uploaded = sum(size for key, size in assets.items() if key not in known)
        known |= assets.keys()
        yield Result(seconds, uploaded, disk_bytes(folder / "out"))


def run(folder: Path, subject: str) -> float:
    kind, code = SUBJECTS[subject]
    environment = {
        **os.environ,
        "CONSTRUCTS_TRITON_CACHE_DIR": str(folder / "cache"),
        "HOME": str(folder / "home"),  # the CDK caches the hashes of files there
        "JSII_RUNTIME_PACKAGE_CACHE_ROOT": str(
            folder / "jsii"
        ),  # else in the home, which is new each time
        "CDK_VALIDATION": "false",
    }
    paths = (str(folder / "model"), str(folder / "out"), str(folder / "warm"))
    command = [sys.executable, "-c", code + END, *paths, kind]
    return float(subprocess.run(command, env=environment, check=True, capture_output=True).stdout)


def assets_of(directory: Path) -> Iterator[tuple[str, int]]:
    """Yield the key of each asset of a model with its size, without the code of functions."""
    manifest = json.loads((directory / "Benchmark.assets.json").read_text())
    for asset in manifest["files"].values():
        if asset["displayName"].startswith(("Model", "Small", "List", "Asset")):
            (destination,) = asset["destinations"].values()
            yield destination["objectKey"], disk_bytes(directory / asset["source"]["path"])


def disk_bytes(path: Path) -> int:
    files = [path] if path.is_file() else [each for each in path.rglob("*") if each.is_file()]
    return sum(each.stat().st_size for each in files)


def print_results(found: dict[str, list[Result]], megabytes: int) -> None:
    print(f"{megabytes} MB of weights, load {os.getloadavg()[0]:.1f}")
    print(f"{'':42}{'seconds':>9}{'MB upload':>11}{'MB cdk.out':>12}{'time':>10}")
    for number, case in enumerate(CASES):
        ours = next(iter(found.values()))[number]
        for subject, results in found.items():
            each = results[number]
            print(
                f"{case:24}{subject:18}{each.seconds:9.3f}{each.upload_bytes / 1e6:11.3f}"
                f"{each.disk_bytes / 1e6:12.1f}{each.seconds / ours.seconds:8.1f} x"
            )


if __name__ == "__main__":
    main()
