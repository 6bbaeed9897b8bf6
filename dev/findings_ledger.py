"""Prints the findings of every check on a fixed corpus of model repositories: ``make findings``.

``packages/check/tests/contract/findings.txt`` is what it printed last, and a test compares it. A
change of a check is a difference of this file, which shows the repositories that are now checked
with another result.
"""

from __future__ import annotations

import argparse
import io
import json
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import redirect_stdout
from dataclasses import dataclass
from difflib import unified_diff
from importlib import metadata
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from backports import tarfile

from constructs_triton.cli import main as run_command
from triton_model_check.model_config.target import Platform, Target
from triton_model_check.model_repository import ModelRepository

PROJECT = Path(__file__).parents[1]
LEDGER = PROJECT / "packages" / "check" / "tests" / "contract" / "findings.txt"
HEAD = """\
The findings of all checks on a fixed corpus of model repositories. `make findings` writes this
file.

A repository is wrongly refused if the server loads and serves it and a check reports an error, and
wrongly accepted if the server does not and no check reports an error. The number of findings with a
code is in parentheses where there are several. Repositories with a recorded verdict and without
findings are not listed, unless they are wrongly accepted.
"""
WIDTH = 48


class Checked(NamedTuple):
    """One repository: its findings as pairs of severity and code,
    and what the server was seen to do.
    """

    name: str
    findings: tuple[tuple[str, str], ...]
    unchecked: int = 0
    recorded: str = ""

    @property
    def wrongly(self) -> str:
        """``"refused"`` or ``"accepted"``, or "" where both agree or the server was not asked."""
        is_refused = any(severity == "error" for severity, _ in self.findings)
        if self.recorded == "loads" and is_refused:
            return "refused"
        return (
            "accepted" if self.recorded in ("rejected", "cannot serve") and not is_refused else ""
        )

    def __str__(self) -> str:
        codes = [
            _counted(f"{severity} {code}", n) for (severity, code), n in _sorted(self.findings)
        ]
        codes += [f"{self.unchecked} not checked"] if self.unchecked else []
        recorded = f"{self.recorded}: " if self.recorded else ""
        mark = f"  <- wrongly {self.wrongly}" if self.wrongly else ""
        return f"{self.name:{WIDTH}} {recorded}{', '.join(codes) or 'no findings'}{mark}"


@dataclass(frozen=True)
class Folders:
    """The model repositories below a folder of the project,
    as ``constructs-triton check`` reports them.
    """

    folder: str
    title = "as `constructs-triton check` reports them"

    def checked(self) -> Iterator[Checked]:
        """Yield each repository, without those that an example's program has built."""
        root = PROJECT / self.folder
        configs = (
            each
            for each in root.rglob("config.pbtxt")
            if "build" not in each.relative_to(root).parts
        )
        for path in sorted({config.parents[1] for config in configs}):
            printed = io.StringIO()
            with redirect_stdout(printed):
                run_command(["check", str(path), "--json"])
            report = json.loads(printed.getvalue())
            findings = tuple((each["severity"], each["code"]) for each in report["findings"])
            name = path.relative_to(root).as_posix()
            yield Checked(name, findings, len(report["not_checked"]))


@dataclass(frozen=True)
class Recorded:
    """A folder with an archive of cases and what a server without a GPU did with each."""

    folder: str
    release: str

    @property
    def title(self) -> str:
        """What the verdicts are compared with."""
        return f"with the verdict of Triton {self.release} without a GPU"

    def checked(self) -> Iterator[Checked]:
        """Yield each case."""
        source = PROJECT / self.folder
        verdicts: dict[str, dict[str, Any]] = json.loads(
            (source / "verdicts.json").read_text("utf-8")
        )
        with TemporaryDirectory() as cases:
            with tarfile.open(source / "cases.tar.gz") as archive:
                archive.extractall(cases, filter="data")
            for name, case in sorted(verdicts.items()):
                yield self._checked(Path(cases) / name, case)

    def _checked(self, path: Path, case: Mapping[str, Any]) -> Checked:
        platform: Platform = "sagemaker-multi-model" if case.get("mode") == "mme" else "sagemaker"
        model = case.get("default_model")
        target = Target(platform, gpu_count=0, default_model=model, image_version=self.release)
        report = ModelRepository.from_directory(path).check(target, is_packed=False)
        findings = tuple((each.severity.value, each.code) for each in report.findings)
        cannot_serve = case.get("unusable") or case.get("order_dependent")
        recorded = "cannot serve" if cannot_serve else case["verdict"]
        return Checked(path.name, findings, len(report.not_checked), recorded)


CORPORA: tuple[Folders | Recorded, ...] = (
    Folders("assets"),
    Folders("examples"),
    Recorded("packages/check/tests/contract/oracle", "24.10"),
    Recorded("packages/check/tests/contract/oracle_onnx", "24.10"),
)
"""All repositories of the ledger, one line for each folder."""


def render() -> str:
    """Return the ledger.

    Raises:
        SystemExit: the installed ``onnx`` is not the pinned one, which may find something else.
    """
    pinned, installed = _pinned("onnx"), _installed("onnx")
    if installed != pinned:
        advice = f"run `pip install onnx=={pinned}`"
        sys.exit(f"onnx: must be {pinned} as in constraints.txt, got {installed}; {advice}")
    return "\n".join([HEAD, *(line for corpus in CORPORA for line in _section(corpus))])


def _pinned(package: str) -> str:
    lines = (PROJECT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    return next(line.partition("==")[2] for line in lines if line.startswith(f"{package}=="))


def _installed(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "none"


def _section(corpus: Folders | Recorded) -> Iterator[str]:
    checked = list(corpus.checked())
    yield f"{corpus.folder}: {len(checked)} repositories, {corpus.title}"
    yield ""
    if isinstance(corpus, Recorded):
        for wrongly in ("refused", "accepted"):
            yield f"wrongly {wrongly:9}{sum(each.wrongly == wrongly for each in checked):5}"
        yield ""
    for (severity, code), count in _sorted(
        finding for each in checked for finding in each.findings
    ):
        yield f"{severity:8}{code:{WIDTH}}{count:5}"
    yield ""
    for each in checked:
        if each.findings or each.wrongly or each.unchecked or not each.recorded:
            yield f"{each}"
    yield ""


def _sorted(findings: Iterable[tuple[str, str]]) -> list[tuple[tuple[str, str], int]]:
    return sorted(Counter(findings).items())


def _counted(text: str, count: int) -> str:
    return f"{text} ({count})" if count > 1 else text


def main() -> None:
    """Print the ledger, or write it and print the difference."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "--write", action="store_true", help=f"write {LEDGER.name} and print the difference"
    )
    arguments = parser.parse_args()
    new = render()
    if not arguments.write:
        print(new, end="")
        return
    old = LEDGER.read_text(encoding="utf-8") if LEDGER.exists() else ""
    LEDGER.write_text(new, encoding="utf-8")
    difference = unified_diff(
        old.splitlines(), new.splitlines(), "before", "after", n=1, lineterm=""
    )
    print("\n".join(difference) or f"{LEDGER.relative_to(PROJECT)}: unchanged")


if __name__ == "__main__":
    main()
