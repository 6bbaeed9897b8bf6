"""Writes the troubleshooting pages from the catalogue of failures."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from constructs_triton_core.facts.failures import Failure, known_failures, unknown_values

#: Pages: title, and how the first place begins where a message of the page occurs.
PAGES: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "deployment": (
        "The deployment fails",
        ("FailureReason", "CloudFormation", "API call", "CLI", "any AWS", "DescribeEndpoint", "docker"),
    ),
    "models": ("A model does not load", ("log", "container")),
    "requests": ("A request fails", ("invocation", "async")),
    "scaling": ("Scaling does not work", ("CloudWatch alarm", "scaling")),
}
EVIDENCE = {
    "run": "printed by Triton 24.10 in a test",
    "issue": "quoted in a public issue",
    "source": "in the source code",
    "code": "quoted in public code",
    "docs": "described in documentation; the wording may differ",
    "recalled": "from memory; the wording may differ",
}
INDEX_HEAD = """# Troubleshooting

This page lists {count} messages of SageMaker, CloudFormation, Triton and its backends. Search it for a few
words of your message, and follow the link to the causes and the fix. Or run
[`constructs-triton diagnose NAME`](../guides/operating.md#find-the-cause-of-a-failure), which
searches for you.
"""
HEAD = """# {title}

Search this page for the message that you see. Or run
[`constructs-triton diagnose ENDPOINT`](../guides/operating.md#find-the-cause-of-a-failure), which reads the
state of your endpoint, its logs and the events of its stack, and prints the entry that matches. The most
likely cause is the first one.

"""


def write_troubleshooting(folder: Path) -> None:
    """Write one page for each place in which messages occur, and an index of them."""
    folder.mkdir(parents=True, exist_ok=True)
    index = [INDEX_HEAD.format(count=len(known_failures())).rstrip()]
    for name, (title, _) in PAGES.items():
        failures = [each for each in known_failures() if _page_of(each) == name]
        text = HEAD.format(title=title) + "\n".join(line for each in failures for line in _section(each))
        (folder / f"{name}.md").write_text(f"{text}\n", encoding="utf-8")
        index += ["", f"## [{title}]({name}.md)", ""]
        index += [f"- [{_code(_heading(each))}]({name}.md#{each.id})" for each in failures]
    (folder / "index.md").write_text("\n".join(index) + "\n", encoding="utf-8")


def _page_of(failure: Failure) -> str:
    return next(name for name, (_, starts) in PAGES.items() if failure.where.startswith(starts))


def _section(failure: Failure) -> Iterator[str]:
    yield f'<a id="{failure.id}"></a>\n\n## {_code(_heading(failure))}\n'
    if _heading(failure) != failure.example:
        yield f"```text\n{failure.example}\n```\n"
    for other in failure.other_texts:
        yield f"Triton {other.releases}:\n\n```text\n{other.text}\n```\n"
    yield f"Where: {failure.where}.\n"
    yield "\n".join(["Causes:\n", *(f"1. {_filled(each, failure)}" for each in failure.causes)]) + "\n"
    yield f"Fix: {_filled(failure.fix, failure)}.\n"
    if failure.keywords:
        yield f"See also: {', '.join(f'`{each}`' for each in failure.keywords)}.\n"
    yield f"Source: {EVIDENCE[failure.evidence]}: {_linked(failure.source)}.\n"


def _heading(failure: Failure) -> str:
    """The message in one line; the whole message follows where it is longer."""
    line = " ".join(failure.example.split())
    return line if len(line) <= 240 else f"{line[:240].rsplit(' ', 1)[0]} …"


def _code(text: str) -> str:
    return f"`` {text} ``" if "`" in text else f"`{text}`"


def _filled(text: str, failure: Failure) -> str:
    """Put the names of the example into the placeholders."""
    found = failure.pattern.search(failure.example)
    names = {**unknown_values(), **(found.groupdict() if found else {})}
    return _plain(re.sub(r"\{(\w+)\}", lambda name: names.get(name[1]) or name[0], text))


def _linked(text: str) -> str:
    return re.sub(r"https?://[^\s,;)]+", r"<\g<0>>", _plain(text))


def _plain(text: str) -> str:
    return text.rstrip(".").replace("<", "&lt;").replace("*", "\\*")
