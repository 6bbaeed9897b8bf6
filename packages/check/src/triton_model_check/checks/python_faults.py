"""A statement of a Python model that fails if it runs."""

from __future__ import annotations

import ast
from typing import NamedTuple

from triton_model_check.checks.rules import Problem
from triton_model_check.fixes.steps import Remedy
from triton_model_check.model.python_source import PythonSource


class Fault(NamedTuple):
    """A statement that fails whenever it runs. When it runs, decides what it is reported as."""

    node: ast.expr
    message: str
    hint: str | None = None
    fix: Remedy | None = None

    def problem(self, source: PythonSource) -> Problem:
        """Return the fault as a problem of its file."""
        line = self.node.lineno
        hint = self.hint or None
        return Problem(self.message, path=source.path, line=line, hint=hint, fix=self.fix)
