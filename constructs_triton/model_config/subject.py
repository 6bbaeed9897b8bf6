"""What a rule is asked about: a model, completed as Triton completes it, among its neighbours."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from constructs_triton.facts.target import Target
from constructs_triton.model_config.backends import Backend, infer_backend
from constructs_triton.model_config.folder import ModelFolder
from constructs_triton.model_config.rules import Problem

__all__ = ["Neighbourhood", "Subject"]


@dataclass(frozen=True)
class Neighbourhood:
    """The repository around a model.

    ``directories`` are the sub-directories of the root, hidden ones included, each with whether it is a
    link. ``root`` is the model whose ``config.pbtxt`` stands at the root of the repository. ``loaded`` are
    the models that the endpoint loads, ``served`` those that it loads by name and not as a step.
    ``front_end``: whether SageMaker's front end is part of what is judged.
    """

    models: Mapping[str, ModelFolder]
    directories: Mapping[str, bool]
    root: ModelFolder | None
    target: Target
    loaded: frozenset[str]
    served: tuple[str, ...]
    front_end: bool = True

    @cached_property
    def subjects(self) -> dict[str, Subject]:
        """Every model as a subject, by name."""
        return {name: Subject(model, self) for name, model in self.models.items()}


class Subject:
    """One model under check; what several rules need is worked out once and kept."""

    def __init__(self, model: ModelFolder, around: Neighbourhood) -> None:
        self.model = model
        self.around = around
        self.target = around.target
        self.config: Any = model.config

    @property
    def name(self) -> str:
        return self.model.name

    def place(self, problem: Problem) -> str:
        """The path of a finding: the file that the problem names, else ``config.pbtxt``, else the folder."""
        if problem.path is not None:
            return problem.path
        return self.model.config_path if self.model.has_config else self.model.path

    @cached_property
    def completed(self) -> Backend:
        """Backend, platform and model file as Triton fills them in."""
        return infer_backend(self.model)

    @property
    def backend(self) -> str:
        return self.completed.backend

    @cached_property
    def versions_to_load(self) -> tuple[str, ...]:
        """Names of the version directories that the version policy loads, newest first."""
        numbers = {
            number: name for name, number in self.model.version_directories.items() if number is not None
        }
        newest_first = sorted(numbers, reverse=True)
        return tuple(numbers[number] for number in self._chosen(newest_first))

    def _chosen(self, newest_first: list[int]) -> list[int]:
        if self.config is None or not self.config.HasField("version_policy"):
            return newest_first[:1]
        policy = self.config.version_policy
        choice = policy.WhichOneof("policy_choice")
        if choice == "specific":
            wanted = set(policy.specific.versions)
            return [number for number in newest_first if number in wanted]
        # An empty version_policy means all; an empty "latest" asks for no version at all.
        return newest_first[: policy.latest.num_versions] if choice == "latest" else newest_first

    @cached_property
    def scopes(self) -> tuple[str, ...]:
        """The kinds of rules that concern this model."""
        if self.model.config_fault is not None:
            return ("model",)
        scopes = ["model", "config"] if self.config is not None else ["model"]
        if self.model.is_ensemble:
            scopes.append("ensemble")
        elif self.backend == "python":
            scopes.append("python")
        if self.config is not None and self.config.HasField("sequence_batching"):
            scopes.append("sequence")
        return tuple(scopes)
