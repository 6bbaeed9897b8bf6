"""Measure the eight configurations of the small encoder on this machine, as the article does on
SageMaker.

    python measure.py [CONFIGURATION ...] [--step-seconds 10] [--latency-ms 500] [-o local.csv]

Each configuration is started as a local endpoint and load-tested with a sentence of 128 tokens.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

import numpy as np
import variants

from constructs_triton_tools.local import LocalEndpoint

TOKENS = 128


def write_sentence(folder: Path) -> list[str]:
    """Write token ids and mask, and return the options of a load test that sends them."""
    mask = (np.arange(512) < TOKENS).astype(np.int32)[np.newaxis]
    tokens = np.random.RandomState(0).randint(1, 30522, (1, 512)).astype(np.int32) * mask
    options = []
    for name, array in (("INPUT__0", tokens), ("INPUT__1", mask)):
        np.save(folder / f"{name}.npy", array)
        options += ["--input", f"{name}=@{folder / name}.npy"]
    return options


def measure(configuration: str, arguments: argparse.Namespace) -> None:
    """Start one configuration, and append the rates that it holds to the file."""
    sys.stdout.write(f"\n{configuration}\n")
    sys.stdout.flush()
    folder = variants.write_small_variant(configuration)
    with LocalEndpoint.from_repository(folder, endpoint="bert") as local:
        words = ["load-test", "bert", "--endpoint-url", local.endpoint_url]
        words += write_sentence(folder.parent)
        words += [
            "--latency-ms",
            str(arguments.latency_ms),
            "--step-seconds",
            str(arguments.step_seconds),
        ]
        words += ["--configuration", configuration, "--append", "-o", str(arguments.output)]
        subprocess.run([sys.executable, "-m", "constructs_triton.cli", *words], check=False)


def main() -> None:
    """Measure the chosen configurations, one after the other."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "configurations", nargs="*", help="for example pt-base trt-db (default: all eight)"
    )
    parser.add_argument(
        "--step-seconds", type=float, default=10, help="seconds of a step (default: 10)"
    )
    parser.add_argument(
        "--latency-ms", type=float, default=500, help="limit of the p95 (default: 500)"
    )
    parser.add_argument(
        "-o", "--output", type=Path, default=Path("local.csv"), help="default: local.csv"
    )
    arguments = parser.parse_args()
    arguments.output.unlink(missing_ok=True)
    for configuration in arguments.configurations or variants.VARIANTS:
        measure(configuration, arguments)


if __name__ == "__main__":
    main()
