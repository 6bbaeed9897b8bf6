"""The chapters of the rules: each is a module, which is imported when one of its rules can apply.

``chapters.json`` lists them in the order in which they are checked, with what each has rules for.

``RULES`` has all rules by their code; to look one up imports all chapters.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cache, cached_property
from importlib import import_module
from typing import NamedTuple

from constructs_triton_core.facts import facts_of
from triton_model_check.checks.rules import Rule, Scope, rules_of
from triton_model_check.model_config.target import PLATFORMS, Platform, Target


class Chapter(NamedTuple):
    """The module of a chapter, and what it can have rules for.

    ``scopes`` has the fields of the configuration of which one must be set, by scope; none means
    always. ``limits`` are the fields of the target of which one must be known, for rules that
    compare with nothing else.
    """

    module: str
    scopes: Mapping[Scope, Sequence[str]]
    platforms: tuple[Platform, ...] = PLATFORMS
    limits: tuple[str, ...] = ()

    @property
    def rules(self) -> tuple[Rule, ...]:
        """The rules of the module, which is imported."""
        name = f"{__package__}.{self.module}"
        import_module(name)
        return rules_of(name)

    def applies(self, scopes: Collection[str], fields: Collection[str], target: Target) -> bool:
        """Return whether the chapter can have a rule for a model of these
        scopes with these fields.
        """
        if target.platform not in self.platforms or not self._has_limit(target):
            return False
        return any(scope in scopes and _is_set(when, fields) for scope, when in self.scopes.items())

    def _has_limit(self, target: Target) -> bool:
        """Whether the target has something that the rules compare with."""
        return not self.limits or any(getattr(target, name) is not None for name in self.limits)


def _is_set(when: Sequence[str], fields: Collection[str]) -> bool:
    """Whether one of the fields ``when`` is set, if there are any."""
    return not when or not set(when).isdisjoint(fields)


CHAPTERS = tuple(
    Chapter(
        chapter["module"],
        chapter["scopes"],
        tuple(chapter.get("platforms", PLATFORMS)),
        tuple(chapter.get("limits", ())),
    )
    for chapter in facts_of(__package__)("chapters")["chapters"]
)


class _AllRules(Mapping[str, Rule]):
    """The rules of all chapters by their code, in the order of the chapters."""

    @cached_property
    def _rules(self) -> dict[str, Rule]:
        return {rule.code: rule for chapter in CHAPTERS for rule in chapter.rules}

    def __getitem__(self, code: str) -> Rule:
        return self._rules[code]

    def __iter__(self) -> Iterator[str]:
        return iter(self._rules)

    def __len__(self) -> int:
        return len(self._rules)


RULES = _AllRules()


@cache
def rules_for(scopes: tuple[str, ...], fields: frozenset[str], target: Target) -> tuple[Rule, ...]:
    """Return the rules for a model of these scopes with these fields;
    a repository has few combinations.
    """
    found: list[Rule] = []
    for chapter in CHAPTERS:
        if not chapter.applies(scopes, fields, target):
            continue  # its module is not imported
        for rule in chapter.rules:
            if rule.scope in scopes and _is_set(rule.when, fields) and rule.holds_for(target):
                found.append(rule)
    return tuple(found)
