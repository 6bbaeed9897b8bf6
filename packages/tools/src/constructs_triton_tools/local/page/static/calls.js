// The same call as Python, curl and AWS CLI. Each text can be run as it is, in a folder with the saved files.

import { DATATYPES } from "./tensors.js";

const MOST_INLINE = 64;
const LONGEST_JSON = 4000;

const quoted = (text) => JSON.stringify(text).replace(/[\u007f-\uffff]/g,
  (each) => `\\u${each.charCodeAt(0).toString(16).padStart(4, "0")}`);
const shell = (text) => (/^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`);

/** Return {files, python, curl, cli}; `files` are {name, body} that the texts read. */
export function callTexts(call, request, inputs) {
  const files = [];
  const python = call.kind === "infer" ? pythonInfer(call, inputs, files, request) : pythonStream(call, request);
  const isInline = request.text !== null && request.text.length <= LONGEST_JSON;
  const name = request.text === null ? "request.bin" : "request.json";
  if (!isInline) files.push({ name, body: request.body });
  return { files, python, curl: curl(call, request, isInline, name), cli: cli(call, request, isInline, name) };
}

function pythonHead(call) {
  const options = [`endpoint_url=${quoted(call.url)}`, `region_name=${quoted(call.region)}`];
  if (call.component) options.push(`inference_component=${quoted(call.component)}`);
  if (call.targetModel) options.push(`target_model=${quoted(call.modelName || call.targetModel)}`);
  return `TritonClient.for_endpoint(\n    ${quoted(call.endpoint)}, ${options.join(", ")}\n)`;
}

function pythonInfer(call, inputs, files) {
  const values = inputs.map((each) => `    ${quoted(each.name)}: ${pythonArray(each, files)},\n`).join("");
  const bits = inputs.filter((each) => each.datatype === "BF16").map((each) => `${quoted(each.name)}: "BF16"`);
  const extra = (bits.length ? `, datatypes={${bits.join(", ")}}` : "") +
    (call.variant ? `, TargetVariant=${quoted(call.variant)}` : "");
  const reads = values.includes("Path(") ? "from pathlib import Path\n\n" : "";
  return `${reads}import numpy as np\nfrom constructs_triton_client import TritonClient\n\n` +
    `client = ${pythonHead(call)}\nresult = client.infer({\n${values}}${extra})\n` +
    "for name, array in result.items():\n    print(name, array)\n";
}

function pythonArray(input, files) {
  const shape = `(${input.shape.join(", ")}${input.shape.length === 1 ? "," : ""})`;
  if (input.datatype === "BYTES") {
    const elements = input.values.map((value, index) => {
      if (!(value instanceof Uint8Array)) return quoted(value);
      const name = input.fileName && input.values.length === 1 ? input.fileName : `${fileStem(input.name)}_${index}.bin`;
      files.push({ name, body: value });
      return `Path(${quoted(name)}).read_bytes()`;
    });
    return `np.array([${elements.join(", ")}], dtype=object).reshape${shape === "()" ? "(())" : `(${shape})`}`;
  }
  const { dtype } = DATATYPES[input.datatype];
  if (input.values.length <= MOST_INLINE && input.datatype !== "BF16") {
    const list = input.values.map((each) => (each === true ? "True" : each === false ? "False" : String(each)));
    return `np.array([${list.join(", ")}], dtype="${dtype}").reshape(${shape})`;
  }
  const name = `${fileStem(input.name)}.bin`;
  files.push({ name, body: input.encoded() });
  return `np.fromfile(${quoted(name)}, dtype="${dtype}").reshape(${shape})`;
}

const fileStem = (name) => name.replace(/[^\w-]/g, "_") || "input";

function pythonStream(call, request) {
  const values = Object.entries(JSON.parse(request.text)).map(([name, value]) => `${quoted(name)}: ${pythonValue(value)}`);
  if (call.kind === "generate_stream") {
    return `from constructs_triton_client import TritonClient\n\nclient = ${pythonHead(call)}\n` +
      `for event in client.infer_stream({${values.join(", ")}}):\n    print(event.text(), end="", flush=True)\n`;
  }
  return `import boto3\n\nruntime = boto3.client("sagemaker-runtime", endpoint_url=${quoted(call.url)}, ` +
    `region_name=${quoted(call.region)},\n                       aws_access_key_id="local", aws_secret_access_key="local")\n` +
    `response = runtime.invoke_endpoint(EndpointName=${quoted(call.endpoint)}, ContentType="application/json",\n` +
    `                                   Body=${quoted(request.text)}${call.component ? `, InferenceComponentName=${quoted(call.component)}` : ""})\n` +
    `print(response["Body"].read().decode())\n`;
}

function pythonValue(value) {
  if (Array.isArray(value)) return `[${value.map(pythonValue).join(", ")}]`;
  if (typeof value === "boolean") return value ? "True" : "False";
  return typeof value === "string" ? quoted(value) : String(value);
}

/** The headers that choose what an endpoint runs. */
export function targetHeaders(call) {
  const headers = {};
  if (call.component) headers["X-Amzn-SageMaker-Inference-Component"] = call.component;
  if (call.targetModel) headers["X-Amzn-SageMaker-Target-Model"] = call.targetModel;
  if (call.variant) headers["X-Amzn-SageMaker-Target-Variant"] = call.variant;
  return headers;
}

function curl(call, request, isInline, name) {
  const headers = { "Content-Type": request.contentType, ...targetHeaders(call) };
  const lines = Object.entries(headers).map(([key, value]) => `  -H ${shell(`${key}: ${value}`)} \\\n`).join("");
  const unbuffered = call.kind === "generate_stream" ? " --no-buffer" : "";
  const output = request.binaryOutput ? " \\\n  --output answer.bin" : "";
  const body = isInline ? shell(request.text) : `@${name}`;
  const address = `${call.url}/endpoints/${encodeURIComponent(call.endpoint)}/invocations`;
  return `curl --silent --show-error${unbuffered} ${shell(address)} \\\n` +
    `${lines}  --data-binary ${body}${output}\n`;
}

function cli(call, request, isInline, name) {
  const options = [`--endpoint-url ${call.url} --region ${call.region}`, `--endpoint-name ${shell(call.endpoint)}`,
    `--content-type ${shell(request.contentType)}`, `--body fileb://${name}`];
  if (call.component) options.push(`--inference-component-name ${shell(call.component)}`);
  if (call.targetModel) options.push(`--target-model ${shell(call.targetModel)}`);
  if (call.variant) options.push(`--target-variant ${shell(call.variant)}`);
  const write = isInline ? `printf %s ${shell(request.text)} > ${name}\n` : "";
  const answer = request.binaryOutput ? "answer.bin" : "answer.json";
  return `${write}export AWS_ACCESS_KEY_ID=local AWS_SECRET_ACCESS_KEY=local\n` +
    `aws sagemaker-runtime invoke-endpoint \\\n${options.map((each) => `  ${each} \\\n`).join("")}  ${answer}\n`;
}
