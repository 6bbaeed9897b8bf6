# The names of this package. Python imports each on first use, type checkers read this file.

__all__: list[str]

from triton_model_check.builder.backends import DaliBackend as DaliBackend
from triton_model_check.builder.backends import FilBackend as FilBackend
from triton_model_check.builder.backends import OnnxruntimeBackend as OnnxruntimeBackend
from triton_model_check.builder.backends import OpenvinoBackend as OpenvinoBackend
from triton_model_check.builder.backends import PythonBackend as PythonBackend
from triton_model_check.builder.backends import PytorchBackend as PytorchBackend
from triton_model_check.builder.backends import TensorflowBackend as TensorflowBackend
from triton_model_check.builder.backends import TensorrtBackend as TensorrtBackend
from triton_model_check.builder.backends import TensorrtllmBackend as TensorrtllmBackend
from triton_model_check.builder.backends import VllmBackend as VllmBackend
from triton_model_check.builder.config import ModelConfig as ModelConfig
from triton_model_check.builder.ensemble import Ensemble as Ensemble
from triton_model_check.builder.instances import ModelInstanceGroup as ModelInstanceGroup
from triton_model_check.builder.instances import ModelRateLimiter as ModelRateLimiter
from triton_model_check.builder.lifecycle import ModelMetrics as ModelMetrics
from triton_model_check.builder.lifecycle import ModelOperations as ModelOperations
from triton_model_check.builder.lifecycle import ModelRepositoryAgents as ModelRepositoryAgents
from triton_model_check.builder.lifecycle import ModelResponseCache as ModelResponseCache
from triton_model_check.builder.lifecycle import ModelTransactionPolicy as ModelTransactionPolicy
from triton_model_check.builder.lifecycle import ModelVersionPolicy as ModelVersionPolicy
from triton_model_check.builder.lifecycle import ModelWarmup as ModelWarmup
from triton_model_check.builder.optimization import (
    ModelOptimizationPolicy as ModelOptimizationPolicy,
)
from triton_model_check.builder.scheduling import ModelDynamicBatching as ModelDynamicBatching
from triton_model_check.builder.scheduling import ModelQueuePolicy as ModelQueuePolicy
from triton_model_check.builder.scheduling import ModelSequenceBatching as ModelSequenceBatching
from triton_model_check.builder.tensors import BatchInput as BatchInput
from triton_model_check.builder.tensors import BatchOutput as BatchOutput
from triton_model_check.builder.tensors import ModelInput as ModelInput
from triton_model_check.builder.tensors import ModelOutput as ModelOutput
from triton_model_check.builder.tensors import ModelTensorReshape as ModelTensorReshape
