# The names of this package. Python imports each on first use, type checkers read this file.

__all__: list[str]

from .archive_inspection import InspectedArchive as InspectedArchive
from .archive_inspection import inspect_archive as inspect_archive
from .builder import ModelRepositoryBuilder as ModelRepositoryBuilder
from .packing import PackedArchive as PackedArchive
from .packing import errors_left_by_packing as errors_left_by_packing
from .packing import fingerprint as fingerprint
from .packing import pack as pack
from .repository import ModelRepository as ModelRepository
