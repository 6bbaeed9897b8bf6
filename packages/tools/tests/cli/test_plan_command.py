"""``constructs-triton plan`` prints the plans."""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from constructs_triton_core.errors import InvalidValueError
from constructs_triton_tools.cli import plan

BENCHMARK = Path(__file__).parents[1] / "planning" / "bert_benchmark.csv"
GUIDE = Path(__file__).parents[4] / "docs" / "guides" / "measure.md"
PRICES = ("ml.g4dn.xlarge=0.7364", "ml.g4dn.2xlarge=0.94", "ml.g4dn.12xlarge=4.89")


def run(*words: str, latency_ms: str = "500", path: Path = BENCHMARK) -> int:
    """Run the command for 500 requests per second, and return its exit code."""
    parser = argparse.ArgumentParser()
    plan.add_arguments(parser)
    required = ["--requests-per-second", "500", "--latency-ms", latency_ms]
    return plan.run(parser.parse_args([str(path), *required, *words]))


def test_table_marks_the_chosen_row(capsys: pytest.CaptureFixture[str]) -> None:
    """All 24 rows are printed, those that meet the latency first, with one marked and a summary."""
    assert run("--price", *PRICES) == 0
    _, headings, *rows, summary = capsys.readouterr().out.splitlines()
    assert headings.split()[:3] == ["configuration", "instance", "type"]
    assert len(rows) == 24
    assert [row.split() for row in rows if row.startswith("*")] == [
        [
            "*",
            "trt-db",
            "ml.g4dn.2xlarge",
            "1335",
            "499",
            "yes",
            "23",
            "21.62",
            "15782.60",
            "11.7353",
            "45",
            "42.30",
            "667.5",
        ]
    ]
    assert [row.split()[-8] for row in rows] == ["yes"] * 5 + ["no"] * 19
    assert summary.startswith(
        "* cheapest within 500 ms: trt-db on ml.g4dn.2xlarge, 23 instances at 21.62 an hour"
    )


