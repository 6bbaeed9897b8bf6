// Print how a text goes on, while it is written: node stream.mjs "Once upon a time"
import {
  InvokeEndpointWithResponseStreamCommand,
  SageMakerRuntimeClient,
} from "@aws-sdk/client-sagemaker-runtime";

const command = new InvokeEndpointWithResponseStreamCommand({
  EndpointName: "story",
  ContentType: "application/json",
  Body: JSON.stringify({ text_input: process.argv[2], max_tokens: 12 }),
});
const { Body } = await new SageMakerRuntimeClient().send(command);
const decoder = new TextDecoder();
let received = "";
for await (const { PayloadPart } of Body) {
  // A part is any piece of the stream. An event ends with an empty line.
  received += decoder.decode(PayloadPart?.Bytes, { stream: true });
  const events = received.split("\n\n");
  received = events.pop();
  for (const event of events) {
    const { text_output, error } = JSON.parse(event.slice("data: ".length));
    if (error) throw new Error(error);
    process.stdout.write(text_output + "|");
  }
}
console.log();
