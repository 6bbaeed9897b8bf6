# The names of this package. Python imports each on first use, type checkers read this file.

__all__: list[str]

from .describe import describe as describe
from .model_file import FileFault as FileFault
from .model_file import ModelFile as ModelFile
from .model_file import ModelTensor as ModelTensor
from .onnx_file import describe_onnx as describe_onnx
