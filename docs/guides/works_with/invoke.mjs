// Embed a text: node invoke.mjs "How do I reset my password?"
import { InvokeEndpointCommand, SageMakerRuntimeClient } from "@aws-sdk/client-sagemaker-runtime";

const inputs = [{ name: "text", datatype: "BYTES", shape: [1, 1], data: [process.argv[2]] }];
const command = new InvokeEndpointCommand({
  EndpointName: "embeddings",
  ContentType: "application/json",
  Body: JSON.stringify({ inputs }),
});
const { Body } = await new SageMakerRuntimeClient().send(command);
const [embedding] = JSON.parse(Body.transformToString()).outputs;
console.log(embedding.shape, embedding.data.slice(0, 3));
