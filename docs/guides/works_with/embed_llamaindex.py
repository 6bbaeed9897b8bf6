"""Print the text that is nearest to a question: python embed_llamaindex.py "How
do I reset my password?".
"""

from __future__ import annotations

import json
import sys
from typing import Any

from llama_index.core import Document, VectorStoreIndex
from llama_index.embeddings.sagemaker_endpoint import SageMakerEmbedding
from llama_index.embeddings.sagemaker_endpoint.utils import BaseIOHandler


class TensorHandler(BaseIOHandler):
    """The endpoint's tensors: `text` in, `embedding` out."""

    content_type = accept = "application/json"

    def serialize_input(
        self, request: list[str], model_kwargs: dict[str, Any]
    ) -> bytes:
        tensor = {
            "name": "text",
            "datatype": "BYTES",
            "shape": [len(request), 1],
            "data": request,
        }
        return json.dumps({"inputs": [tensor], **model_kwargs}).encode()

    def deserialize_output(self, response: Any) -> list[list[float]]:
        (tensor,) = json.loads(response.read())["outputs"]
        size = tensor["shape"][1]
        return [
            tensor["data"][start : start + size]
            for start in range(0, len(tensor["data"]), size)
        ]


# At most 32 texts in a request: the model's max_batch_size.
model = SageMakerEmbedding(
    "embeddings", content_handler=TensorHandler(), embed_batch_size=32
)
texts = [
    "I cannot log in to my account.",
    "How do I cook my rice?",
    "A kitten rests on a rug.",
]
index = VectorStoreIndex.from_documents(
    [Document(text=text) for text in texts], embed_model=model
)
for node in index.as_retriever(similarity_top_k=3).retrieve(sys.argv[1]):
    print(f"{node.score:.3f} {node.text}")
