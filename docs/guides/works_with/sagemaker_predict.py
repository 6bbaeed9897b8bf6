import json

from sagemaker.core.resources import Endpoint

tensor = {
    "name": "INPUT__0",
    "shape": [1, 2],
    "datatype": "FP32",
    "data": [1.5, 2.0],
}
endpoint = Endpoint(endpoint_name="bert")
response = endpoint.invoke(
    body=json.dumps({"inputs": [tensor]}), content_type="application/octet-stream"
)
print(json.loads(response.body.read())["outputs"][0]["data"])
