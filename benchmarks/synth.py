"""Compares an unchanged synth: one large model with ``aws_s3_assets.Asset``, and a thousand models
with one.

    python benchmarks/synth.py [--megabytes 1024] [--models 1000] [--rounds 3] [--project DIR]

Each runs in its own process with warm caches, as in a second ``cdk synth``, and reads from the page
cache.
The time of this library is that of creating the repository and the assets of all its archives:
reading, checking, naming and placing them. The CDK's ``Asset`` gets the finished archive, so
neither time includes packing.

The large model is synthesized into a new ``cdk.out``, as on a build server, and into that of the
previous run. CDK 2.275 also caches the hash of an unchanged file, in the user's home, and does not
copy existing files, so the second case has nothing left to save.

The processor time is that of Python, without Node. ``--megabytes 0`` leaves the large model out.
``--project`` is another checkout, whose environment runs this file: it imports nothing of the
project.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

CONFIG = """backend: "python"
max_batch_size: 8
input { name: "x" data_type: TYPE_FP32 dims: 4 }
output { name: "y" data_type: TYPE_FP32 dims: 4 }
instance_group { kind: KIND_CPU }
"""
MODEL = "class TritonPythonModel:\n    def execute(self, requests): ...\n"
CHUNK_BYTES = 16 << 20
SETTLING_SECONDS = 2.5  # files so young are not trusted to be unchanged

# Each prints its seconds, by the clock and of the processor, without the time to import and start
# the CDK.
PRELUDE = """
import sys, time
import aws_cdk as cdk
from aws_cdk import aws_s3 as s3, aws_s3_assets as assets
from constructs_triton import ModelSource, TritonModelRepository
try:
    from constructs_triton.cdk.repository.model_repository import contents_of
except ImportError:  # earlier commits
    def prefix_of(repository): return repository
else:
    def prefix_of(repository): return contents_of(repository).prefix
app = cdk.App(outdir=sys.argv[2])
stack = cdk.Stack(app, "Benchmark", env=cdk.Environment(account="123456789012", region="eu-west-1"))
bucket = s3.Bucket.from_bucket_name(stack, "Given", "models")
warm = TritonModelRepository(
    stack, "Warm", source=ModelSource.from_directory(sys.argv[3]), bucket=bucket
)
prefix_of(warm).sync()
assets.Asset(stack, "WarmAsset", path=sys.argv[3])
clock, cpu = time.perf_counter(), time.process_time()
"""
OURS = (
    PRELUDE
    + """
source = ModelSource.from_directory(sys.argv[1])
repository = TritonModelRepository(stack, "Models", source=source, bucket=bucket, prefix="big/")
prefix_of(repository).sync()
clock, cpu = time.perf_counter() - clock, time.process_time() - cpu
app.synth()
import pathlib
print(clock, cpu, (pathlib.Path(sys.argv[2]) / "Benchmark.template.json").stat().st_size)
"""
)
CDK_ASSET = (
    PRELUDE
    + """
