"""Whether the comments that ignore findings have a reason, and ignore something."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from constructs_triton_core.spelling import did_you_mean
from triton_model_check.checks.chapters import RULES
from triton_model_check.checks.comments import UsedComment, can_be_ignored
from triton_model_check.checks.rules import Problem, rule, warning

_SOURCE = "a rule of this check; Triton ignores comments"
_warning = partial(warning, scope="comment", source=_SOURCE)


def _problem(used: UsedComment, message: str, hint: str | None = None) -> Problem:
    comment = used.comment
    return Problem(message, hint=hint, path=comment.path, line=comment.line, column=comment.column)


@rule(
    "ignore-without-reason",
    "comment",
    rejects=False,
    source=_SOURCE,
    hint="write the reason after the codes: `# triton-model-check: ignore[code] reason`",
)
def without_reason(used: UsedComment) -> Iterator[Problem]:
    """A comment that ignores findings says why.

    Who reads the file later cannot know otherwise whether the reason still holds.
    """
    if not used.comment.reason:
        yield _problem(used, "the comment has no reason")


@_warning("ignore-unknown-code")
def unknown_code(used: UsedComment) -> Iterator[Problem]:
    """A comment that ignores findings has codes of checks that can be ignored.

    Errors of the syntax cannot be ignored: nothing else of the file is checked. Neither can
    findings about these comments.
    """
    for code in filter(lambda code: not can_be_ignored(code), used.comment.codes):
        if code in RULES:
            yield _problem(
                used, f"{code} cannot be ignored", "fix what it reports, and remove the code"
            )
        else:
            hint = did_you_mean(code, RULES, "write a code that the check prints")
            yield _problem(used, f'no check has this code, got "{code}"', hint)


@_warning("ignore-unused", hint="remove the code, or the comment")
def unused(used: UsedComment) -> Iterator[Problem]:
    """A comment that ignores findings ignores at least one of each code.

    Otherwise it hides a finding that comes later. The rule skips codes of checks that did not run,
    and the constructs do not apply it, because they check for one endpoint at a time.
    """
    for code in used.unused:
        yield _problem(used, f"the comment ignores {code}, which is not found here")
