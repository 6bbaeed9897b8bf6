"""A rule: a function that looks at one model or one repository and yields its problems."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from constructs_triton_core.facts import facts_of
from constructs_triton_core.findings import Severity
from triton_model_check.model_config.target import PLATFORMS, Platform, Target

if TYPE_CHECKING:
    from triton_model_check.fixes.steps import Remedy
    from triton_model_check.model_config.locations import FieldPath

Scope = Literal[
    "model",
    "fault",
    "config",
    "file",
    "ensemble",
    "sequence",
    "calls",
    "python",
    "environment",
    "onnxruntime",
    "pytorch",
    "tensorrt",
    "fil",
    "vllm",
    "tensorrtllm",
    "tensorrtllm-template",
    "repository",
    "environments",
    "comment",
]
"""What a rule applies to: every model folder; a ``config.pbtxt`` that does not parse; one that
does; models whose backend loads a file; ensembles; models with ``sequence_batching``; models that
call others; models of one of the named backends; Python models with ``EXECUTION_ENV_PATH``; models
of a repository that has one of TensorRT-LLM; the repository as a whole; one with environments; each
comment that ignores findings."""


class Problem(NamedTuple):
    """One thing that is wrong.

    ``field`` is the place in ``config.pbtxt``. ``path`` names another file or folder instead.
    ``hint`` replaces the hint of the rule. ``fix`` changes the file in which the problem is.
    ``rejects``: whether Triton rejects this one, if it does not reject all problems of the rule.
    """

    message: str
    field: FieldPath = ()
    hint: str | None = None
    path: str | None = None
    line: int | None = None
    column: int | None = None
    fix: Remedy | None = None
    rejects: bool = False


IGNORE_MARK = "triton-model-check:"
"""The beginning of a comment that ignores findings."""

RuleFunction = Callable[[Any], Iterable[Problem]]
"""Takes a ``ModelUnderCheck``; a ``RepositoryContext`` or a ``UsedComment``
if the scope is that.
"""


@dataclass(frozen=True)
class Rule:
    """A rule, as the documentation lists it.

    ``rejects``: whether Triton rejects to load the model. ``needs_files``: whether the rule looks
    at files beside ``config.pbtxt``; it is skipped if the weights are stored elsewhere. ``when``:
    the rule runs only if one of these fields of the configuration is set; empty means always.
    ``platforms``: where the rule holds. ``since``, ``before``: the first image version for which it
    holds, and the first one for which it does not; a rule with one of them is skipped if the
    version is not known. ``server_hint``: the hint where ``hint`` is about SageMaker.
    """

    code: str
    severity: Severity
    scope: Scope
    source: str
    hint: str
    rejects: bool
    needs_files: bool
    when: tuple[str, ...]
    platforms: tuple[Platform, ...]
    since: str | None
    before: str | None
    server_hint: str
    function: RuleFunction

    @property
    def summary(self) -> str:
        """The rule in one sentence."""
        return (self.function.__doc__ or "").split("\n\n")[0].replace("\n    ", " ").strip()

    @property
    def reason(self) -> str:
        """The reason for the rule."""
        return " ".join((self.function.__doc__ or "").split("\n\n", 1)[-1].split())

    @property
    def group(self) -> str:
        """The module of the rule, which is its chapter in the documentation."""
        return self.function.__module__.rsplit(".", 1)[-1]

    def holds_for(self, target: Target) -> bool:
        """Whether the rule holds for a target: its platform,
        its image and the files that are there.
        """
        version = target.image_version
        if target.platform not in self.platforms or (self.needs_files and not target.local_files):
            return False
        if version is None:
            return self.since is None and self.before is None
        return (self.since or "") <= version < (self.before or "~")  # YY.MM sorts as a string

    def hint_for(self, problem: Problem, target: Target) -> str:
        """The hint of a problem on a target: its own, or the rule's."""
        if problem.hint is not None:
            return problem.hint
        if target.is_sagemaker:
            return self.hint
        # A server has no annotations to acknowledge, but comments that ignore a finding.
        return self.server_hint or self.hint.replace("acknowledge this", "ignore this")

    @property
    def fix_reason(self) -> str | None:
        """Why nothing can fix its problems automatically,
        or ``None`` if ``--fix`` can fix some of them.
        """
        return next(
            (why for why, codes in _load("fix_reasons").items() if self.code in codes), None
        )


_load = facts_of(__package__)
_IMPORTED: dict[str, Rule] = {}
"""The rules of the modules that are imported, by their code."""


def rules_of(module: str) -> tuple[Rule, ...]:
    """Return the rules of an imported module, in its order."""
    imported = tuple(_IMPORTED.values())  # a copy: another thread may import rules meanwhile
    return tuple(rule for rule in imported if rule.function.__module__ == module)


def rule(
    code: str,
    scope: Scope = "config",
    *,
    source: str,
    hint: str = "",
    severity: Severity = Severity.ERROR,
    rejects: bool | None = None,
    needs_files: bool = False,
    when: tuple[str, ...] = (),
    platforms: tuple[Platform, ...] = PLATFORMS,
    since: str | None = None,
    before: str | None = None,
    server_hint: str = "",
) -> Callable[[RuleFunction], RuleFunction]:
    """Register a function as the rule ``code``.

    By default Triton rejects to load what breaks a rule of severity error.
    """

    def register(function: RuleFunction) -> RuleFunction:
        if code in _IMPORTED:
            raise ValueError(f'{code}: two rules have this code; rename "{function.__name__}"\'s')
        server_rejects = severity is Severity.ERROR if rejects is None else rejects
        _IMPORTED[code] = Rule(
            *(code, severity, scope, source, hint, server_rejects, needs_files, when),
            *(platforms, since, before, server_hint, function),
        )
        return function

    return register


warning = partial(rule, severity=Severity.WARNING)
"""Register a function as a rule whose problems do not stop a model from loading."""
