"""Write the table of error texts from the sources, and print what a new release changes. Write the
words of the patterns too.

    python -m failure_texts FOLDER

FOLDER contains a git repository ``triton-inference-server+NAME/repo``, ``NAME`` or ``NAME.git`` for
each repository. Each has a branch ``r24.10`` for each release; a repository that is absent keeps
its texts. Without FOLDER, the entries of the known texts are chosen anew.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from pathlib import Path

from failure_texts.collecting import Text, collect
from failure_texts.needles import write_needles
from failure_texts.repositories import REPOSITORIES
from failure_texts.table import entry_of, read_table, write_table

_FORMS = ("{}", "{}.git", "triton-inference-server+{}/repo", "triton-inference-server+{}")


def main() -> None:
    """Read, compare and write."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", type=Path, nargs="?")
    arguments = parser.parse_args()
    write_needles()
    known = list(read_table())
    texts = known
    if arguments.folder is not None:
        folders = dict(_folders(arguments.folder))
        kept = [text for text in known if text.repository not in folders]
        texts = kept + collect(folders)
        print_difference(known, texts)
    write_table(texts)


def _folders(parent: Path) -> Iterable[tuple[str, Path]]:
    for name in REPOSITORIES:
        found = [parent / form.format(name) for form in _FORMS]
        folder = next((each for each in found if each.is_dir()), None)
        if folder is not None:
            yield name, folder


def print_difference(known: Iterable[Text], texts: Iterable[Text]) -> None:
    """Print the new texts, each with its entry, and how many the newest release lacks."""
    before = {(text.repository, text.text): text.last for text in known}
    new = [text for text in texts if (text.repository, text.text) not in before]
    for text in new:
        entry = entry_of(text)
        if entry is not None:
            print(f"{entry or 'NO ENTRY'}: {text.repository}, {text.file}: {text.text}")
    print(f"{len(new)} new texts, {len(before)} before")


if __name__ == "__main__":
    main()
