"""Print the tokens that an endpoint of `constructs-triton local up cdk.out` generates,
as they arrive.
"""

from __future__ import annotations

import sys

from constructs_triton_client import TritonClient

client = TritonClient.for_endpoint("story", endpoint_url="http://127.0.0.1:8080")
for event in client.infer_stream({"text_input": sys.argv[1], "max_tokens": 40}):
    print(event.text(), end="", flush=True)
print()
