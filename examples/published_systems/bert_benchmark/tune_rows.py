"""Compare the eight configurations of the article on this machine, with the small encoder.

    python tune_rows.py [ROW ...] [--rounds 5] [--step-seconds 8] [--latency-ms 500]

Each row is measured in turns with the base row of its family, and trt-base with pt-base. The answer
is "faster", "slower" or "not distinguishable".
"""

from __future__ import annotations

import argparse
import sys
from typing import Any

import numpy as np
import variants

from constructs_triton_tools.measuring.tuning import compare_repositories

TOKENS, SENTENCES = 128, 32
ROWS = {
    "pt-db": "pt-base",
    "pt-ig": "pt-base",
    "pt-ig-db": "pt-base",
    "trt-base": "pt-base",
    "trt-db": "trt-base",
    "trt-ig": "trt-base",
    "trt-ig-db": "trt-base",
}
"""Each row of the article after the first, and the row that it is compared with."""

NEEDS_A_GPU = """\
On this machine float64 and float32 stand for PyTorch and TensorRT. What needs a GPU:
  all eight rows       rates and latencies of BERT-large on g4dn instances
  trt-*                TensorRT itself, and so the comparison of trt-base with pt-base
  *-ig, *-ig-db        two instances that share one GPU; here they have a CPU each
"""


def draw_sentences() -> list[dict[str, Any]]:
    """Return the inputs of requests with one sentence of 128 random tokens each."""
    mask = (np.arange(512) < TOKENS).astype(np.int32)[np.newaxis]
    random = np.random.RandomState(0)
    return [
        {"INPUT__0": random.randint(1, 30522, (1, 512)).astype(np.int32) * mask, "INPUT__1": mask}
        for _ in range(SENTENCES)
    ]


def compare(row: str, arguments: argparse.Namespace) -> None:
    """Compare a row with its other one, and print the answer."""
    comparison = compare_repositories(
        variants.write_small_variant(ROWS[row]),
        variants.write_small_variant(row),
        latency_ms=arguments.latency_ms,
        requests=draw_sentences(),
        rounds=arguments.rounds,
        step_seconds=arguments.step_seconds,
    )
    sys.stdout.write(f"{row:9} against {ROWS[row]:8}  {comparison}\n")
    sys.stdout.flush()


def main() -> None:
    """Compare the chosen rows, one after the other."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("rows", nargs="*", metavar="ROW", help=f"{', '.join(ROWS)} (default: all)")
    parser.add_argument(
        "--rounds", type=int, default=5, help="rounds of each comparison (default: 5)"
    )
    parser.add_argument(
        "--step-seconds", type=float, default=8, help="seconds of a step (default: 8)"
    )
    parser.add_argument(
        "--latency-ms", type=float, default=500, help="limit of the p95 (default: 500)"
    )
    arguments = parser.parse_args()
    unknown = [row for row in arguments.rows if row not in ROWS]
    if unknown:
        parser.error(f"no such row: {', '.join(unknown)}; choose from {', '.join(ROWS)}")
    for row in arguments.rows or ROWS:
        compare(row, arguments)
    sys.stdout.write(NEEDS_A_GPU)


if __name__ == "__main__":
    main()
