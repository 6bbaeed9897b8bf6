# The names of this package. Python imports each on first use, type checkers read this file.

__all__: list[str]

from .local_comparison import compare_repositories as compare_repositories
from .search import tune as tune
