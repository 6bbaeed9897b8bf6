"""Checks configurations that are not in a folder yet."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import Any, NamedTuple

from constructs_triton_core.errors import InvalidValueError
from constructs_triton_core.findings import Severity
from triton_model_check.checks.chapters import rules_for
from triton_model_check.checks.model_under_check import RepositoryContext
from triton_model_check.checks.report import Report
from triton_model_check.model.folder import CONFIG_FILE, ModelFolder
from triton_model_check.model_config.locations import FieldPath, Range
from triton_model_check.model_config.target import Target
from triton_model_check.model_config.text import TextFault, format_model_config

UNNAMED = "model"
_COMPLETES_NOTHING = b"class TritonPythonModel:\n    def execute(self, requests): ...\n"


class ConfigProblem(NamedTuple):
    """An error that a rule found in a configuration."""

    code: str
    message: str
    hint: str
    field: FieldPath

    def __str__(self) -> str:
        return f"{self.message}; {self.hint}" if self.hint else self.message


class ModelInMemory(ModelFolder):
    """A model that has a configuration and no files."""

    def __init__(self, config: Any, *, is_complete: bool = False) -> None:
        super().__init__(config.name or UNNAMED, "")
        self._message = config
        self._is_complete = is_complete and bool(config.input) and bool(config.output)

    @cached_property
    def entries(self) -> dict[str, bool]:
        return {CONFIG_FILE: False, "1": True}

    @property
    def config(self) -> Any:
        return self._message

    @property
    def config_fault(self) -> TextFault | None:
        return None

    @cached_property
    def config_text(self) -> str | None:
        return format_model_config(self._message)

    def list(self, *_: str) -> dict[str, bool]:
        return {}

    def size_of(self, *_: str) -> int | None:
        return None

    def read(self, *parts: str) -> bytes | None:
        """A Python model that completes no tensors,
        if the configuration is taken to be complete.
        """
        return _COMPLETES_NOTHING if self._is_complete and parts[-1].endswith(".py") else None

    def locate(self, field: FieldPath) -> Range | None:  # noqa: ARG002 - the signature above
        return None  # the user wrote no file, so a line would mislead


def config_problems(config: Any, steps: Iterable[Any] | None = None) -> Iterator[ConfigProblem]:
    """Yield the errors of a ``ModelConfig`` message, without the rules that need files.

    ``steps`` are the configurations of an ensemble's models. Rules that depend on a model that is
    not among them are skipped.
    """
    model = _context(config, steps or ()).models[config.name or UNNAMED]
    rules = rules_for(model.scopes, model.fields, model.target)
    for rule in (each for each in rules if each.severity is Severity.ERROR):
        for problem in rule.function(model):
            if rule.code != "ensemble-unknown-model":
                yield ConfigProblem(
                    rule.code, problem.message, rule.hint_for(problem, model.target), problem.field
                )


def refuse_errors(config: Any, known: Iterable[ConfigProblem] = ()) -> None:
    """Raise the errors of a ``ModelConfig`` message, except those that are ``known``."""
    ignored = {(problem.code, problem.message) for problem in known}
    fresh = [each for each in config_problems(config) if (each.code, each.message) not in ignored]
    if fresh:
        title = f'model "{config.name}"' if config.name else "model config"
        raise InvalidValueError("\n".join(f"{title}: {problem}" for problem in fresh))


def report(config: Any) -> Report:
    """Return all findings about one configuration, including warnings."""
    from triton_model_check.checks.check_run import run_checks

    return run_checks(_context(config, ()), config.name or UNNAMED)


def _context(config: Any, steps: Iterable[Any]) -> RepositoryContext:
    """Return the repository in memory of a configuration and the models of its steps."""
    folders: dict[str, ModelFolder] = {
        # The tensors of a step are those of its configuration, even if its model.py would add
        # others.
        step.name: ModelInMemory(step, is_complete=True)
        for step in steps
    }
    model = folders[config.name or UNNAMED] = ModelInMemory(config)
    return RepositoryContext(
        folders=folders,
        directories=dict.fromkeys(folders, False),
        root=None,
        target=Target("server", local_files=False),
        loaded=frozenset(folders),
        served=(model.name,),
    )
