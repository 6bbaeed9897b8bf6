"""``constructs-triton simulate`` prints a chart, the totals and advice."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import pytest

from constructs_triton_core.errors import InvalidValueError
from constructs_triton_tools.cli import simulate

SPIKE = ("--pattern", "spike", "--low", "2000", "--high", "15000")
POLICY = ("--target", "667.5", "--min-capacity", "2", "--max-capacity", "25")
FLEET = ("--throughput", "1335", "--price-per-hour", "0.94")


def run(*words: str) -> int:
    parser = argparse.ArgumentParser()
    simulate.add_arguments(parser)
    return simulate.run(parser.parse_args(words))


def test_chart_totals_and_advice(capsys: pytest.CaptureFixture[str]) -> None:
    """The chart has twelve rows and a time axis, and the totals are those of the simulation."""
    assert run(*SPIKE, *POLICY, *FLEET) == 0
    out = capsys.readouterr().out
    lines = out.splitlines()
    assert max(map(len, lines)) <= 100
    assert [line.split()[0] for line in lines[:12]] == [str(count) for count in range(24, 0, -2)]
    assert lines[12].split() == ["00:00", "00:43", "01:28", "02:13", "02:58"]
    assert "xxxx" in lines[6]
    assert "failed             83,955 of 464,000 requests (18.1%)" in out
    assert "cost               15.31; fixed fleet of 12: 33.84; perfect fleet: 6.89" in out
    assert "No target helps: new instances serve after 9 minutes (3 to detect, 6 to start)." in out


def test_guide_has_the_output_of_the_command(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The example in the guide is the output of the command in a terminal of 84 columns."""
    monkeypatch.setenv("COLUMNS", "84")
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    run(*SPIKE, *POLICY, *FLEET)
    printed = capsys.readouterr()
    lines = [line.rstrip() for line in printed.out.splitlines()]
    guide = (Path(__file__).parents[4] / "docs" / "guides" / "measure.md").read_text()
    assert printed.err in guide
    assert "\n".join(lines) in guide.replace(printed.err, "")


def test_json_has_every_minute(capsys: pytest.CaptureFixture[str]) -> None:
    """Options change the fleet, the policy and the assumptions."""
    options = (
        "--start-minutes",
        "3",
        "--metric-delay-minutes",
        "0",
        "--schedule",
        "40=12:25",
        "--json",
    )
    assert run(*SPIKE, *POLICY, *FLEET, *options) == 0
    answer = json.loads(capsys.readouterr().out)
    assert (answer["minutes"], len(answer["timeline"])) == (180, 180)
    assert answer["failed"] == 0
    assert answer["timeline"][40]["event"] == "schedule"


def test_traffic_and_policies_from_files(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A CSV file and a synthesized template, with another maximum than the template's."""
    traffic, template = tmp_path / "traffic.csv", tmp_path / "S.template.json"
    traffic.write_text("minute,invocations\n" + "".join(f"{t},{900}\n" for t in range(30)))
    target = {
        "MinCapacity": 1,
        "MaxCapacity": 9,
        "ResourceId": "endpoint/digits/variant/AllTraffic",
    }
    config = {
        "TargetValue": 100,
        "PredefinedMetricSpecification": {
            "PredefinedMetricType": "SageMakerVariantInvocationsPerInstance"
        },
    }
    policy = {"ScalingTargetId": {"Ref": "T"}, "TargetTrackingScalingPolicyConfiguration": config}
    resources = {
        "T": {"Type": "AWS::ApplicationAutoScaling::ScalableTarget", "Properties": target},
        "P": {"Type": "AWS::ApplicationAutoScaling::ScalingPolicy", "Properties": policy},
    }
    template.write_text(json.dumps({"Resources": resources}))
    words = (
        str(traffic),
        "--throughput",
        "200",
        "--template",
        str(template),
        "--endpoint",
        "digits",
    )
    run(*words, "--max-capacity", "4", "--json")
    assert json.loads(capsys.readouterr().out)["peak_instances"] == 4
    with pytest.raises(InvalidValueError, match=r"--target: cannot be combined with --template"):
        run(*words, "--target", "5")


def test_plot_is_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The ending sets the format, and an unknown one is an error before the simulation."""
    assert run(*SPIKE, *POLICY, *FLEET, "--plot", str(tmp_path / "spike.svg")) == 0
    assert (tmp_path / "spike.svg").read_text().startswith("<?xml")
    capsys.readouterr()
    with pytest.raises(
        InvalidValueError, match=r"plot: must end in \.svg, \.png, \.pdf, got spike\.jpeg"
    ):
        run(*SPIKE, *POLICY, *FLEET, "--plot", "spike.jpeg")
    assert not capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((*POLICY,), r"TRAFFIC: must be either a file or a pattern"),
        (
            ("traffic.csv", "--pattern", "step", *POLICY),
            r"TRAFFIC: must be either a file or a pattern",
        ),
        (("--pattern", "step", *POLICY), r"--pattern: needs two levels; set --low and --high"),
        ((*SPIKE, "--target", "5"), r"--min-capacity: the bounds are required"),
        (
            (*SPIKE, *POLICY, "--schedule", "8=4"),
            r'--schedule: must have the form WHEN=MIN:MAX, got "8=4"',
        ),
    ],
)
def test_incomplete_options_are_refused(words: tuple[str, ...], message: str) -> None:
    """The message names the option to set."""
    with pytest.raises(InvalidValueError, match=message):
        run(*words, *FLEET)
