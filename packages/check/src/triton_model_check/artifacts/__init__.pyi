# The names of this package. Python imports each on first use, type checkers read this file.

__all__: list[str]

from .environments.python_environment import PythonEnvironment as PythonEnvironment
