"""Model configurations written in Python: typed values over Triton's own messages.

:class:`ModelConfig` and the messages inside it carry the names of ``model_config.proto``; :class:`Ensemble`
puts steps together; the backend classes know what each backend asks for. Names resolve on first use
(PEP 562), so importing the package loads no protobuf.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from constructs_triton.lazy_names import lazy_names

if TYPE_CHECKING:
    from constructs_triton.model_config.builder.backends import Backend as Backend
    from constructs_triton.model_config.builder.backends import DaliBackend as DaliBackend
    from constructs_triton.model_config.builder.backends import FilBackend as FilBackend
    from constructs_triton.model_config.builder.backends import OnnxruntimeBackend as OnnxruntimeBackend
    from constructs_triton.model_config.builder.backends import OpenvinoBackend as OpenvinoBackend
    from constructs_triton.model_config.builder.backends import PythonBackend as PythonBackend
    from constructs_triton.model_config.builder.backends import PytorchBackend as PytorchBackend
    from constructs_triton.model_config.builder.backends import TensorflowBackend as TensorflowBackend
    from constructs_triton.model_config.builder.backends import TensorrtBackend as TensorrtBackend
    from constructs_triton.model_config.builder.backends import TensorrtllmBackend as TensorrtllmBackend
    from constructs_triton.model_config.builder.backends import VllmBackend as VllmBackend
    from constructs_triton.model_config.builder.config import ModelConfig as ModelConfig
    from constructs_triton.model_config.builder.ensemble import Ensemble as Ensemble
    from constructs_triton.model_config.builder.instances import ModelInstanceGroup as ModelInstanceGroup
    from constructs_triton.model_config.builder.instances import ModelRateLimiter as ModelRateLimiter
    from constructs_triton.model_config.builder.lifecycle import ModelMetrics as ModelMetrics
    from constructs_triton.model_config.builder.lifecycle import ModelOperations as ModelOperations
    from constructs_triton.model_config.builder.lifecycle import (
        ModelRepositoryAgents as ModelRepositoryAgents,
    )
    from constructs_triton.model_config.builder.lifecycle import ModelResponseCache as ModelResponseCache
    from constructs_triton.model_config.builder.lifecycle import (
        ModelTransactionPolicy as ModelTransactionPolicy,
    )
    from constructs_triton.model_config.builder.lifecycle import ModelVersionPolicy as ModelVersionPolicy
    from constructs_triton.model_config.builder.lifecycle import ModelWarmup as ModelWarmup
    from constructs_triton.model_config.builder.optimization import (
        ModelOptimizationPolicy as ModelOptimizationPolicy,
    )
    from constructs_triton.model_config.builder.scheduling import ModelDynamicBatching as ModelDynamicBatching
    from constructs_triton.model_config.builder.scheduling import ModelEnsembling as ModelEnsembling
    from constructs_triton.model_config.builder.scheduling import ModelQueuePolicy as ModelQueuePolicy
    from constructs_triton.model_config.builder.scheduling import (
        ModelSequenceBatching as ModelSequenceBatching,
    )
    from constructs_triton.model_config.builder.tensors import BatchInput as BatchInput
    from constructs_triton.model_config.builder.tensors import BatchOutput as BatchOutput
    from constructs_triton.model_config.builder.tensors import ModelInput as ModelInput
    from constructs_triton.model_config.builder.tensors import ModelOutput as ModelOutput
    from constructs_triton.model_config.builder.tensors import ModelTensorReshape as ModelTensorReshape

_HOMES = {
    "Backend": ".backends",
    "BatchInput": ".tensors",
    "BatchOutput": ".tensors",
    "DaliBackend": ".backends",
    "Ensemble": ".ensemble",
    "FilBackend": ".backends",
    "ModelConfig": ".config",
    "ModelDynamicBatching": ".scheduling",
    "ModelEnsembling": ".scheduling",
    "ModelInput": ".tensors",
    "ModelInstanceGroup": ".instances",
    "ModelMetrics": ".lifecycle",
    "ModelOperations": ".lifecycle",
    "ModelOptimizationPolicy": ".optimization",
    "ModelOutput": ".tensors",
    "ModelQueuePolicy": ".scheduling",
    "ModelRateLimiter": ".instances",
    "ModelRepositoryAgents": ".lifecycle",
    "ModelResponseCache": ".lifecycle",
    "ModelSequenceBatching": ".scheduling",
    "ModelTensorReshape": ".tensors",
    "ModelTransactionPolicy": ".lifecycle",
    "ModelVersionPolicy": ".lifecycle",
    "ModelWarmup": ".lifecycle",
    "OnnxruntimeBackend": ".backends",
    "OpenvinoBackend": ".backends",
    "PythonBackend": ".backends",
    "PytorchBackend": ".backends",
    "TensorflowBackend": ".backends",
    "TensorrtBackend": ".backends",
    "TensorrtllmBackend": ".backends",
    "VllmBackend": ".backends",
}

__all__ = [
    "Backend",
    "BatchInput",
    "BatchOutput",
    "DaliBackend",
    "Ensemble",
    "FilBackend",
    "ModelConfig",
    "ModelDynamicBatching",
    "ModelEnsembling",
    "ModelInput",
    "ModelInstanceGroup",
    "ModelMetrics",
    "ModelOperations",
    "ModelOptimizationPolicy",
    "ModelOutput",
    "ModelQueuePolicy",
    "ModelRateLimiter",
    "ModelRepositoryAgents",
    "ModelResponseCache",
    "ModelSequenceBatching",
    "ModelTensorReshape",
    "ModelTransactionPolicy",
    "ModelVersionPolicy",
    "ModelWarmup",
    "OnnxruntimeBackend",
    "OpenvinoBackend",
    "PythonBackend",
    "PytorchBackend",
    "TensorflowBackend",
    "TensorrtBackend",
    "TensorrtllmBackend",
    "VllmBackend",
]

__getattr__, __dir__ = lazy_names(__name__, _HOMES)
