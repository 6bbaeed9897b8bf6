"""Writes the troubleshooting pages from the catalogue of failures."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping
from pathlib import Path

from constructs_triton_core.facts.failures import Failure, known_failures

#: Pages: title, and how the first place begins where a message of the page occurs.
PAGES: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "deployment": (
        "The deployment fails",
        (
            "FailureReason",
            "CloudFormation",
            "API call",
            "CLI",
            "any AWS",
            "DescribeEndpoint",
            "docker",
        ),
    ),
    "models": ("A model does not load", ("log", "container")),
    "requests": ("A request fails", ("invocation", "async")),
    "scaling": ("Scaling does not work", ("CloudWatch alarm", "scaling")),
}
#: What the page says of the wording of a message that no one has seen.
WORDING = {"docs": " (the wording may differ)", "recalled": " (the wording may differ)"}
WIDTH, LONGEST = 84, 220
INDEX = """# Troubleshooting

These pages have {count} messages of SageMaker, CloudFormation, Triton and its backends, each with
the likeliest cause and the fix. To look up a message on your machine:

```console
$ constructs-triton diagnose --message "the message"
```

It prints the cause, the fix, and other causes by likelihood. `constructs-triton explain CODE`
prints also where the message occurs, and the source. [`constructs-triton diagnose
ENDPOINT`](../guides/operating.md#find-the-cause-of-a-failure) finds the message in the logs and
events of an endpoint for you.

| what happens | messages |
|---|---|
{rows}
"""
HEAD = """# {title}

Search this page for words of your message, or run `constructs-triton diagnose --message "the
message"`, which also prints [other causes](index.md).

"""


def write_troubleshooting(folder: Path) -> None:
    """Write one page for each place in which messages occur, and a page that leads to them."""
    folder.mkdir(parents=True, exist_ok=True)
    rows = []
    for name, (title, _) in PAGES.items():
        failures = [each for each in known_failures() if _page_of(each) == name]
        text = HEAD.format(title=title) + "\n".join(
            line for each in failures for line in _section(each)
        )
        (folder / f"{name}.md").write_text(f"{text}\n", encoding="utf-8")
        rows.append(f"| [{title}]({name}.md) | {len(failures)} |")
    text = INDEX.format(count=len(known_failures()), rows="\n".join(rows))
    (folder / "index.md").write_text(text, encoding="utf-8")


def _page_of(failure: Failure) -> str:
    return next(name for name, (_, starts) in PAGES.items() if failure.where.startswith(starts))


def _section(failure: Failure) -> Iterator[str]:
    (cause, *others), fix, if_none_fits, meaning = failure.filled()
    yield f"## {failure.id}\n"
    messages = [
        failure.example,
        *(f"{each.text} (Triton {each.releases})" for each in failure.other_texts),
    ]
    yield "\n".join(["```text", *(line for each in messages for line in _wrapped(each)), "```\n"])
    yield f"{_plain(_as_sentence(meaning or cause))}{WORDING.get(failure.evidence, '')}.\n"
    if meaning:
        yield f"Often: {_plain('; or '.join((cause, *others)))}.\n"
    yield f"Fix: {_plain(fix)}.\n"
    if if_none_fits:
        yield f"If it is something else: {_plain(if_none_fits)}.\n"


def _as_sentence(cause: str) -> str:
    is_word = cause.partition(" ")[0].isalpha()  # not the name of a file
    return f"{cause[:1].upper()}{cause[1:]}" if is_word else cause


def _wrapped(message: str) -> list[str]:
    """Return the beginning of a message in the width of a page."""
    line = " ".join(message.split())
    if len(line) > LONGEST:
        line = f"{line[:LONGEST].rsplit(' ', 1)[0]} ..."
    return textwrap.wrap(line, WIDTH, break_long_words=False, break_on_hyphens=False)


def _plain(text: str) -> str:
    return text.rstrip(".").replace("<", "&lt;").replace("*", "\\*")
