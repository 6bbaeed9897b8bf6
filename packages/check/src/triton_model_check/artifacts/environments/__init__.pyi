# The names of this package. Python imports each on first use, type checkers read this file.

__all__: list[str]

from .placement import as_packed as as_packed
