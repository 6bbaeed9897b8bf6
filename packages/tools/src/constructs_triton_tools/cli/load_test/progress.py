"""What a load test prints while it runs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from constructs_triton_core.untrusted.terminal import clear_line, print_lines, show_line

if TYPE_CHECKING:
    from constructs_triton_tools.measuring.load_test.open_loop import LiveFigures
    from constructs_triton_tools.measuring.load_test.step import Limits, StepResult
    from constructs_triton_tools.measuring.load_test.stream_figures import StreamFigures

_SHOWN_STATUSES = 3


class Progress:
    """A row for each step on standard output, and on a terminal a line that is updated during a
    step.

    The line is written without rich: drawing a table would make the generator late.
    """

    def __init__(self, limits: Limits, *, quiet: bool, by_concurrency: bool = False) -> None:
        self._what = "latest first token" if limits.stream else "latest"
        self._unit = " open" if by_concurrency else "/s"
        self._limits = limits
        self._quiet = quiet

    def print_headings(self) -> None:
        """Print the headings of the rows."""
        if not self._quiet:
            name = f"p{self._limits.percentile:g}"
            if self._limits.stream is not None:
                print_lines(*_stream_headings(name))
                return
            print_lines(
                f"{'rate/s':>9} {'good/s':>9} {'p50 ms':>8} {name + ' ms':>8} {'p99 ms':>8}  result"
            )

    def print_step(self, step: StepResult) -> None:
        """Print the row of a step."""
        clear_line()
        if self._quiet:
            return
        if step.stream is not None:
            print_lines(f"{_stream_cells(step, step.stream)}  {_result(step)}")
            return
        p99 = "-" if step.p99_ms is None else f"{step.p99_ms:.1f}"
        print_lines(
            f"{step.rate:9.1f} {step.good_per_second:9.1f} {step.p50_ms:8.1f} "
            f"{step.latency_ms:8.1f} {p99:>8}  {_result(step)}"
        )

    def show(self, rate: float, seconds: float, live: LiveFigures) -> None:
        """Update the line about the running step."""
        line = (
            f"{rate:9.1f}{self._unit} for {seconds:.0f} s: {live.sent} answers, "
            f"{live.in_flight} in flight, "
            f"{live.errors} errors, {self._what} p50 {live.percentile_ms(50):.1f} ms, "
            f"p{self._limits.percentile:g} {live.percentile_ms(self._limits.percentile):.1f} ms"
        )
        show_line(line)


def _stream_headings(percentile: str) -> tuple[str, str]:
    groups = ("first token ms", "second token ms", "between tokens ms", "tokens per second")
    times = f"{'p50':>8} {percentile:>8} " * 3
    return (
        f"{'':>19} " + " ".join(f"{name:>17}" for name in groups),
        (
            f"{'load':>10} {'good/s':>8} {times}{'in all':>8} "
            f"{'per user':>8} {'goodput':>8}  unit    result"
        ),
    )


def _stream_cells(step: StepResult, figures: StreamFigures) -> str:
    load = f"{step.rate:g} open" if step.by_concurrency else f"{step.rate:.1f}/s"
    times = (
        figures.first_token_p50_ms,
        figures.first_token_ms,
        figures.second_token_p50_ms,
        figures.second_token_ms,
        figures.between_tokens_p50_ms,
        figures.between_tokens_ms,
        figures.tokens_per_second,
        figures.tokens_per_second_per_user,
    )
    cells = " ".join(f"{value:8.1f}" for value in times)
    return (
        f"{load:>10} {step.good_per_second:8.2f} {cells} "
        f"{figures.goodput_per_second:8.2f}  {figures.unit:6}"
    )


def describe_streams(step: StepResult, limits: Limits, at_least: str) -> str:
    """One sentence about the highest load that was held, as ``at_least`` if it may be higher."""
    figures = step.stream
    assert figures is not None
    load = f"highest rate held: {at_least}{step.good_per_second:.1f} streams per second"
    if step.by_concurrency:
        load = f"highest concurrency held: {at_least}{step.rate:g} open streams"
    return (
        f"{load}, {figures.tokens_per_second:.1f} {figures.unit} per second "
        f"(p{limits.percentile:g} first token {figures.first_token_ms:.1f} ms, between "
        f"{figures.unit} {figures.between_tokens_ms:.1f} ms over {step.seconds:g} s)"
    )


def explain_unit(figures: StreamFigures) -> str:
    """One sentence about what is counted as a token."""
    if figures.unit == "tokens":
        return "tokens are those that the responses report, as num_output_tokens or usage"
    return (
        "responses do not report tokens, so each event counts as a token; one event may hold "
        'several. For chat completions, add "stream_options": '
        '{"include_usage": true} to the request'
    )


def _result(step: StepResult) -> str:
    closed = (
        f"; {step.stream.closed} streams were closed" if step.stream and step.stream.closed else ""
    )
    errors = f" [{_statuses(step.statuses)}: {step.first_error[:120]}]" if step.statuses else ""
    return f"{step.verdict}{f': {step.reason}' if step.reason else ''}{errors}{closed}"


def _statuses(statuses: Mapping[int, int]) -> str:
    most = sorted(statuses.items(), key=lambda item: -item[1])[:_SHOWN_STATUSES]
    return ", ".join(f"{count} x {status or 'no response'}" for status, count in most)
