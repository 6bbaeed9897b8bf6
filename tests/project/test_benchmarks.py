"""The figures that ``make bench AGAINST=<commit>`` compares, and when it fails."""

from __future__ import annotations

import ast
import shutil
import subprocess
import sys
from pathlib import Path

import benchmarking.__main__ as command
import pytest
from benchmarking import page, versions
from benchmarking.comparison import compare, load, table, turns
from benchmarking.figures import Figure, Limits, LimitsError, Run, cell, read_limits
from benchmarking.versions import PROJECT, Outcome, UnusableCommitError, Version

LIMITS = read_limits(command.LIMITS)
#: Prints a time of the processor and a rate, from a file in the folder of the commit.
PRINTS = """
from pathlib import Path
time, rate = (Path("..", name).read_text() for name in ("time", "rate"))
print("time", time, "s, rate", rate)
"""
FIGURES = """
[[run]]
script = "printed"
[[run.figure]]
name = "start"
pattern = '^time <n> s'
[[run.figure]]
name = "rate"
pattern = 'rate <n>$'
more_is_better = true
limit = "at least 95"
"""


def _commit(folder: Path, name: str, time: str, rate: str = "100", script: str = PRINTS) -> Version:
    tree = folder / name
    (tree / "benchmarks").mkdir(parents=True)
    (tree / "benchmarks" / "printed.py").write_text(script)
    (tree / "time").write_text(time)
    (tree / "rate").write_text(rate)
    return Version(name, tree, Path(sys.executable))


def _limits(folder: Path, text: str = FIGURES) -> Limits:
    (folder / "printed.py").touch()
    (folder / "limits.toml").write_text(text)
    return read_limits(folder / "limits.toml")


def _problems(limits: Limits, before: Version, now: Version) -> list[str]:
    found = compare(limits, now, before, rounds=1, names=["printed"])
    return [problem for each in found if (problem := each.problem("old"))]


@pytest.mark.parametrize(
    ("time", "rate", "slower"),
    [("1.11", "100", "start"), ("1.09", "91", ""), ("0.5", "90", "rate")],
)
def test_a_figure_that_is_eleven_percent_slower_fails(
    tmp_path: Path, time: str, rate: str, slower: str
) -> None:
    """Nine percent do not, and of a rate less is slower."""
    problems = _problems(
        _limits(tmp_path), _commit(tmp_path, "old", "1.00"), _commit(tmp_path, "now", time, rate)
    )
    assert [each.partition(":")[0] for each in problems] == ([slower] if slower else [])


def test_the_failure_names_both_medians_and_the_ratio(tmp_path: Path) -> None:
    """A maintainer reads in one line what is slower."""
    before, now = _commit(tmp_path, "old", "1.00"), _commit(tmp_path, "now", "1.5")
    (problem,) = _problems(_limits(tmp_path), before, now)
    assert problem == "start: 1 at old, 1.5 now, 1.50 times as slow"


@pytest.mark.parametrize(
    ("up_to", "at_most", "fails"),
    [("HEAD", 1.2, False), ("HEAD", 1.1, True), ("HEAD~1", 1.2, True)],
)
def test_a_reason_allows_a_slower_figure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, up_to: str, at_most: float, fails: bool
) -> None:
    """It has an upper limit, and counts for comparisons with its commit or with earlier ones."""
    git = ("git", "-C", str(tmp_path), "-c", "user.name=a", "-c", "user.email=a@b")
    subprocess.run([*git[:3], "init", "-q"], check=True)
    for _ in range(2):
        subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", "x"], check=True)
    monkeypatch.setattr(versions, "PROJECT", tmp_path)
    reason = (
        f'[[slower]]\nfigure = "start"\nup_to = "{up_to}"\n'
        f'at_most = {at_most}\nreason = "checks more"\n'
    )
    limits = _limits(tmp_path, FIGURES + reason)
    old, now = _commit(tmp_path, "HEAD", "1.00"), _commit(tmp_path, "now", "1.15")
    found = list(compare(limits, now, old, rounds=1, names=["printed"]))
    assert bool(found[0].problem("old")) == fails
    assert ("checks more" in found[0].row()) == (up_to == "HEAD")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('[[slower]]\nfigure = "end"\nup_to = "a"\nat_most = 2\nreason = "b"', "no figure 'end'"),
        ('[[slower]]\nfigure = "start"\nup_to = "a"\nat_most = 2', "reason"),
        ('[[run.figure]]\nname = "x"\npattern = "y"\nlimits = "at most 1"', "limits"),
        ('[[run.figure]]\nname = "start"\npattern = "y"', "got twice: start"),
        ('[[run]]\nscript = "other"', "got other.py"),
        ("[[faster]]", "got faster"),
    ],
)
def test_an_unknown_name_in_the_file_is_an_error(tmp_path: Path, text: str, message: str) -> None:
    """A misspelled figure would be compared with nothing."""
    with pytest.raises(LimitsError, match=message):
        _limits(tmp_path, FIGURES + text)


def test_commits_take_turns() -> None:
    """The commit that ends a round begins the next one, so that none runs on a warmer machine."""
    old, now = (Version(name, PROJECT, Path()) for name in ("old", "now"))
    assert [each.name for each in turns(old, now, 3)] == ["old", "now", "now", "old", "old", "now"]


