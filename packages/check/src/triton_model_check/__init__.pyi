# The names of this package. Python imports each on first use, type checkers read this file.

__version__: str
__all__: list[str]

from .checks.report import Report as Report
from .repository_check import check_repository as check_repository
