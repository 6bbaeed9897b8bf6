# The names of this package. Python imports each on first use, type checkers read this file.

__all__: list[str]

from .builder import ModelRepositoryBuilder as ModelRepositoryBuilder
from .packing import pack as pack
from .repository import ModelRepository as ModelRepository
