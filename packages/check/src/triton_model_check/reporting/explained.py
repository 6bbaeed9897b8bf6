"""What the command ``explain`` prints for the codes of checks."""

from __future__ import annotations

from collections.abc import Iterator

from constructs_triton_core.facts import facts_of
from constructs_triton_core.findings import Severity
from triton_model_check.checks.chapters import RULES
from triton_model_check.checks.rules import Rule
from triton_model_check.facts.compatibility import RULES as COMPATIBILITY_RULES
from triton_model_check.model_config.target import PLATFORMS

_load = facts_of(__package__)


def entries() -> Iterator[tuple[str, dict[str, str]]]:
    """Yield each code with what is known about it; the examples are those of the documentation."""
    examples = _load("examples")
    for code, rule in RULES.items():
        # A new rule has no example until `make docs-pages` writes it; the others are explained.
        yield code, _entry(rule, examples.get(code, {"printed": [], "changes": []}))
    for each in COMPATIBILITY_RULES:
        effect = "the deployment fails" if each.severity is Severity.ERROR else "it deploys"
        facts = {"severity": f"{each.severity}: {effect}", "source": each.source}
        title = f"{each.summary[:1].upper()}{each.summary[1:]}."
        yield each.code, {"title": title, **facts, "fix": "the finding says what to change"}


def _entry(rule: Rule, example: dict[str, list[str]]) -> dict[str, str]:
    """Return what ``explain`` prints of a rule."""
    effect = "Triton rejects the model" if rule.rejects else "the model loads, but cannot be served"
    if rule.severity is Severity.WARNING:
        effect = "the model loads and serves"
    limits = (
        f"{word} {each}" for word, each in (("from", rule.since), ("before", rule.before)) if each
    )
    return {
        "title": rule.summary.replace("``", "`"),
        "why": rule.reason.replace("``", "`") if rule.reason != rule.summary else "",
        "severity": f"{rule.severity}: {effect}",
        "group": rule.group,
        "targets": ", ".join(rule.platforms) if len(rule.platforms) < len(PLATFORMS) else "",
        "versions": " and ".join(limits),
        "source": rule.source,
        "example": "\n".join(example["printed"]) + "\n",
        "change": "\n".join(example["changes"]) + "\n",
        "fix": rule.hint or "the finding says what to change",
        "automatic fix": f"none: {rule.fix_reason}"
        if rule.fix_reason
        else "some findings, by `check --fix`",
    }
