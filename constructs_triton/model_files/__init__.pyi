# The names of this package. Python imports each on first use, type checkers read this file.

__all__: list[str]

from .describe import describe as describe
from .describe import format_of as format_of
from .model_file import FaultCode as FaultCode
from .model_file import FileFault as FileFault
from .model_file import ModelFile as ModelFile
from .model_file import ModelFormat as ModelFormat
from .model_file import ModelTensor as ModelTensor
from .trees import FILE_OF_TREE_MODEL as FILE_OF_TREE_MODEL
