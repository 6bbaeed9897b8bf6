# The names of this package. Python imports each on first use, type checkers read this file.

__all__: list[str]

from .model_library import LibraryChange as LibraryChange
from .model_library import LibraryModel as LibraryModel
from .model_library import ModelLibrary as ModelLibrary
