import com.fasterxml.jackson.core.JsonParser;
import com.fasterxml.jackson.core.JsonToken;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;

/** One entry of a pod's tolerations; null seconds mean forever. */
record Toleration(String key, String operator, String value, String effect, Long seconds) {
    static List<Toleration> readAll(byte[] json) throws IOException {
        var found = new ArrayList<Toleration>();
        if (json.length == 0) return found;
        try (JsonParser parser = Event.JSON.createParser(json)) {
            parser.nextToken();
            while (parser.nextToken() == JsonToken.START_OBJECT) found.add(read(parser));
        }
        return found;
    }

    private static Toleration read(JsonParser parser) throws IOException {
        String key = "";
        String operator = "Equal";
        String value = "";
        String effect = "";
        Long seconds = null;
        for (String field; (field = parser.nextFieldName()) != null; ) {
            JsonToken token = parser.nextToken();
            switch (field) {
                case "key" -> key = parser.getText();
                case "operator" -> operator = parser.getText();
                case "value" -> value = parser.getText();
                case "effect" -> effect = parser.getText();
                case "tolerationSeconds" -> seconds = token == JsonToken.VALUE_NUMBER_INT ? parser.getLongValue() : null;
                default -> parser.skipChildren();
            }
        }
        return new Toleration(key, operator, value, effect, seconds);
    }

    boolean tolerates(Event.Taint taint) {
        if (!effect.isEmpty() && !effect.equals("NoExecute")) return false;
        if (!key.isEmpty() && !key.equals(taint.key())) return false;
        return switch (operator) {
            case "Exists" -> true;
            case "Equal", "" -> value.equals(taint.value());
            default -> false;
        };
    }
}
