import java.io.ByteArrayOutputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;

/** A node with its NoExecute taints, each with the time since which it is there. */
record NodeRow(long version, String uid, List<Event.Taint> taints) {
    static NodeRow decode(byte[] row) {
        var buffer = ByteBuffer.wrap(row);
        long version = buffer.getLong();
        String uid = PodRow.text(buffer);
        int count = buffer.getShort();
        var taints = new ArrayList<Event.Taint>(count);
        for (int number = 0; number < count; number++) {
            taints.add(new Event.Taint(PodRow.text(buffer), PodRow.text(buffer), buffer.getLong()));
        }
        return new NodeRow(version, uid, taints);
    }

    byte[] encode() throws IOException {
        var bytes = new ByteArrayOutputStream();
        var output = new DataOutputStream(bytes);
        output.writeLong(version);
        output.writeUTF(uid);
        output.writeShort(taints.size());
        for (var taint : taints) {
            output.writeUTF(taint.key());
            output.writeUTF(taint.value());
            output.writeLong(taint.sinceUs());
        }
        return bytes.toByteArray();
    }

    /** Takes over when each taint was first seen; returns this very row if the taints are the same. */
    NodeRow with(Event event, long nowUs) {
        var merged = new ArrayList<Event.Taint>(event.taints.size());
        for (var taint : event.taints) {
            long sinceUs = taints.stream().filter(old -> old.key().equals(taint.key()))
                .mapToLong(Event.Taint::sinceUs).findFirst().orElse(nowUs);
            merged.add(new Event.Taint(taint.key(), taint.value(), sinceUs));
        }
        return merged.equals(taints) && uid.equals(event.uid) ? this : new NodeRow(event.version, event.uid, merged);
    }
}
