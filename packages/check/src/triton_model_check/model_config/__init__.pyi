# The names of this package. Python imports each on first use, type checkers read this file.

__all__: list[str]

from .builder.backends import DaliBackend as DaliBackend
from .builder.backends import FilBackend as FilBackend
from .builder.backends import OnnxruntimeBackend as OnnxruntimeBackend
from .builder.backends import OpenvinoBackend as OpenvinoBackend
from .builder.backends import PythonBackend as PythonBackend
from .builder.backends import PytorchBackend as PytorchBackend
from .builder.backends import TensorflowBackend as TensorflowBackend
from .builder.backends import TensorrtBackend as TensorrtBackend
from .builder.backends import TensorrtllmBackend as TensorrtllmBackend
from .builder.backends import VllmBackend as VllmBackend
from .builder.config import ModelConfig as ModelConfig
from .builder.ensemble import Ensemble as Ensemble
from .builder.instances import ModelInstanceGroup as ModelInstanceGroup
from .builder.instances import ModelRateLimiter as ModelRateLimiter
from .builder.lifecycle import ModelMetrics as ModelMetrics
from .builder.lifecycle import ModelOperations as ModelOperations
from .builder.lifecycle import ModelRepositoryAgents as ModelRepositoryAgents
from .builder.lifecycle import ModelResponseCache as ModelResponseCache
from .builder.lifecycle import ModelTransactionPolicy as ModelTransactionPolicy
from .builder.lifecycle import ModelVersionPolicy as ModelVersionPolicy
from .builder.lifecycle import ModelWarmup as ModelWarmup
from .builder.optimization import ModelOptimizationPolicy as ModelOptimizationPolicy
from .builder.scheduling import ModelDynamicBatching as ModelDynamicBatching
from .builder.scheduling import ModelQueuePolicy as ModelQueuePolicy
from .builder.scheduling import ModelSequenceBatching as ModelSequenceBatching
from .builder.tensors import BatchInput as BatchInput
from .builder.tensors import BatchOutput as BatchOutput
from .builder.tensors import ModelInput as ModelInput
from .builder.tensors import ModelOutput as ModelOutput
from .builder.tensors import ModelTensorReshape as ModelTensorReshape
