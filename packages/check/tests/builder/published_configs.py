"""Configurations of four AWS posts about Triton on SageMaker, with plain quotes.

Sources, all on the AWS Machine Learning Blog: "Host ML models on Amazon SageMaker using Triton:
Python backend" (T5), "Run ensemble ML models on Amazon SageMaker" (DALI, Inception, their
ensemble), "Run multiple deep learning models on GPU with Amazon SageMaker multi-model endpoints"
(ResNet), "Achieve hyperscale performance for model serving using NVIDIA Triton Inference Server on
Amazon SageMaker" (fragments for BERT).
"""

from __future__ import annotations

T5 = """
name: "t5_pytorch"
backend: "python"
max_batch_size: 8
input: [ { name: "input_ids" data_type: TYPE_INT32 dims: [ -1 ] },
 { name: "attention_mask" data_type: TYPE_INT32 dims: [ -1 ] }
]
output [ { name: "output" data_type: TYPE_INT32 dims: [ -1 ] }
]
instance_group { count: 1 kind: KIND_GPU
}
dynamic_batching {
}
parameters: { key: "EXECUTION_ENV_PATH",
 value: {string_value: "$$TRITON_MODEL_DIRECTORY/hf_env.tar.gz"}
}
"""

DALI = """
name: "dali"
backend: "dali"
max_batch_size: 256
input [
  {
    name: "DALI_INPUT_0"
    data_type: TYPE_UINT8
    dims: [ -1 ]
  }
]
output [
  {
    name: "DALI_OUTPUT_0"
    data_type: TYPE_FP32
    dims: [ 299, 299, 3 ]
  }
]
parameters: [
  {
    key: "num_threads"
    value: { string_value: "12" }
  }
]
"""

INCEPTION = """
name: "inception_graphdef"
platform: "tensorflow_graphdef"
max_batch_size: 256
input [
  {
    name: "input"
    data_type: TYPE_FP32
    format: FORMAT_NHWC
    dims: [ 299, 299, 3 ]
  }
]
output [
  {
    name: "InceptionV3/Predictions/Softmax"
    data_type: TYPE_FP32
    dims: [ 1001 ]
    label_filename: "inception_labels.txt"
  }
]
"""

DALI_INCEPTION = """
name: "ensemble_dali_inception"
platform: "ensemble"
max_batch_size: 256
input [
  {
    name: "INPUT"
    data_type: TYPE_UINT8
    dims: [ -1 ]
  }
]
output [
  {
    name: "OUTPUT"
    data_type: TYPE_FP32
    dims: [ 1001 ]
  }
]
ensemble_scheduling {
  step [
    {
      model_name: "dali"
      model_version: -1
      input_map {
        key: "DALI_INPUT_0"
        value: "INPUT"
      }
      output_map {
        key: "DALI_OUTPUT_0"
        value: "preprocessed_image"
      }
    },
    {
      model_name: "inception_graphdef"
      model_version: -1
      input_map {
        key: "input"
        value: "preprocessed_image"
      }
      output_map {
        key: "InceptionV3/Predictions/Softmax"
        value: "OUTPUT"
      }
    }
  ]
}
"""

RESNET_PYTORCH = """
name: "resnet"
platform: "pytorch_libtorch"
max_batch_size: 128
input {
name: "INPUT__0"
data_type: TYPE_FP32
dims: 3
dims: 224
dims: 224
}
output {
name: "OUTPUT__0"
data_type: TYPE_FP32
dims: 1000
}
"""

RESNET_TENSORRT = """
name: "resnet"
platform: "tensorrt_plan"
max_batch_size: 128
input {
name: "input"
data_type: TYPE_FP32
dims: 3
dims: 224
dims: 224
}
output {
name: "output"
data_type: TYPE_FP32
dims: 1000
}
model_warmup {
name: "bs128 Warmup"
batch_size: 128
inputs: {
key: "input"
value: {
data_type: TYPE_FP32
dims: 3
dims: 224
dims: 224
zero_data: false
}
}
}
"""

DYNAMIC_BATCHING = """
dynamic_batching
{}
"""

DYNAMIC_BATCHING_WITH_DELAY = """
dynamic_batching {
preferred_batch_size: 16
max_queue_delay_microseconds: 100
}
"""

INSTANCE_GROUP = """
instance_group [
    {
      count: 2
      kind: KIND_GPU
    }
  ]
"""

BOTH = """
dynamic_batching
{},
instance_group [
     {
          count: 2
          kind: KIND_GPU
     }
]
"""
