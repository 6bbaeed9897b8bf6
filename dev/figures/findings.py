"""The ledger of findings, now and at earlier commits."""

from __future__ import annotations

import json
import re
import subprocess
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from findings_ledger import HEAD, LEDGER

from figures import PROJECT
from figures.table import Row

#: Names the commit that counts as a release while there is no tag.
RELEASE = PROJECT / "tests" / "acceptance" / "last_release.json"
PLACE = LEDGER.relative_to(PROJECT).as_posix()
_CORPUS = re.compile(r"(?:\S*/)?(\w+): (\d+) repositories, ")
_SUM = re.compile(r"(wrongly \w+|error|warning|info)(?: +[a-z][\w-]+)? +(\d+)$")


class Ledger(NamedTuple):
    """A ledger: its sums, and the findings of each repository by the names of
    its corpus and its own.
    """

    sums: Counter[str]
    findings: dict[tuple[str, str], str]


def read(text: str) -> Ledger:
    """Read what ``make findings`` wrote."""
    sums, findings, corpus = Counter[str](), {}, ""
    for line in text.removeprefix(HEAD).splitlines():
        if head := _CORPUS.match(line):
            corpus = head[1]
            sums["repositories"] += int(head[2])
        elif counted := _SUM.match(line):
            sums[counted[1] if " " in counted[1] else f"{counted[1]}s"] += int(counted[2])
        elif line:
            name, _, found = line.partition(" ")
            findings[corpus, name] = found.strip()
    return Ledger(sums, findings)


def findings(against: str = "") -> Iterator[Row]:
    """The sums now, and those of the first ledger and of a commit or the last release."""
    now, before = read(LEDGER.read_text(encoding="utf-8")), {}
    names = git("log", "--follow", "--format=%h", "--name-only", "--", PLACE).split()
    release = against or git("describe", "--tags", "--abbrev=0", "--match=v*").strip()
    release = release or json.loads(RELEASE.read_text(encoding="utf-8"))["release"]
    if git("rev-parse", "--is-shallow-repository").strip() != "false":
        yield Row("the first ledger", None, note="not in this clone; run `git fetch --unshallow`")
    else:
        before[f"at {names[-2]}, the first"] = git("show", f"{names[-2]}:{names[-1]}")
    # The file had other names.
    texts = (git("show", f"{release}:{name}") for name in dict.fromkeys((PLACE, *names[1::2])))
    before[f"at {release}"] = next(filter(None, texts), "")
    ledgers = {title: read(text) for title, text in before.items() if text}
    for title in before.keys() - ledgers.keys():
        yield Row(f"ledger {title}", None, note="no such commit in this clone, or it has no ledger")
    for name, count in now.sums.items():
        note = ", ".join(f"{ledger.sums[name]} {title}" for title, ledger in ledgers.items())
        yield Row(name, count, place=PLACE, note=note)
    for title, ledger in ledgers.items():
        keys = ledger.findings.keys() | now.findings.keys()
        differing = sum(ledger.findings.get(key) != now.findings.get(key) for key in keys)
        yield Row(f"repositories with other findings than {title}", differing, place=PLACE)


def git(*arguments: str) -> str:
    """Return what git prints, or nothing if it fails."""
    command = ["git", "-C", str(PROJECT), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout
