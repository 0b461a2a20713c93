import com.fasterxml.jackson.core.JsonGenerator;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.time.Instant;
import java.util.UUID;

/** The JSON of a command, with the fields of ours. */
final class Command {
    private Command() {}

    static byte[] json(String action, String node, String uid, PodRow pod, String verdict, long nowUs) throws IOException {
        int slash = node.indexOf('/');
        String cluster = node.substring(0, slash);
        var identity = cluster + "/" + uid + "/" + pod.opened;
        var bytes = new ByteArrayOutputStream(768);
        try (JsonGenerator output = Event.JSON.createGenerator(bytes)) {
            output.writeStartObject();
            output.writeStringField("apiVersion", "evictstream.io/v1");
            output.writeStringField("kind", "EvictionCommand");
            output.writeStringField("action", action);
            output.writeStringField("evictionId", UUID.nameUUIDFromBytes(identity.getBytes(StandardCharsets.UTF_8)).toString());
            output.writeNumberField("revision", pod.revision);
            output.writeNumberField("attempt", 0);
            output.writeStringField("cluster", cluster);
            output.writeStringField("namespace", pod.namespace);
            output.writeStringField("pod", pod.name);
            output.writeStringField("podUid", uid);
            output.writeStringField("node", node.substring(slash + 1));
            output.writeObjectFieldStart("reason");
            output.writeObjectFieldStart("taint");
            output.writeStringField("key", pod.taintKey);
            output.writeStringField("effect", "NoExecute");
            output.writeEndObject();
            output.writeStringField("verdict", verdict);
            output.writeEndObject();
            output.writeStringField("windowStart", text(pod.windowUs));
            output.writeStringField("deadline", text(pod.deadlineUs));
            output.writeStringField("issuedAt", text(nowUs));
            output.writeEndObject();
        }
        return bytes.toByteArray();
    }

    private static String text(long us) {
        return Instant.ofEpochSecond(us / 1_000_000, us % 1_000_000 * 1_000).toString();
    }
}
