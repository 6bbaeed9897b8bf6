"""Finds the cause of a failure in the messages of SageMaker, CloudFormation and Triton.

A line has the first entry of the catalogue (``constructs_triton_core/facts/failures.json``) whose
pattern matches it: single messages are before kinds of failures, and those before what only says
that something failed. A line without an entry of its own is also compared with the error texts of
Triton's sources, and searched once more without the escapes of the messages around it. If only the
words around an inner message are known, the diagnosis says which message it does not explain.
Nothing here reads a file or calls AWS.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from typing import NamedTuple

from constructs_triton_core.facts.failure_texts import SourceText, find_texts
from constructs_triton_core.facts.failures import Failure, Rank, known_failures
from constructs_triton_tools.operations.container_log import (
    is_informational,
    release,
    starts,
    still_loading,
)
from constructs_triton_tools.operations.nested_message import (
    inner_messages,
    speakers,
    without_escapes,
)
from constructs_triton_tools.operations.unknown_message import read_unknown
from triton_model_check.facts.images import image_version

#: Where an entry's message occurs, if a container's log can contain it.
_IN_LOGS = re.compile(r"log:|ModelError|container|docker")
_MOST_CHARACTERS = 20_000
"""What is read of one message."""
_FEWEST_CHARACTERS = 30
"""A shorter text of Triton's sources says less than a kind of failure."""
_EXCEPTION_LINE = re.compile(r"\s{0,8}[\w.]{0,80}(?:Error|Exception): \S")
_VALUE_CHARACTERS = 200
_SHOWN_CHARACTERS = 300


@dataclass(frozen=True, slots=True)
class Message:
    """A text that may explain a failure.

    Args:
        text: The text. Only its first line is a message; further lines complete it.
        source: Where the text is from, for the reader.
        is_log: Whether a container wrote it, so that only entries of containers apply.
        shown: Line of the diagnosis. Default: the first line of ``text``.
        triton_version: Release of the image that the text is from, such as ``"26.05"``. Default:
            unknown.
    """

    text: str
    source: str
    is_log: bool = False
    shown: str = ""
    triton_version: str | None = None


class _Match(NamedTuple):
    """An entry, the values that its pattern found, and where its words end in the message."""

    failure: Failure
    values: Mapping[str, str | None]
    end: int
    #: Message inside this one that no entry explains.
    unexplained: str = ""


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """One failure that was recognized.

    Args:
        id: Entry of the catalogue.
        cause: The likeliest cause.
        other_causes: Other causes, by likelihood.
        fix: What to do.
        if_none_fits: What to look at to tell the causes apart, and if none is the case. Empty if
            the text proves its cause; else other causes are possible that no entry knows.
        meaning: What a general message proves, whatever its cause is. Empty if ``cause`` is the
            best answer; else the text alone does not decide between the causes.
        keywords: Properties, checks and commands that help with the fix.
        line: Text that it was concluded from.
        source: Where that text is from.
        rank: Whether the text names a cause, only says that something failed, or is a note.
        writer: Which program writes the text, and in which releases, if Triton's sources have it.
            The file is one of Triton's, not of the user.
        speakers: Programs that pass the message on, the outermost first, if there are several.
        unexplained: Message inside this one that no entry explains. ``cause`` is then only what the
            words around it mean.
    """

    id: str
    cause: str
    other_causes: tuple[str, ...]
    fix: str
    keywords: tuple[str, ...]
    line: str
    source: str
    rank: Rank
    writer: str = ""
    speakers: tuple[str, ...] = ()
    unexplained: str = ""
    if_none_fits: str = ""
    meaning: str = ""

    def to_dict(self) -> dict[str, object]:
        """Return the diagnosis as values that JSON can hold."""
        return {name: value for name, value in asdict(self).items() if name != "rank"}


def diagnose(messages: Iterable[Message]) -> list[Diagnosis]:
    """Return what the messages say, the likeliest cause first, each failure once.

    A message that names a cause is before one that only says that something failed. Among equals
    the order of the messages decides. Notes are returned only together with another failure.

    Args:
        messages: Texts to search, such as the lines of a log.
    """
    found: dict[str, Diagnosis] = {}
    for message in messages:
        diagnosis = recognize(message)
        if diagnosis is not None:
            found.setdefault(diagnosis.id, diagnosis)
    ordered = sorted(found.values(), key=lambda failure: failure.rank)
    return ordered if ordered and ordered[0].rank is not Rank.NOTE else []


