"""The figures of the benchmarks that have a limit or are compared with an earlier commit.

A figure is found in what its benchmark prints, so scripts of different commits can be compared.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

_NUMBER = r"([\d,.]+)"


@dataclass(frozen=True, slots=True)
class Figure:
    """A number in what a benchmark prints.

    Args:
        name: What is measured, with its unit.
        pattern: Regular expression. The value is its group, or the quotient of its two groups.
        limit: What the number should be, such as "at most 1.3".
    """

    name: str
    pattern: str
    limit: str = ""

    def find(self, output: str) -> list[float]:
        """Return the values in what a run printed."""
        expression = self.pattern.replace("<n>", _NUMBER)
        return [_value(match.groups()) for match in re.finditer(expression, output, re.MULTILINE)]


@dataclass(frozen=True, slots=True)
class Run:
    """A call of a benchmark for a comparison, with fewer rounds than the benchmark has by itself.

    Args:
        script: Name of the benchmark.
        arguments: Its arguments.
        figures: Figures of its output.
        is_shared: Whether the script imports nothing of the package, so that this commit's script also
            measures the earlier commit.
    """

    script: str
    arguments: tuple[str, ...]
    figures: tuple[Figure, ...]
    is_shared: bool = False


RUNS = (
    Run(
        "check",
        (),
        (
            Figure(
                "models of a mixed repository checked a second", r"^  check +<n> a second", "at least 1,000"
            ),
            Figure("unchanged, by the whole command, seconds", r"^  unchanged +<n> s", "at most 0.5"),
        ),
    ),
    Run(
        "codec",
        ("--seconds", "0.3"),
        (
            Figure("encoding strings, times as fast as JSON", r"0 str,.* encode .* <n>x$", "at least 1.0"),
            Figure("decoding strings, times as fast as JSON", r"0 str,.* decode .* <n>x$", "at least 1.0"),
        ),
    ),
    Run(
        "files",
        ("--megabytes", "100", "--rounds", "1"),
        (
            Figure("new model as files, seconds", r"^new +files \(NONE\) +<n>"),
            Figure("unchanged model as files, seconds", r"^unchanged +files \(NONE\) +<n>"),
        ),
    ),
    Run("gateway", (), (Figure("median with 600 kB, times Triton's own", r"^  ratio +<n>", "at most 1.3"),)),
    Run(
        "gateway",
        ("--size", "4", "--count", "1000"),
        (Figure("median with 4 bytes, times Triton's own", r"^  ratio +<n>", "at most 1.6"),),
    ),
    Run(
        "load_test",
        (),
        (
            Figure(
                "signed requests a second of CPU", r"^load-test, signed .* <n> per second", "at least 6,000"
            ),
        ),
    ),
    Run(
        "onnx_file",
        ("--without-load",),
        (Figure("describing 1.9 GB of weights in the file, seconds", r"in the file\n +describe +<n> s"),),
    ),
    Run(
        "pack",
        ("--megabytes", "256"),
        (
            Figure("tar's time, times that of pack", r"^tar -czf .* <n> x +[\d.]+ x", "at least 25"),
            Figure("tar's CPU time, times that of pack", r"^tar -czf .* [\d.]+ x +<n> x", "at least 16"),
        ),
    ),
    Run("simulation", (), (Figure("24 hours, one policy, ms of CPU", r"one policy +<n> ms"),)),
    Run(
        "synth",
        ("--megabytes", "512", "--models", "500", "--rounds", "2"),
        (
            Figure(
                "unchanged 512 MB into a new `cdk.out`, times `Asset`",
                r"new cdk.out\n +constructs-triton +<n> ms\n +aws_s3_assets.Asset +<n>",
                "at most 0.4",
            ),
            Figure(
                "unchanged 512 MB into the same `cdk.out`, ms",
                r"same cdk.out\n +constructs-triton +<n> ms",
                "at most 10",
            ),
            Figure("each unchanged model more, ms", r"for each model +<n> ms", "at most 1"),
        ),
    ),
    Run(
        "synth_endpoint",
        ("--rounds", "2"),
        (
            Figure("multi-model example, CPU, times its L1s", r"^MultiModel CPU .* <n>$", "at most 1.05"),
            Figure("app.py, clock, times its L1s", r"^TritonDemo clock .* <n>$", "at most 1.1"),
        ),
        is_shared=True,
    ),
    Run(
        "waits",
        ("--rounds", "2"),
        (
            Figure("`python app.py`, seconds", r"^python app.py +<n> s"),
            Figure("`local up` of app.py until it is ready, seconds", r"^local up +<n> s", "at most 1.5"),
            Figure("Python models checked a second", r"^check, Python models +<n> ", "at least 2,500"),
            Figure("small ONNX models checked a second", r"^check, ONNX models +<n> ", "at least 1,500"),
            Figure("packages of the base install, MB", r"^base install +<n> MB"),
        ),
        is_shared=True,
    ),
)


def cell(values: Sequence[float]) -> str:
    """Return the median of all runs and, in brackets, the lowest and the highest value."""
    middle = _number(median(values))
    if len(values) == 1:
        return middle
    return f"{middle} ({_number(min(values))} to {_number(max(values))})"


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _value(groups: Sequence[str]) -> float:
    first, *others = (float(group.replace(",", "")) for group in groups)
    return first / others[0] if others else first
