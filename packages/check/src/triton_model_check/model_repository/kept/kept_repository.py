"""A repository that is checked once, and again after a change."""

from __future__ import annotations

import os
from typing import Any

from triton_model_check.checks.report import Report
from triton_model_check.facts.backend_releases import onnx_runtime
from triton_model_check.model_config.target import Target
from triton_model_check.model_repository.kept.kept_answers import KeptAnswers
from triton_model_check.model_repository.kept.report_cache import as_json, finding_of
from triton_model_check.model_repository.repository import ModelRepository
from triton_model_check.onnx_runtimes.asking import minor_release
from triton_model_check.onnx_runtimes.environments import runtime_identity

__all__ = ["KeptRepository"]


class KeptRepository(ModelRepository):
    """A model repository whose findings are kept on disk;
    its methods are those of the base class.
    """

    # The commands that use it have no thread but the one that shows the elapsed time.
    checks_in_copies = True
    _answers: KeptAnswers

    @classmethod
    def from_directory(cls, path: str | os.PathLike[str], **options: Any) -> KeptRepository:
        """Return the repository of a folder, as :meth:`ModelRepository.from_directory`."""
        # Before anything is read. An error of the path is raised below.
        answers = KeptAnswers(path if os.path.isdir(path) else os.devnull)  # noqa: PTH112 - no error
        repository = super().from_directory(path, **options)
        assert isinstance(repository, cls)
        repository._answers = answers
        return repository

    def check(self, *arguments: Any, **options: Any) -> Report:
        """Return every finding, as :meth:`ModelRepository.check`."""

        def checked() -> Any:
            report = super(KeptRepository, self).check(*arguments, **options)
            return as_json(report.findings), report.not_checked, as_json(report.ignored)

        question = self._asked("check", *arguments, options, _runtime_for(*arguments))
        kept = self._answers.answer(question, checked)
        findings, ignored = (tuple(map(finding_of, rows)) for rows in (kept[0], kept[2]))
        return Report(str(self.path), findings, tuple(kept[1]), ignored)

    def closure(self, model_name: str) -> list[str]:
        """Return the model and those that it needs, as :meth:`ModelRepository.closure`."""
        question = self._asked("closure", model_name)
        compute = super().closure
        return list(self._answers.answer(question, lambda: compute(model_name), is_last=False))

    def top_level_models(self) -> list[str]:
        """Return the models that no other needs, as :meth:`ModelRepository.top_level_models`."""
        return list(
            self._answers.answer(self._asked("top level"), super().top_level_models, is_last=False)
        )

    def _asked(self, *question: Any) -> str:
        """A question with all that was declared about the repository."""
        return repr((*question, self.composition, self._complete_bytes, sorted(self.linked_files)))


def _runtime_for(target: Target | None = None, *_: Any) -> str:
    """Return which ONNX Runtime decides about ONNX models; "" if none is asked."""
    if target is None or target.onnx_runtime == "never":
        return ""
    runtime = onnx_runtime(target.image_version)
    if runtime is None:
        return ""
    return runtime_identity(minor_release(runtime.version), target.onnx_runtime)