def test_a_figure_that_only_the_earlier_commit_lacks_is_shown(tmp_path: Path) -> None:
    """It is not a failure; a figure that this commit no longer prints is one."""
    silent = _commit(tmp_path, "silent", "1", script="raise SystemExit('no such command')")
    printing = _commit(tmp_path, "printing", "1.00", "90")
    limits = _limits(tmp_path)
    found = list(compare(limits, printing, silent, rounds=2, names=["printed"]))
    assert [each.problem("old") for each in found] == ["", ""]
    assert (
        table(found, "old")[-1]
        == "| rate | at least 95, missed | none: no such command | 90 |  |  |"
    )
    assert "not measured, no such command" in _problems(limits, printing, silent)[0]


def test_values_are_numbers_or_quotients_and_a_cell_has_their_median() -> None:
    """Separators of thousands are read, and a cell has the lowest and the highest value too."""
    assert Figure("rate", r"^rate +<n>/s").find("rate  1,200/s\nrate  800/s") == [1200, 800]
    assert Figure("share", r"^ours +<n> ms\ntheirs +<n> ms").find(
        "ours   30.0 ms\ntheirs  120.0 ms"
    ) == [0.25]
    assert [cell([0.25]), cell([1.31, 1.2, 1.5]), cell([4563, 6875])] == [
        *("0.25", "1.31 (1.2 to 1.5)", "5,719 (4,563 to 6,875)")
    ]


def test_a_busy_machine_is_shown() -> None:
    """Figures by the clock say little then."""
    assert load(lambda: (0.1, 0, 0)).startswith("load 0.1 on ")
    assert "other programs are running" in load(lambda: (10_000, 0, 0))


def test_a_commit_that_does_not_exist_cannot_be_compared(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The command ends with exit code 2, as it measured nothing."""
    assert command.main(["--against", "no-such-commit"]) == 2
    assert "AGAINST: must be a commit of this repository" in capsys.readouterr().err


def test_what_a_stopped_run_left_is_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A part of the files, and a broken environment. What is complete is not installed again."""
    repository = tmp_path / "repository"
    repository.mkdir()
    makefile = (
        ".venv/.installed:\n\tmkdir .venv/bin 2>/dev/null "
        "|| mkdir -p .venv/bin\n\ttest ! -e .venv/broken\n"
    )
    (repository / "Makefile").write_text(makefile + "\ttest ! -e offline && touch $@\n")
    git = ("git", "-C", str(repository), "-c", "user.name=a", "-c", "user.email=a@b")
    for words in (("init", "-q"), ("add", "."), ("commit", "-qm", "x")):
        subprocess.run([*git, *words], check=True)
    monkeypatch.setattr(versions, "PROJECT", repository)
    monkeypatch.setattr(versions, "_TREES", trees := repository / "build")
    name = subprocess.run(
        [*git, "rev-parse", "--short=8", "HEAD"], check=True, capture_output=True, text=True
    ).stdout.strip()
    (trees / f"{name}.partial").mkdir(parents=True)
    tree = versions.installed_version("HEAD").tree
    shutil.move(tree / ".venv" / ".installed", tree / ".venv" / "broken")
    assert versions.installed_version("HEAD").python == tree / ".venv" / "bin" / "python"
    (tree / "offline").touch()
    versions.installed_version("HEAD")
    (tree / ".venv" / ".installed").unlink()
    with pytest.raises(UnusableCommitError, match="needs the network"):
        versions.installed_version("HEAD")


@pytest.mark.parametrize(
    "run", LIMITS.runs, ids=lambda run: f"{run.script} {' '.join(run.arguments)}"
)
def test_every_figure_belongs_to_a_benchmark(run: Run) -> None:
    """The script has the options, and --project if it measures another checkout."""
    source = (PROJECT / "benchmarks" / f"{run.script}.py").read_text(encoding="utf-8")
    options = {node.value for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Constant)}
    assert {each for each in run.arguments if each.startswith("--")} <= options
    assert not run.is_compared or run.is_shared == ("--project" in options)
    assert all(
        "by the clock" in figure.name or "median" in figure.name or "time" in figure.name
        for figure in run.figures
        if figure.by_clock
    )


def test_the_page_has_the_present_docstrings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Writing the page again changes nothing below its head, which has the date and the machine."""
    shutil.copy(page.OUTPUT, written := tmp_path / "benchmarks.md")
    monkeypatch.setattr(page, "OUTPUT", written)
    page.write_page({})
    before, after = (
        file.read_text().partition("\n## ")[2]
        for file in (PROJECT / "dev" / "project" / "benchmarks.md", written)
    )
    assert before == after, (
        "dev/project/benchmarks.md: an old docstring; run `make bench NAMES=simulation`"
    )


def test_a_measured_part_replaces_the_one_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other parts stay, and the table shows limits that are missed."""
    shutil.copy(page.OUTPUT, written := tmp_path / "benchmarks.md")
    monkeypatch.setattr(page, "OUTPUT", written)
    monkeypatch.setattr(
        Version, "run", lambda *_, **__: Outcome("10,000 str, 4-78 long  decode  1.0  3.0x  0.5x")
    )
    section, failed = page.measure("codec", Version("now", PROJECT, Path()), LIMITS)
    page.write_page({"codec": section})
    assert failed == ""
    assert (
        "| decoding strings, times as fast as JSON | at least 1.0, missed | 0.5 |"
        in written.read_text()
    )
    assert written.read_text().count("\n## ") == (
        PROJECT / "dev" / "project" / "benchmarks.md"
    ).read_text().count("\n## ")
