import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;

/** Sends a tensor in binary to a local run: java Invoke.java ADDRESS ENDPOINT INPUT VALUE... */
public class Invoke {
    static final String BINARY = "application/vnd.sagemaker-triton.binary+json;json-header-size=";

    public static void main(String[] arguments) throws Exception {
        int count = arguments.length - 3;
        ByteBuffer values = ByteBuffer.allocate(4 * count).order(ByteOrder.LITTLE_ENDIAN);
        for (int each = 0; each < count; each++) {
            values.putFloat(Float.parseFloat(arguments[3 + each]));
        }
        String header = String.format(
            "{\"inputs\": [{\"name\": \"%s\", \"datatype\": \"FP32\", \"shape\": [1, %d], "
                + "\"parameters\": {\"binary_data_size\": %d}}], "
                + "\"parameters\": {\"binary_data_output\": true}}",
            arguments[2], count, values.capacity());
        byte[] json = header.getBytes(StandardCharsets.UTF_8);
        HttpResponse<byte[]> response = send(
            arguments[0] + "/endpoints/" + arguments[1] + "/invocations",
            BINARY + json.length,
            joined(json, values.array()));

        // The response begins with JSON too; the binary data of its outputs follows in their order.
        String type = response.headers().firstValue("content-type").orElse("");
        byte[] body = response.body();
        int end = type.startsWith(BINARY)
            ? Integer.parseInt(type.substring(BINARY.length())) : body.length;
        System.out.println(new String(body, 0, end, StandardCharsets.UTF_8));
        ByteBuffer data = ByteBuffer.wrap(body, end, body.length - end);
        float[] output = new float[data.remaining() / 4];
        data.order(ByteOrder.LITTLE_ENDIAN).asFloatBuffer().get(output);
        System.out.println(Arrays.toString(output));
    }

    /** With AWS's SDK, this is invokeEndpoint with endpointName, contentType and body. */
    static HttpResponse<byte[]> send(String address, String type, byte[] body) throws Exception {
        HttpRequest request = HttpRequest.newBuilder(URI.create(address))
            .header("Content-Type", type)
            .POST(HttpRequest.BodyPublishers.ofByteArray(body))
            .build();
        return HttpClient.newHttpClient().send(request, HttpResponse.BodyHandlers.ofByteArray());
    }

    static byte[] joined(byte[] first, byte[] second) throws IOException {
        ByteArrayOutputStream all = new ByteArrayOutputStream();
        all.write(first);
        all.write(second);
        return all.toByteArray();
    }
}
