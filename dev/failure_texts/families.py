"""Which entry of the catalogue explains a text that no entry's pattern recognizes.

Texts that need the same step of the reader are one family. The first rule that fits a text counts.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from failure_texts.collecting import Text


class Family(NamedTuple):
    """A rule: an entry of the catalogue, and the texts that belong to it.

    Args:
        id: Entry of the catalogue.
        text: Pattern of the text. Default: any text.
        file: Pattern of the file that writes it. Default: any file.
        repository: Pattern of the repository. Default: any repository.
    """

    id: str
    text: str = ""
    file: str = ""
    repository: str = ""

    def has(self, text: Text) -> bool:
        """Whether a text belongs to the family."""
        return (
            re.search(self.text, text.text) is not None
            and re.search(self.file, text.file) is not None
            and re.fullmatch(self.repository or ".*", text.repository) is not None
        )


#: Not failures: information, deprecations, and parts of a text that is put together elsewhere.
NOT_FAILURES = (
    Family("", r"^Warning: |^Usage: "),
    Family("", r"^Created model instance named|^⟨⟩Attempting to load|^Attempting to load DALI"),
    Family("", r"^DALI autoconfig -- (?!failed)|loaded successfully|^Loading DALI pipeline"),
    Family(
        "",
        r"^(?:running|setting|getting|reading|retrieving|creating|apply|configuring|loading)"
        r" (?!.*failed)",
        repository="openvino_backend",
    ),
    Family(
        "", r"^expects? .*model specified|^, falling back", file=r"tensorrt_utils|pinned_memory"
    ),
    Family("", file=r"^(?:add_copyright|tool_call_parser|llama_tool_call_parser)\.py"),
)

FAMILIES = (
    Family("poll-failed", r"[Pp]oll failed for|failed to poll (?:model repository|mapped)"),
    Family("response-too-large", r"(?i)byte size limit|response has byte size"),
    Family("gpu-load-limit", r"memory limit set for ⟨⟩"),
    Family("trt-tensor-left-out", r"^expected configuration for"),
    # What the server's own code excludes.
    Family(
        "triton-internal",
        r"(?i)nullptr|null (?:request|data|response)|should not print|\[INTERNAL|^internal\b|"
        r"cannot be null|must not be null|internal error|this indicates a bug|not implemented|"
        r"not yet implemented|was null$|unexpected(?:ly)? (?:internal|invo|allocation|release|"
        r"failure|lifecycle|no host|missing key|memory index|message type|starting|life|response"
        r"|respons?ne? from|resposne|runner|shape .* for control)|unexpecting failure",
    ),
    Family(
        "triton-internal",
        file=r"^(?:payload|device_memory_tracker|cache_entry|ensemble_backend"
        r"|message_queue|thread_pool|gpu_buffers|memory_manager|"
        r"triton_exception|string_utils|pb_cancel)\.",
    ),
    Family("in-process-api", file=r"^_\w+\.py$|^common\.h$"),
    Family("openai-lora", r"(?i)lora", file=r"^triton(_engine)?\.py$"),
    Family(
        "openai-request",
        file=r"^(?:triton_engine|triton|chat|observability|api_restriction|"
        r"tokenizer|utils|request_size|completions|models)\.py$",
        repository="server",
    ),
    # The repository of models.
    Family("repository-storage", file=r"^(?:s3|as|gcs|filesystem)\.(?:h|cc)$"),
    Family("repository-storage", file=r"^api\.cc$", repository="core"),
    Family("temporary-files", r"(?i)temp|write|create directory", file=r"^local\.h$"),
    Family(
        "repository-files",
        r"(?i)failed to open|directory does not exist|outside model directory"
        r"|model directory path|Duplicate model config|label files|modification time|"
        r"no version directories|version directory is not present|escapes model repository|"
        r"unable to autofill for .*unable to find|unable to find (?:PLAN|the model config)"
        r"|determine model version|configuration full path|unsupported repository artifact|"
        r"unsupported artifact|canonical|not a valid directory",
        repository="core|backend|server|tensorrt_backend|python_backend",
    ),
    Family(
        "model-control",
        r"(?i)\bpoll|explicit|load/unload|unload|load parameter|file parameter|"
        r"register|Wildcard|model name|config override|related model|mapped|mapping|override",
        file=r"^model_repository_manager|^tritonserver\.cc|^model_lifecycle|^sagemaker_server",
    ),
    Family(
        "model-control", r"(?i)'?repository_name|load parameter|unload_dependents|model control"
    ),
    Family("mme-container", file=r"^sagemaker_server"),
    Family(
        "model-version-unavailable",
        r"(?i)no available versions|is not found|not at ready state"
        r"|version is not available|is not available|unknown model ?:|no version is available|"
        r"out-dated|has not been served|while it is being served|model version|model_id|"
        r"no configuration for model|Missing model name|which is at model state",
        file=r"^model_|^tritonserver|^http_server|^common\.cc|^backend_model",
    ),
    Family(
        "server-stopping",
        r"(?i)server is (?:stopping|shutting)|exit timeout|server not ready|"
        r"Failed to gracefully",
    ),
    # The server's own settings.
    Family("trace-settings", r"(?i)trac(?:e|ing)\b"),
    Family(
        "log-settings",
        r"(?i)log[_ -](?:format|file|level|freq)|dynamic logging|logging level|"
        r"log_format|logging not supported",
    ),
    Family("cloud-route", file=r"^vertex_ai"),
    Family(
        "server-argument",
        file=r"^(?:main|command_line_parser|backend_config|numa_utils|"
        r"triton_backend_config|orca_http)\.",
    ),
    Family(
        "server-argument",
        r"(?i)host policy|control mode|metrics format|rate limit mode|"
        r"--\w|cache configurations|limit fraction|device ID >=|Invalid option|bool option|"
        r"float option|only be enabled|multiple config group|unable to parse '|"
        r"expect (?:boolean|int32|string|only)|debug variable|can not be empty|"
        r"not supported on Windows|device kind is not supported",
        repository="server|core",
    ),
    Family("server-already-running", r"(?i)server is (?:not )?(?:already )?running"),
    Family("rate-limiter", r"(?i)rate limiter|^Resource ", repository="core"),
    Family("rate-limiter", file=r"^rate_limiter"),
    Family("response-cache", r"(?i)\bcache\b"),
    Family("response-cache", file=r"^(?:tritoncache|cache_manager|response_cache)"),
    Family("custom-metrics", file=r"^metric(?:_family)?\.cc|custom_metrics"),
    Family(
        "custom-metrics",
        r"(?i)metric(?:family|_kind| arg|s request| request)|histogram|"
        r"metric control|metric identifier|quantile",
    ),
    Family("host-metrics", file=r"^metrics\.cc$"),
    # Requests.
    Family("queue-timeout", r"^Request timeout expired"),
    Family(
        "request-shared-memory",
        r"(?i)shared.memory|cuda ?ipc|memory region|raw_handle|"
        r"region name|shm key|address space|overflow detected|CUDA (?:address range|driver entry"
        r"|error string)|Failed to unregister the",
        repository="server",
    ),
    Family("sequence-state", r"(?i)initial_state|\bstates?\b|growable", repository="core|backend"),
    Family(
        "sequence-request",
        r"(?i)correlation id|sequence_(?:id|start|end)|of the corresponding "
        r"sequence|'sequence",
    ),
    Family(
        "control-tensor",
        r"(?i)control (?:data type|signal|tensor)|CORRID|for control|"
        r"sequence-batch scheduler|sequence batcher",
    ),
    Family(
        "request-parameter",
        r"(?i)parameter|priority|'timeout'|reserved for Triton",
        file=r"^(?:infer_handler|grpc_|http_server|ensemble_scheduler|infer_request)",
    ),
    Family("request-generate", r"(?i)schema|generate request|Keyword '"),
    Family("request-classification", r"(?i)classification|class result"),
    Family("request-compressed", file=r"^data_compressor"),
    Family("request-compressed", r"(?i)compression type"),
    Family(
        "request-binary",
        r"(?i)raw[_ ]input|raw request|binary_data_size|data fields|"
        r"raw_input_contents|explicit tensor data|'content|element byte size|buffers for inf|"
        r"string elements|additional bytes|find data for input|Infer-Header|binary data was",
    ),
    Family(
        "request-strings",
        r"(?i)expected .* strings? (?:elements )?for|bytes tensor data|"
        r"1 dimensional List of [sS]tring",
    ),
    Family(
        "request-json",
        r"(?i)JSON|field|chunk|evbuffer|output tensor buffer|data type for output"
        r"|'ready'|request buffers|input buffers|request body|Header '",
        file=r"^http_server",
    ),
    Family(
        "request-tensor",
        r"(?i)invalid (?:dim|shape)|exceeds|overflow|too (?:large|many)|"
        r"unsupported data ?type|total element",
        repository="server|core",
    ),
    Family(
        "request-tensor",
        file=r"^infer_request\.(?:cc|h)$|^model_config_utils\.h",
        repository="core",
    ),
    Family("response-unread", file=r"^(?:infer_handler|stream_infer|infer_response)"),
    # Ensembles.
    Family(
        "ensemble-no-output",
        r"unexpected deadlock|receives inputs originated|"
        r"does not map to any ensemble|Different set of response|inflight",
    ),
    Family(
        "ens-graph",
        r"(?i)ensemble (?:input|tensor|output)|ensemble tensors|mapped to",
        repository="core",
    ),
    Family("ens-inconsistent", r"inconsistent (?:shape|data type)"),
    Family("ens-fields", r"(?i)ensemble scheduling|Ensemble model '", repository="core"),
    # The Python backend.
    Family(
        "py-return",
        r"(?i)execute (?:return|function|method|`)|InferenceResponse|`execute`|"
        r"Inference Response object|must return None|response tensor|inference response should|"
        r"execute function",
    ),
    Family("py-response-sender", r"(?i)response[_ ]sender|unable to send response"),
    Family(
        "py-bls",
        r"(?i)\bBLS\b|output name for request|input tensor for request|"
        r"when running inference|Unsupported (?:parameter|value) type",
    ),
    Family("py-bls", file=r"^request_executor"),
    Family("py-model-loader", file=r"^model_loader"),
    Family("py-auto-complete", r"(?i)auto[-_ ]complete|the model expects (?:dims|optional)"),
    Family("py-ready", r"(?i)is_ready|readiness|user-defined check"),
    Family(
        "py-environment",
        r"(?i)environment|archive|LD_LIBRARY_PATH|fts_read|working directory|"
        r"stat\(\) of|LastModifiedTime|change the directory|Failed to remove",
        "",
        "python_backend",
    ),
    Family("py-platform-model", file=r"^model\.py$", repository="python_backend"),
    Family("torch-python-model", file=r"^model\.py$", repository="pytorch_backend"),
    Family(
        "py-tensor",
        r"(?i)dlpack|numpy|dtype|BF16|tensor name|GPU tensor|CPU tensor|stored in GPU"
        r"|triton dtype",
        "",
        "python_backend",
    ),
    Family(
        "py-stub-files",
        r"(?i)is not found\. Searched|model file not found|model\.py does not|"
        r"must end with '\.py'|stub name|region name: contains",
    ),
    Family("py-settings", r"(?i)stub-timeout|thread-pool|shm-region|FORCE_CPU_ONLY"),
    Family(
        "py-stub-ended",
        r"(?i)stub|initialize model instance|^Initialize\(\)|Failed to init|"
        r"fork|health mutex|parent service|future from background",
        "",
        "python_backend",
    ),
    Family("py-parameters", r"Expect parameters", "", "python_backend"),
    Family("py-execute", r"(?i)process the request", "", "python_backend"),
    # The other backends.
    Family("backend-version", r"(?i)API version"),
    Family("vllm-engine", r"(?i)engine|stream:|unavailable due", "", "vllm_backend"),
    Family("vllm-request", "", "", "vllm_backend"),
    Family(
        "trtllm-config",
        r"(?i)parameter|config|value of|gpt_model_type|hf_model_path|tokenizer|"
        r"world size|orchestrator|decoupled|worker_path|executor|engine|multi-modal|"
        r"modelState|modelInstanceState|draft model|set to",
        "",
        "tensorrtllm_backend",
    ),
    Family("trtllm-request", "", "", "tensorrtllm_backend"),
    Family(
        "dali-config", r"(?i)config|Mismat|max_batch_size|Number of outputs", "", "dali_backend"
    ),
    Family("dali-pipeline", "", "", "dali_backend"),
    Family(
        "openvino-parameter",
        r"the parameter|ENABLE_BATCH|missing the parameter",
        "",
        "openvino_backend",
    ),
    Family("openvino-model", "", "", "openvino_backend"),
    Family("fil-config", r"(?i)parameter|instance kind", "", "fil_backend"),
    Family("fil-model", "", "", "fil_backend"),
    Family(
        "trt-multi-device", r"(?i)multi[-_]?device|rank|nccl|communicator", "", "tensorrt_backend"
    ),
    Family("cuda-graph", r"(?i)graph", "", "tensorrt_backend"),
    Family("trt-profile", r"(?i)profile", "", "tensorrt_backend"),
    Family(
        "trt-shape-tensor",
        r"(?i)shape (?:tensor|value|input|output|binding)|execution tensor|"
        r"batch output|output shape",
        "",
        "tensorrt_backend",
    ),
    Family("trt-format", r"(?i)non-linear|linear IO|vectorized|ragged", "", "tensorrt_backend"),
    Family(
        "trt-io",
        r"(?i)(?:in|out)put '|tensor '|binding|dimension|inputs, model|batch size|"
        r"input or output|datatype|autofill|does not map|Invalid value for 'exec",
        "",
        "tensorrt_backend",
    ),
    Family("trt-instance-kind", r"(?i)KIND_|secondary device", "", "tensorrt_backend"),
    Family("trt-engine", r"(?i)enqueue|plan file|plugins|engine", "", "tensorrt_backend"),
    Family("ort-parameter", r"value '⟨⟩' is requested|OnnxLoader", "", "onnxruntime_backend"),
    Family("ort-output", r"(?i)output|I/O|input", "", "onnxruntime_backend"),
    Family("triton-other", r"(?i)allocator free", "", "onnxruntime_backend"),
    Family("onnx-generic", r"(?i)execute failure", "", "onnxruntime_backend"),
    Family("torch-io", r"(?i)(?:in|out)puts?\b|DictType|sequence batching", "", "pytorch_backend"),
    Family("torch-load", r"(?i)failed to (?:load|create|inspect)", "", "pytorch_backend"),
    # What several backends share.
    Family("batch-rows", r"failed to split the output"),
    Family("batch-too-large", r"batch size ⟨⟩ for|max allowed is"),
    Family(
        "backend-library",
        r"(?i)library|entrypoint|dll path|required custom|custom batch",
        repository="core|backend|server|tensorrt_backend",
    ),
    Family("backend-unknown", r"unable to find '⟨⟩'|must specify 'backend'"),
    Family(
        "gpu-not-built",
        r"(?i)ENABLE_GPU=OFF|GPU is not supported|GPU instances not supported|"
        r"GPU (?:memory )?alloc\w+ not supported|GPU buffer|GPU device, when|supports only",
    ),
    Family("memory-allocation", r"(?i)alloc|out of memory|cpu buffer|GrowableMemory"),
    Family(
        "cuda-call",
        r"(?i)cuda|cuInit|dlsym|locate 'cu|device prop|memory info|peer access|"
        r"set (?:the )?(?:memory|device)|get device|NUMA|stream|mapped device|gather kernel|"
        r"CUDA copy|GPU buffers|event|compute capability|copy (?:data|kernel|memory)|ipc handle",
    ),
    Family("warmup", r"(?i)warmup"),
    Family(
        "instance-group",
        r"(?i)instance[ _]group|KIND_|profile|host policy|secondary dev",
        repository="core|backend",
    ),
    Family(
        "copied-memory",
        r"(?i)buffer|copy|uninitialized|byte size|integer overflow|collector|"
        r"allowed_input_types|invalid dim",
        repository="backend|core|python_backend|onnxruntime_backend|tensorrt_backend",
    ),
    Family(
        "scheduler-start",
        r"(?i)scheduler|payload|Initialization failed|hash|custom batch|"
        r"queue|BATCH_STRATEGY|CPU memory",
    ),
    Family(
        "config-field",
        "",
        file=r"^(?:model_config_utils|model|backend_model|label_provider|"
        r"backend_common|sequence_state)\.(?:cc|h)$|autofill",
    ),
    Family("config-field", r"(?i)optional|dimension|parameter"),
    Family(
        "triton-other",
        r"(?i)not supp|unknown|unsupported|out of bounds|already|creat|error|"
        r"complete|callback|index|fail|invalid|unexpected|cannot|can not|not found|expected|"
        r"unable|is not|was not|exceeded|can't",
    ),
)


def family_of(text: Text) -> str | None:
    """Return the entry of a text, an empty string if it is no failure, or ``None``."""
    for family in (*NOT_FAILURES, *FAMILIES):
        if family.has(text):
            return family.id
    return None