def diagnose_log(
    log: str, source: str = "log", *, is_log: bool = True, triton_version: str | None = None
) -> list[Diagnosis]:
    """Return what a log says, the likeliest cause first; nothing if it contains no known failure.

    Of a container that was started several times, the last start that explains a failure counts.

    Args:
        log: Content of the log.
        source: Where the log is from, for the reader.
        is_log: Whether a container wrote it. ``False`` also recognizes messages that containers do
            not write, such as those of AWS APIs.
        triton_version: Release of the container's image, if the log does not contain it.
    """
    version = release(log) or triton_version
    for lines in starts(log):
        found = diagnose(Message(line, source, is_log, triton_version=version) for line in lines)
        if found:
            return found
    return _of_loading_models(log, source)


def _of_loading_models(log: str, source: str) -> list[Diagnosis]:
    """Return the diagnosis of the first model whose load has no end; Triton writes nothing then."""
    for model, version in still_loading(log):
        text = f"model {model}, version {version}, is still loading"
        found = recognize(Message(text, source, shown=f"loading: {model}:{version}"))
        if found is not None:
            return [found]
    return []


def recognize(message: Message) -> Diagnosis | None:
    """Return the entry of one message, or ``None`` if none matches.

    The first line counts; further lines only complete it.
    """
    text = message.text[:_MOST_CHARACTERS]
    found = _by_pattern(text, is_log=message.is_log)
    if found is None or found.failure.rank in (Rank.KIND, Rank.WRAPPER):
        # A message inside another one has escapes, such as \\" and \\u0027.
        plain = without_escapes(text)
        if plain != text:
            found = _more_specific(found, _by_pattern(plain, is_log=message.is_log))

    if found is not None and found.failure.rank not in (Rank.KIND, Rank.WRAPPER):
        return _diagnosis(found, message, find_texts(text))

    # Inside the message of a wrapper, or without a pattern, a text of Triton's sources decides.
    first_line = text.partition("\n")[0]
    texts = [] if is_informational(first_line) else find_texts(first_line)
    is_kind = found is not None and found.failure.rank is Rank.KIND
    long = [text for text in texts if len(text.text) >= _FEWEST_CHARACTERS]
    diagnosis = _by_text(long if is_kind else texts, message)
    if diagnosis is None and found is not None:
        return _diagnosis(_with_unexplained(found, text), message, texts)
    return diagnosis


def recognize_inner(message: Message) -> Diagnosis | None:
    """Return the entry of the innermost message that has a cause of its own, or ``None``.

    The entry of the whole message can explain other words, around this message.
    """
    text = message.text[:_MOST_CHARACTERS]
    for inner in inner_messages(text):
        found = _by_pattern(without_escapes(inner.text), is_log=message.is_log)
        if found is not None and found.failure.rank is Rank.CAUSE:
            return _diagnosis(found, message, ())
    return None


def unexplained_exception(text: str) -> str:
    """Return the first line of a text that is an exception without an entry; ``""`` if none."""
    for line in text.splitlines():
        if _EXCEPTION_LINE.match(line) and recognize(Message(line, "")) is None:
            return line.strip()
    return ""


def _with_unexplained(found: _Match, text: str) -> _Match:
    """Return a match with the innermost message that its words do not contain."""
    innermost = next(iter(inner_messages(text)), None)
    if found.failure.rank is not Rank.WRAPPER or innermost is None:
        return found
    if found.end > innermost.introduction:
        return found
    return found._replace(unexplained=without_escapes(innermost.text))


def _more_specific(first: _Match | None, second: _Match | None) -> _Match | None:
    """Return the match whose entry says more about the cause: the earlier in the catalogue."""
    if first is None or second is None:
        return first or second
    order = known_failures().index
    return min(first, second, key=lambda match: order(match.failure))


def _by_pattern(text: str, *, is_log: bool) -> _Match | None:
    """Return the first entry whose pattern matches a message, and the values in the message."""
    first_line, _, other_lines = text.partition("\n")
    lower_case = text.lower()
    for failure in _applying(is_log, is_informational(first_line)):
        if not failure.may_match(lower_case):
            continue
        match = failure.pattern.search(first_line)
        if match is not None:
            return _Match(failure, match.groupdict(), match.end())

        # A match has to begin in the first line: the others are messages of their own.
        match = failure.pattern.search(text) if other_lines else None
        if match is not None and match.start() < len(first_line) < match.end():
            return _Match(failure, match.groupdict(), match.end())
    return None


