import com.fasterxml.jackson.core.JsonFactory;
import com.fasterxml.jackson.core.JsonParser;
import com.fasterxml.jackson.core.JsonToken;
import java.io.IOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/** What is used of a watch event, read with Jackson's streaming parser; everything else is skipped unbuilt. */
final class Event {
    static final JsonFactory JSON = new JsonFactory();
    private static final byte[] NOTHING = {};

    boolean isNode;
    boolean isDeleted;
    String observedAt;
    String name;
    String namespace = "";
    String nodeName = "";
    String uid;
    long version;
    boolean isLeaving; // terminating, finished, or a mirror pod: never evicted
    byte[] tolerations = NOTHING; // as they stand in the event: equal bytes need no reading
    List<Taint> taints = List.of();

    record Taint(String key, String value, long sinceUs) {}

    /** Returns null for what tells of no object (heartbeats, bookmarks). */
    static Event read(byte[] json) throws IOException {
        var event = new Event();
        try (JsonParser parser = JSON.createParser(json)) {
            boolean hasObject = false;
            parser.nextToken();
            for (String field; (field = parser.nextFieldName()) != null; ) {
                JsonToken token = parser.nextToken();
                switch (field) {
                    case "type" -> event.isDeleted = parser.getText().equals("DELETED");
                    case "observedAt" -> event.observedAt = parser.getText();
                    case "object" -> {
                        hasObject = token == JsonToken.START_OBJECT;
                        if (hasObject) event.object(parser, json);
                    }
                    default -> parser.skipChildren();
                }
            }
            return hasObject && event.uid != null ? event : null;
        }
    }

    private void object(JsonParser parser, byte[] json) throws IOException {
        for (String field; (field = parser.nextFieldName()) != null; ) {
            JsonToken token = parser.nextToken();
            if (field.equals("kind")) isNode = parser.getText().equals("Node");
            else if (token != JsonToken.START_OBJECT) parser.skipChildren();
            else if (field.equals("metadata")) metadata(parser);
            else if (field.equals("spec")) spec(parser, json);
            else if (field.equals("status")) status(parser);
            else parser.skipChildren();
        }
    }

    private void metadata(JsonParser parser) throws IOException {
        for (String field; (field = parser.nextFieldName()) != null; ) {
            JsonToken token = parser.nextToken();
            switch (field) {
                case "name" -> name = parser.getText();
                case "namespace" -> namespace = parser.getText();
                case "uid" -> uid = parser.getText();
                case "resourceVersion" -> version = Long.parseLong(parser.getText());
                case "deletionTimestamp" -> isLeaving |= token == JsonToken.VALUE_STRING;
                case "annotations" -> {
                    if (token == JsonToken.START_OBJECT) annotations(parser);
                }
                default -> parser.skipChildren();
            }
        }
    }

    private void annotations(JsonParser parser) throws IOException {
        for (String field; (field = parser.nextFieldName()) != null; ) {
            parser.nextToken();
            isLeaving |= field.equals("kubernetes.io/config.mirror");
        }
    }

    private void spec(JsonParser parser, byte[] json) throws IOException {
        for (String field; (field = parser.nextFieldName()) != null; ) {
            JsonToken token = parser.nextToken();
            if (token == JsonToken.START_ARRAY && field.equals("tolerations")) {
                int begin = (int) parser.currentTokenLocation().getByteOffset();
                parser.skipChildren();
                tolerations = Arrays.copyOfRange(json, begin, (int) parser.currentLocation().getByteOffset());
            } else if (token == JsonToken.VALUE_STRING && field.equals("nodeName")) nodeName = parser.getText();
            else if (token == JsonToken.START_ARRAY && field.equals("taints")) {
                taints = new ArrayList<>();
                while (parser.nextToken() == JsonToken.START_OBJECT) taint(parser);
            } else parser.skipChildren();
        }
    }

    private void taint(JsonParser parser) throws IOException {
        String key = "";
        String value = "";
        String effect = "";
        for (String field; (field = parser.nextFieldName()) != null; ) {
            parser.nextToken();
            switch (field) {
                case "key" -> key = parser.getText();
                case "value" -> value = parser.getText();
                case "effect" -> effect = parser.getText();
                default -> parser.skipChildren();
            }
        }
        if (effect.equals("NoExecute")) taints.add(new Taint(key, value, 0));
    }

    private void status(JsonParser parser) throws IOException {
        for (String field; (field = parser.nextFieldName()) != null; ) {
            parser.nextToken();
            if (field.equals("phase")) {
                String phase = parser.getText();
                isLeaving |= phase.equals("Succeeded") || phase.equals("Failed");
            } else parser.skipChildren();
        }
    }
}
