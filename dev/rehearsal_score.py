"""Rehearse all generated edits of templates, and write the record of what is found."""

from __future__ import annotations

import sys

from members import PROJECT

sys.path.insert(0, str(PROJECT / "packages" / "rehearse" / "tests"))

from mutations.score import results, score, write_record


def main() -> None:
    """Write the record, and print the share that is found."""
    found = write_record(results(processes=2))
    print(f"found {score(found):.1%} of the wrong edits; missed: {len(found['missed'])}")
    print(f"harmless edits that are reported: {len(found['wrongly reported'])}")


if __name__ == "__main__":
    main()
