"""The chapters of the rules: each is a module, which is imported when one of its rules can apply.

``RULES`` has all rules by their code; to look one up imports all chapters.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from functools import cache, cached_property
from importlib import import_module
from typing import NamedTuple

from triton_model_check.model_config.rules import Rule, Scope, rules_of
from triton_model_check.model_config.target import PLATFORMS, SAGEMAKER, SERVERS, Platform, Target


class Chapter(NamedTuple):
    """The module of a chapter, and what it can have rules for.

    ``scopes`` has the fields of the configuration of which one must be set, by scope; none means always.
    """

    module: str
    scopes: Mapping[Scope, tuple[str, ...]]
    platforms: tuple[Platform, ...] = PLATFORMS

    @property
    def rules(self) -> tuple[Rule, ...]:
        """The rules of the module, which is imported."""
        name = f"{__name__}.{self.module}"
        import_module(name)
        return rules_of(name)

    def applies(self, scopes: Collection[str], fields: Collection[str], target: Target) -> bool:
        """Return whether the chapter can have a rule for a model of these scopes with these fields."""
        return target.platform in self.platforms and any(
            scope in scopes and (not when or not set(when).isdisjoint(fields))
            for scope, when in self.scopes.items()
        )


_SCHEDULERS = ("dynamic_batching", "sequence_batching", "response_cache")
_OF_ONNX = ("parameters", "optimization", "model_operations")
_STREAMS = ("model_transaction_policy", "ensemble_scheduling")

CHAPTERS = (
    Chapter("backend", {"model": (), "config": ()}),
    Chapter("batch_io", {"config": ("batch_input", "batch_output")}),
    Chapter("tensors", {"config": ()}),
    Chapter("ensemble", {"ensemble": ()}),
    Chapter("ensemble_steps", {"ensemble": ()}),
    Chapter("instances", {"config": ("instance_group",)}),
    Chapter("layout", {"model": (), "config": (), "repository": ()}),
    Chapter("onnx", {"onnxruntime": ()}),
    Chapter("model_file", {"file": (), "onnxruntime": (), "tensorrt": (), "pytorch": ()}),
    Chapter("other_backends", {"tensorrt": ("input", "output"), "fil": (), "onnxruntime": _OF_ONNX}),
    Chapter("python_backend", {"python": (), "calls": ()}),
    Chapter("packing.files", {"model": (), "repository": ()}),
    Chapter("python_environment", {"python": (), "environment": ()}),
    Chapter("sagemaker", {"model": (), "config": _STREAMS, "repository": ()}, SAGEMAKER),
    Chapter("scheduler", {"config": _SCHEDULERS, "sequence": ()}),
    Chapter("state", {"sequence": ()}),
    Chapter("target", {"config": (), "tensorrt": (), "repository": ()}),
    Chapter("generation.tensorrt_llm", {"tensorrtllm": (), "tensorrtllm-template": ()}),
    Chapter("text", {"fault": (), "config": ()}),
    Chapter("torchscript", {"pytorch": ()}),
    Chapter("warmup", {"config": ("model_warmup",)}),
    Chapter("comments.ignore_comments", {"comment": ()}),
    Chapter("environments.environment_packages", {"environment": (), "environments": ()}),
    Chapter("environments.environment_use", {"environment": ()}),
    Chapter("generation.gpu_memory", {"vllm": ()}),
    Chapter("generation.vllm", {"vllm": ()}),
    Chapter("platforms.server", {"model": (), "repository": ()}, SERVERS),
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
    """Return the rules for a model of these scopes with these fields; a repository has few combinations."""
    return tuple(
        rule
        for chapter in CHAPTERS
        if chapter.applies(scopes, fields, target)
        for rule in chapter.rules
        if rule.scope in scopes
        and (not rule.when or not fields.isdisjoint(rule.when))
        and rule.holds_for(target)
    )
