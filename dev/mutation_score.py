"""Print a Markdown table of mutation scores: ``mutmut results --all true | python
dev/mutation_score.py``.

A mutant that times out counts as killed, because a test noticed it. One that no test executes
counts as survived.
"""

from __future__ import annotations

import sys
from collections import Counter, defaultdict
from collections.abc import Iterable

STATUSES = ("killed", "timeout", "survived", "no tests")


def scores(lines: Iterable[str]) -> list[str]:
    """Return the rows of the table, the last one with the sum.

    Mutants that were not tested are left out.
    """
    modules: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for line in lines:
        name, _, status = line.strip().rpartition(": ")
        if status != "not checked":
            modules[name.rpartition(".")[0]][status] += 1
    total = sum(modules.values(), Counter[str]())
    return [_row(f"`{name}`", counts) for name, counts in sorted(modules.items())] + [
        _row("all", total)
    ]


def _row(name: str, counts: Counter[str]) -> str:
    mutants = counts.total()
    score = 100 * (counts["killed"] + counts["timeout"]) / max(mutants, 1)
    other = mutants - sum(counts[status] for status in STATUSES)
    figures = (mutants, *(counts[status] for status in STATUSES), other, f"{score:.1f} %")
    return f"| {name} | {' | '.join(map(str, figures))} |"


if __name__ == "__main__":
    print(f"| module | mutants | {' | '.join(STATUSES)} | other | score |\n|---|{'---:|' * 7}")
    print("\n".join(scores(sys.stdin)))