def _by_text(texts: Sequence[SourceText], message: Message) -> Diagnosis | None:
    """Return the entry of the longest text of Triton's sources that names a cause."""
    first = message.text.partition("\n")[0]
    if not texts:
        return None
    applying = {known.id: known for known in _applying(message.is_log, is_informational(first))}
    for text in texts:
        failure = applying.get(text.id)
        if failure is not None and failure.rank is Rank.CAUSE:
            return _diagnosis(_Match(failure, {}, 0), message, [text])
    return None


@cache
def _applying(is_log: bool, is_information: bool) -> tuple[Failure, ...]:
    """Return the entries that a line of a log, or another text, can have."""
    failures = known_failures()
    if is_log:
        failures = tuple(failure for failure in failures if _IN_LOGS.search(failure.where))
    if is_information:
        failures = tuple(failure for failure in failures if is_informational(failure.example))
    return failures


def _diagnosis(match: _Match, message: Message, texts: Iterable[SourceText]) -> Diagnosis:
    failure = match.failure
    named = {name: _short(value) for name, value in match.values.items() if value}
    explanation = failure.filled(_image_values(message.triton_version) | named)
    cause, *others = explanation.causes
    return Diagnosis(
        id=failure.id,
        cause=cause,
        other_causes=tuple(others),
        fix=explanation.fix,
        keywords=failure.keywords,
        line=message.shown or message.text.partition("\n")[0].strip(),
        source=message.source,
        rank=failure.rank,
        writer=next((text.writer for text in texts if text.id == failure.id), ""),
        speakers=speakers(message.text[:_MOST_CHARACTERS]),
        unexplained=_short(match.unexplained),
        if_none_fits=explanation.if_none_fits,
        meaning=explanation.meaning,
    )


def _image_values(triton_version: str | None) -> dict[str, str]:
    """Return the values of a text that the image determines, if the image is known."""
    python = None if triton_version is None else image_version(triton_version).python
    if python is None:
        return {}
    return {"image_python": f"Python {python}, the version in image {triton_version}"}


def _short(value: str) -> str:
    """Return a value from a message in one line. Messages contain ``\\n`` as two characters."""
    words = value.replace("\\n", " ").split()
    return " ".join(words)[:_VALUE_CHARACTERS].strip(' "')


def format_diagnoses(diagnoses: Iterable[Diagnosis]) -> str:
    """Return diagnoses as text: the first with everything, the others in short."""
    first, *others = diagnoses
    is_general = bool(first.meaning) and not first.unexplained
    begin = _meaning_and_step if is_general else _cause_and_step
    lines = [*begin(first), f"  from {first.source}: {printable(first.line)}"]
    if first.speakers:
        lines.append(f"  passed on by {', '.join(first.speakers)}")
    if first.writer:
        lines.append(f"  written by {first.writer}")
    if first.keywords:
        lines.append(f"  see: {', '.join(first.keywords)}")
    if is_general:
        lines.append(f"  often: {first.cause}")
    lines += [f"  or: {cause}" for cause in first.other_causes]
    if is_general:
        lines.append(f"  fix: {first.fix}")
    elif first.if_none_fits:
        lines.append(f"  if it is something else: {first.if_none_fits}")
    lines += [f"also: {other.meaning or other.cause} [{other.id}]; {other.fix}" for other in others]
    return "\n".join(lines)


def _meaning_and_step(diagnosis: Diagnosis) -> list[str]:
    """Return what a general message means, and what to look at, because it has many causes."""
    return [
        f"cause: not certain from this message: {diagnosis.meaning} [{diagnosis.id}]",
        f"  look at: {diagnosis.if_none_fits}",
    ]


def _cause_and_step(diagnosis: Diagnosis) -> list[str]:
    """Return the cause and what to do about it, or what is not known of an inner message."""
    cause = f"{diagnosis.cause} [{diagnosis.id}]"
    if not diagnosis.unexplained:
        certainty = "likely cause" if diagnosis.if_none_fits else "cause"
        return [f"{certainty}: {cause}", f"  fix: {diagnosis.fix}"]
    inner = printable(diagnosis.unexplained)
    return [
        f'cause: not known, no entry of the catalogue fits "{inner}"; around it: {cause}',
        f"  next: {read_unknown(diagnosis.unexplained).step}; then: {diagnosis.fix}",
    ]


def printable(line: str) -> str:
    """Return a line of a log as a terminal can show it, and not too long."""
    shown = "".join(character if character.isprintable() else " " for character in line)
    if len(shown) <= _SHOWN_CHARACTERS:
        return shown
    return shown[:_SHOWN_CHARACTERS] + "..."