def test_guide_has_the_output_of_the_command(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The example in the guide is the output of the command in a terminal of 84 columns."""
    monkeypatch.setenv("COLUMNS", "84")
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    run("--price", *PRICES)
    printed = re.sub(r"\x1b\[[0-9;]*m", "", capsys.readouterr().out)
    lines = [line.rstrip() for line in printed.splitlines()]
    guide = GUIDE.read_text()
    assert "\n".join(lines[1:4]) in guide
    assert " ".join(lines[-1].split()) in " ".join(guide.split())


def test_narrow_terminal_cuts_no_name(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """In 80 characters the table leaves out columns, and cuts neither a name nor a number."""
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    run("--price", *PRICES)
    _, _, *rows, _ = re.sub(r"\x1b\[[0-9;]*m", "", capsys.readouterr().out).splitlines()
    assert len(rows) == 24
    assert max(map(len, rows)) <= 80
    assert rows[0].split() == [
        "*",
        "trt-db",
        "ml.g4dn.2xlarge",
        "1335",
        "499",
        "yes",
        "23",
        "21.62",
    ]


def test_json_has_every_plan(capsys: pytest.CaptureFixture[str]) -> None:
    """The JSON has the cheapest and all other plans, and the requirement has the options."""
    words = ("--headroom", "0.2", "--safety-factor", "0.8", "--min-capacity", "2", "--json")
    assert run("--price", *PRICES, *words) == 0
    answer = json.loads(capsys.readouterr().out)
    assert len(answer["plans"]) == 24
    best = answer["cheapest"]
    assert best in answer["plans"]
    assert best["initial_instance_count"] == 27
    assert best["min_capacity"] == 2
    assert best["max_capacity"] == 34
    assert best["cost_per_hour"] == 25.38
    assert best["target_invocations_per_minute"] == 1068


def test_prices_from_a_file_and_from_options(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A price on the command line takes precedence over that of the file."""
    prices = tmp_path / "prices.csv"
    prices.write_text(
        "instance_type,price_per_hour,currency\n"
        "ml.g4dn.xlarge,0.7364,USD\nml.g4dn.2xlarge,0.94,USD\nml.g4dn.12xlarge,4.89,USD\n"
    )
    options = ("--prices", str(prices), "--price", "ml.g4dn.12xlarge=3")
    assert run(*options) == 0
    assert "at 18 USD an hour, 13140 USD a month" in capsys.readouterr().out
    assert run(*options, "--json") == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["currency"] == "USD"
    best = answer["cheapest"]
    assert best["instance_type"] == "ml.g4dn.12xlarge"
    assert best["latency_ms"] == 278
    assert best["cost_per_hour"] == 18


def test_table_is_printed_without_a_match(capsys: pytest.CaptureFixture[str]) -> None:
    """If no row meets the latency, none is marked, and the error names the fastest."""
    assert run("--price", *PRICES, latency_ms="100") == 1
    out, err = capsys.readouterr()
    assert "the fastest is trt-db on ml.g4dn.12xlarge with 278 ms" in err
    assert len(out.splitlines()) == 2 + 24
    assert "*" not in out
    assert run("--price", *PRICES, "--json", latency_ms="100") == 1
    assert json.loads(capsys.readouterr().out)["cheapest"] is None


def test_figures_are_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Cost against latency, also where no row meets the limit, and latency against throughput."""
    cost = tmp_path / "plan.svg"
    throughput = tmp_path / "throughput.svg"
    without_match = tmp_path / "none.svg"

    plots = ("--plot", str(cost), "--plot-throughput", str(throughput))
    assert run("--price", *PRICES, *plots) == 0
    figure = cost.read_text()
    assert "ml.g4dn.12xlarge" in figure
    assert "Pareto front" in figure
    assert "23 instances at 21.62 per hour" in figure
    assert "limit 500 ms" in figure
    assert throughput.exists()

    assert run("--price", *PRICES, "--plot", str(without_match), latency_ms="100") == 1
    assert "No configuration is within 100 ms" in without_match.read_text()


def test_instance_type_given_by_hand_is_a_warning(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The figures of a laptop under the name of an instance type are pointed out;
    local ones are not.
    """
    path = tmp_path / "b.csv"
    headings = (
        "configuration,instance_type,invocations_per_minute,latency_ms,instance_type_source\n"
    )
    path.write_text(f"{headings}a,local,600,50,local\nb,ml.g5.xlarge,600,50,given\n")
    assert run("--price", "local=1", "ml.g5.xlarge=1.41", path=path) == 0
    warning = capsys.readouterr().err
    assert warning.startswith(
        "warning: ml.g5.xlarge: the instance type was given to the load test by hand"
    )


HEADINGS = (
    "configuration,instance_type,invocations_per_minute,latency_ms,price_per_hour,is_lower_bound\n"
)
STEPS = f"""{HEADINGS}fp16,ml.g5.xlarge,600,20,1.41,false
fp16,ml.g5.xlarge,1200,40,1.41,false
fp16,ml.g5.xlarge,2400,90,1.41,true
int8,ml.g5.xlarge,2000,600,1.41,
int8,ml.g5.xlarge,1000,550,1.41,
"""


def test_configuration_is_one_row(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It is the cheapest rate within the limit, or the fastest;
    ``--steps`` lists every measured rate.
    """
    path = tmp_path / "steps.csv"
    path.write_text(STEPS)

    run("--json", path=path)
    assert printed_rates(capsys) == [2400, 1000]

    run("--json", "--steps", path=path)
    assert printed_rates(capsys) == [600, 1200, 2400, 2000, 1000]


def printed_rates(capsys: pytest.CaptureFixture[str]) -> list[float]:
    """The rates of the plans that were printed as JSON."""
    plans = json.loads(capsys.readouterr().out)["plans"]
    return [plan["invocations_per_minute"] for plan in plans]


def test_lower_bound_gives_upper_bounds(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A load test that ended before the endpoint's limit gives an upper bound of the instances."""
    path = tmp_path / "steps.csv"
    path.write_text(STEPS)

    run(path=path)
    out, err = capsys.readouterr()
    assert re.search(r"^\* +fp16 +ml\.g5\.xlarge +>= 2400 +90 +yes +<= 13 ", out, re.MULTILINE)
    assert "fp16 on ml.g5.xlarge, at most 13 instances at 18.33 an hour" in out
    assert err.startswith("warning: fp16 on ml.g5.xlarge: the load test ended before")

    # At this limit, the best rate was measured exactly.
    run("--latency-ms", "50", path=path)
    out, err = capsys.readouterr()
    assert ">=" not in out
    assert "at most" not in out
    assert "warning" not in err
    assert err.startswith(
        "Costs are in the currency of the given prices.\nnext: constructs-triton simulate"
    )
    assert "TRAFFIC --throughput 1200 --target 600" in err

    path.write_text(f"{HEADINGS}fp16,ml.g5.xlarge,600,20,1.41,yes\n")
    with pytest.raises(
        InvalidValueError, match=r'"is_lower_bound": must be true or false, got "yes"; write'
    ):
        run(path=path)


def test_price_given_twice_is_refused() -> None:
    """Two different prices of one type are an error; the same one twice is not."""
    with pytest.raises(
        InvalidValueError, match=r'--price: must be given once per .*, got "ml\.g4dn\.xlarge"'
    ):
        run("--price", *PRICES, "--price", "ml.g4dn.xlarge=1")
    assert run("--price", *PRICES, "--price", PRICES[0]) == 0


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--price", "ml.g5.xlarge"), "argument --price: must have the form TYPE=PRICE"),
        (
            ("--price", "ml.g5.xlarge=$1"),
            'argument --price: ml.g5.xlarge: must be a number, got "$1"',
        ),
        (("--price", "g5.xlarge=1"), 'did you mean "ml.g5.xlarge"?'),
        (("--headroom", "20%"), 'argument --headroom: must be a number, got "20%"'),
    ],
)
def test_invalid_option_is_a_usage_error(
    words: tuple[str, ...], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """The parser rejects an invalid value with the option's name."""
    with pytest.raises(SystemExit) as stop:
        run(*words)
    assert stop.value.code == 2
    assert message in capsys.readouterr().err


def test_configuration_that_looks_like_markup_is_shown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Names are printed unchanged."""
    path = tmp_path / "benchmark.csv"
    path.write_text(
        "configuration,instance_type,invocations_per_minute,latency_ms,price_per_hour\n"
        "[red]fp16[/red],ml.g5.xlarge,60000,5,1.41\n"
    )
    assert run(path=path) == 0
    out = capsys.readouterr().out
    assert out.count("[red]fp16[/red]") == 2
    assert "1 instance at 1.41 an hour" in out


def test_json_imports_nothing_heavy() -> None:
    """Planning imports neither the CDK nor NumPy, boto3 or rich."""
    code = f"""
import argparse, sys
from constructs_triton_tools.cli import plan
parser = argparse.ArgumentParser()
plan.add_arguments(parser)
plan.run(parser.parse_args(
    {[str(BENCHMARK), "--requests-per-second", "500", "--json", "--price", *PRICES]}
))
heavy = {{"jsii", "aws_cdk", "numpy", "boto3", "rich", "google", "grpc"}}
print(sorted(heavy & set(sys.modules)), file=sys.stderr)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr.strip() == "[]"


def test_pools_have_the_counts_of_the_slowest_type(capsys: pytest.CaptureFixture[str]) -> None:
    """The cost is a range: all instances of the cheapest type, to all of the most expensive one."""
    pools = ("--instance-pools", "ml.g4dn.2xlarge", "ml.g4dn.12xlarge")
    assert run("--price", *PRICES, *pools, "--json") == 0
    answer = json.loads(capsys.readouterr().out)
    found = answer["instance_pools"]
    assert found["instance_types"] == ["ml.g4dn.2xlarge", "ml.g4dn.12xlarge"]

    # What each type alone would need, in its cheapest plan.
    counts = []
    for name in found["instance_types"]:
        plans = [plan for plan in answer["plans"] if plan["instance_type"] == name]
        fast_enough = [plan for plan in plans if plan["meets_latency"]]
        cheapest = min(fast_enough, key=lambda plan: plan["cost_per_hour"])
        counts.append(cheapest["initial_instance_count"])
    assert max(counts) == 23
    assert found["initial_instance_count"] == 23
    assert found["cost_per_hour"] == pytest.approx([0.94 * 23, 4.89 * 23])
    assert found["max_requests_per_second"]["ml.g4dn.2xlarge"] == pytest.approx(1335 / 60)
    assert run("--price", *PRICES, *pools) == 0
    assert (
        "instance pools ml.g4dn.2xlarge, ml.g4dn.12xlarge: 23 instances" in capsys.readouterr().out
    )


@pytest.mark.parametrize(
    ("types", "message"),
    [
        (["ml.g4dn.2xlarge", "ml.g4dn.2xlarge"], "must be unique"),
        (["ml.g5.xlarge"], 'no row of the benchmark is for "ml.g5.xlarge"'),
    ],
)
def test_pools_that_cannot_be_planned(types: list[str], message: str) -> None:
    """Every type must be in the benchmark, once."""
    with pytest.raises(InvalidValueError, match=f"^instance_pools: .*{message}"):
        run("--price", *PRICES, "--instance-pools", *types)


def test_pool_that_is_too_slow_is_wrong(capsys: pytest.CaptureFixture[str]) -> None:
    """A type that misses the latency ends with 1 after the table:
    the load may get only this type.
    """
    code = run("--price", *PRICES, "--instance-pools", "ml.g4dn.xlarge", latency_ms="400")
    printed = capsys.readouterr()
    assert code == 1
    assert "error: instance_pools, ml.g4dn.xlarge: " in printed.err
    assert "ml.g4dn.12xlarge" in printed.out