assets.Asset(stack, "Asset", path=sys.argv[1])
print(time.perf_counter() - clock, time.process_time() - cpu, 0)
"""
)


class Times(NamedTuple):
    """Seconds by the clock and of the processor, and the size of the template."""

    clock: float
    cpu: float
    template_bytes: int


def main() -> None:
    arguments = parse_arguments()
    with tempfile.TemporaryDirectory(prefix="synth-benchmark-", dir=arguments.directory) as name:
        folder = Path(name)
        os.environ["CONSTRUCTS_TRITON_CACHE_DIR"] = str(folder / "cache")
        write_models(folder / "small", 1)
        write_models(folder / "big", 1, arguments.megabytes << 20)
        write_models(folder / "many", arguments.models)
        time.sleep(SETTLING_SECONDS)
        if arguments.megabytes:
            compare_large(folder, arguments)
        compare_many(folder, arguments)


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--megabytes", type=int, default=1024, help="of the large model's weights")
    parser.add_argument("--models", type=int, default=1000, help="how many small models")
    parser.add_argument(
        "--rounds", type=int, default=3, help="number of rounds, of which the best counts"
    )
    parser.add_argument("--project", type=Path, help="checkout whose environment runs this")
    parser.add_argument(
        "--directory", type=Path, help="where to work; by default the temporary folder"
    )
    return parser.parse_args()


def write_models(directory: Path, count: int, weight_bytes: int = 0) -> None:
    for number in range(count):
        model = directory / f"model_{number:04d}"
        (model / "1").mkdir(parents=True)
        (model / "config.pbtxt").write_text(CONFIG)
        (model / "1" / "model.py").write_text(f"{MODEL}# {number}\n")
        if weight_bytes:
            write_random(model / "1" / "weights.bin", weight_bytes)


def write_random(path: Path, size_bytes: int) -> None:
    with path.open("wb") as file:
        for start in range(0, size_bytes, CHUNK_BYTES):
            file.write(os.urandom(min(CHUNK_BYTES, size_bytes - start)))


def compare_large(folder: Path, arguments: argparse.Namespace) -> None:
    rounds = arguments.rounds
    measure(OURS, folder / "big", folder, rounds=0)
    (archive,) = sorted((folder / "ours.out").glob("*.tar.gz"), key=size_of)[-1:]
    kept = folder / "archive.tar.gz"
    os.link(archive, kept)
    print(
        f"one unchanged model, archive of {size_of(kept) / 1e6:.0f} MB, load "
        f"{os.getloadavg()[0]:.1f}"
    )
    for case, is_new in (("a new cdk.out", True), ("the same cdk.out", False)):
        ours = measure(OURS, folder / "big", folder, rounds, is_new=is_new)
        theirs = measure(CDK_ASSET, kept, folder, rounds, outdir="asset.out", is_new=is_new)
        print(f"  into {case}")
        print(f"    constructs-triton    {ours.clock * 1e3:9.1f} ms")
        print(
            f"    aws_s3_assets.Asset  {theirs.clock * 1e3:9.1f} ms   "
            f"{theirs.clock / ours.clock:6.1f} x"
        )


def compare_many(folder: Path, arguments: argparse.Namespace) -> None:
    one = measure(OURS, folder / "small", folder, arguments.rounds, outdir="one.out")
    many = measure(OURS, folder / "many", folder, arguments.rounds, outdir="many.out")
    clock, cpu, _ = (
        (after - before) * 1e3 / (arguments.models - 1)
        for before, after in zip(one, many, strict=True)
    )
    print(f"{arguments.models} unchanged models, load {os.getloadavg()[0]:.1f}")
    print(
        f"  one model              {one.clock * 1e3:9.1f} "
        f"ms   template of {one.template_bytes} bytes"
    )
    name = f"{arguments.models} models"
    print(f"  {name:22} {many.clock * 1e3:9.1f} ms   template of {many.template_bytes} bytes")
    print(f"  more for each model    {clock:9.2f} ms {cpu:9.3f} ms of CPU")


def size_of(path: Path) -> int:
    return path.stat().st_size


def measure(
    code: str,
    subject: Path,
    folder: Path,
    rounds: int,
    *,
    outdir: str = "ours.out",
    is_new: bool = False,
) -> Times:
    """Return the shortest times, after a round that fills the caches,
    and the bytes of the template.
    """
    command = [
        sys.executable,
        "-c",
        code,
        str(subject),
        str(folder / outdir),
        str(folder / "small"),
    ]
    environment = {**os.environ, "CDK_VALIDATION": "false", "NODE_NO_WARNINGS": "1"}
    found = []
    for _ in range(rounds + 1):
        if is_new:
            shutil.rmtree(folder / outdir, ignore_errors=True)
        run = subprocess.run(command, check=True, capture_output=True, text=True, env=environment)
        clock, cpu, template_bytes = run.stdout.split()
        found.append(Times(float(clock), float(cpu), int(template_bytes)))
    return Times(*map(min, zip(*(found[1:] or found), strict=True)))


if __name__ == "__main__":
    main()
