"""Triton's ``config.pbtxt``: reading, writing, checking.

Names resolve on first use (PEP 562); protobuf is imported once a configuration is read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from constructs_triton.lazy_names import lazy_names

if TYPE_CHECKING:
    from constructs_triton.model_config.builder import Backend as Backend
    from constructs_triton.model_config.builder import BatchInput as BatchInput
    from constructs_triton.model_config.builder import BatchOutput as BatchOutput
    from constructs_triton.model_config.builder import DaliBackend as DaliBackend
    from constructs_triton.model_config.builder import Ensemble as Ensemble
    from constructs_triton.model_config.builder import FilBackend as FilBackend
    from constructs_triton.model_config.builder import ModelConfig as ModelConfig
    from constructs_triton.model_config.builder import ModelDynamicBatching as ModelDynamicBatching
    from constructs_triton.model_config.builder import ModelEnsembling as ModelEnsembling
    from constructs_triton.model_config.builder import ModelInput as ModelInput
    from constructs_triton.model_config.builder import ModelInstanceGroup as ModelInstanceGroup
    from constructs_triton.model_config.builder import ModelMetrics as ModelMetrics
    from constructs_triton.model_config.builder import ModelOperations as ModelOperations
    from constructs_triton.model_config.builder import ModelOptimizationPolicy as ModelOptimizationPolicy
    from constructs_triton.model_config.builder import ModelOutput as ModelOutput
    from constructs_triton.model_config.builder import ModelQueuePolicy as ModelQueuePolicy
    from constructs_triton.model_config.builder import ModelRateLimiter as ModelRateLimiter
    from constructs_triton.model_config.builder import ModelRepositoryAgents as ModelRepositoryAgents
    from constructs_triton.model_config.builder import ModelResponseCache as ModelResponseCache
    from constructs_triton.model_config.builder import ModelSequenceBatching as ModelSequenceBatching
    from constructs_triton.model_config.builder import ModelTensorReshape as ModelTensorReshape
    from constructs_triton.model_config.builder import ModelTransactionPolicy as ModelTransactionPolicy
    from constructs_triton.model_config.builder import ModelVersionPolicy as ModelVersionPolicy
    from constructs_triton.model_config.builder import ModelWarmup as ModelWarmup
    from constructs_triton.model_config.builder import OnnxruntimeBackend as OnnxruntimeBackend
    from constructs_triton.model_config.builder import OpenvinoBackend as OpenvinoBackend
    from constructs_triton.model_config.builder import PythonBackend as PythonBackend
    from constructs_triton.model_config.builder import PytorchBackend as PytorchBackend
    from constructs_triton.model_config.builder import TensorflowBackend as TensorflowBackend
    from constructs_triton.model_config.builder import TensorrtBackend as TensorrtBackend
    from constructs_triton.model_config.builder import TensorrtllmBackend as TensorrtllmBackend
    from constructs_triton.model_config.builder import VllmBackend as VllmBackend
    from constructs_triton.model_config.ensemble import EnsembleGraph as EnsembleGraph
    from constructs_triton.model_config.folder import ModelFolder as ModelFolder
    from constructs_triton.model_config.judge import all_rules as all_rules
    from constructs_triton.model_config.report import Report as Report
    from constructs_triton.model_config.schema import load_schema as load_schema
    from constructs_triton.model_config.schema import new_model_config as new_model_config
    from constructs_triton.model_config.text import format_model_config as format_model_config
    from constructs_triton.model_config.text import parse_model_config as parse_model_config

_HOMES = {
    "Backend": ".builder",
    "BatchInput": ".builder",
    "BatchOutput": ".builder",
    "DaliBackend": ".builder",
    "Ensemble": ".builder",
    "EnsembleGraph": ".ensemble",
    "FilBackend": ".builder",
    "ModelConfig": ".builder",
    "ModelDynamicBatching": ".builder",
    "ModelEnsembling": ".builder",
    "ModelFolder": ".folder",
    "ModelInput": ".builder",
    "ModelInstanceGroup": ".builder",
    "ModelMetrics": ".builder",
    "ModelOperations": ".builder",
    "ModelOptimizationPolicy": ".builder",
    "ModelOutput": ".builder",
    "ModelQueuePolicy": ".builder",
    "ModelRateLimiter": ".builder",
    "ModelRepositoryAgents": ".builder",
    "ModelResponseCache": ".builder",
    "ModelSequenceBatching": ".builder",
    "ModelTensorReshape": ".builder",
    "ModelTransactionPolicy": ".builder",
    "ModelVersionPolicy": ".builder",
    "ModelWarmup": ".builder",
    "OnnxruntimeBackend": ".builder",
    "OpenvinoBackend": ".builder",
    "PythonBackend": ".builder",
    "PytorchBackend": ".builder",
    "Report": ".report",
    "TensorflowBackend": ".builder",
    "TensorrtBackend": ".builder",
    "TensorrtllmBackend": ".builder",
    "VllmBackend": ".builder",
    "all_rules": ".judge",
    "format_model_config": ".text",
    "load_schema": ".schema",
    "new_model_config": ".schema",
    "parse_model_config": ".text",
}

__all__ = [
    "Backend",
    "BatchInput",
    "BatchOutput",
    "DaliBackend",
    "Ensemble",
    "EnsembleGraph",
    "FilBackend",
    "ModelConfig",
    "ModelDynamicBatching",
    "ModelEnsembling",
    "ModelFolder",
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
    "Report",
    "TensorflowBackend",
    "TensorrtBackend",
    "TensorrtllmBackend",
    "VllmBackend",
    "all_rules",
    "format_model_config",
    "load_schema",
    "new_model_config",
    "parse_model_config",
]

__getattr__, __dir__ = lazy_names(__name__, _HOMES)
