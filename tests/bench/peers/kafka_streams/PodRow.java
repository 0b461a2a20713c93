import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;

/** A pod and what is pending for it, as one value of the store. Layout: fixed fields, tolerations, texts. */
final class PodRow {
    static final byte NOTHING = 0;
    static final byte SCHEDULED = 1;
    static final byte ISSUED = 2;

    private static final int LEAVING_AT = 8;
    private static final int STATE_AT = 9;
    private static final int DEADLINE_AT = 10;
    private static final int TOLERATIONS_AT = 42;

    long version;
    boolean isLeaving;
    byte state;
    long deadlineUs;
    long sinceUs;
    long windowUs;
    int opened; // evictions opened for this pod so far
    int revision;
    byte[] tolerations;
    String namespace;
    String name;
    String taintKey; // reason of what is pending

    static long version(byte[] row) {
        return ByteBuffer.wrap(row).getLong(0);
    }

    static byte state(byte[] row) {
        return row[STATE_AT];
    }

    static long deadlineUs(byte[] row) {
        return ByteBuffer.wrap(row).getLong(DEADLINE_AT);
    }

    /** Whether a row says what the event says, told without decoding it. */
    static boolean isSame(byte[] row, Event event) {
        int begin = TOLERATIONS_AT;
        int length = ByteBuffer.wrap(row).getInt(begin - 4);
        return (row[LEAVING_AT] != 0) == event.isLeaving
            && Arrays.equals(row, begin, begin + length, event.tolerations, 0, event.tolerations.length);
    }

    static PodRow decode(byte[] row) {
        var buffer = ByteBuffer.wrap(row);
        var pod = new PodRow();
        pod.version = buffer.getLong();
        pod.isLeaving = buffer.get() != 0;
        pod.state = buffer.get();
        pod.deadlineUs = buffer.getLong();
        pod.sinceUs = buffer.getLong();
        pod.windowUs = buffer.getLong();
        pod.opened = buffer.getShort();
        pod.revision = buffer.getShort();
        pod.tolerations = new byte[buffer.getInt()];
        buffer.get(pod.tolerations);
        pod.namespace = text(buffer);
        pod.name = text(buffer);
        pod.taintKey = text(buffer);
        return pod;
    }

    byte[] encode() {
        byte[] space = namespace.getBytes(StandardCharsets.UTF_8);
        byte[] own = name.getBytes(StandardCharsets.UTF_8);
        byte[] taint = taintKey.getBytes(StandardCharsets.UTF_8);
        var buffer = ByteBuffer.allocate(TOLERATIONS_AT + tolerations.length + 6 + space.length + own.length + taint.length);
        buffer.putLong(version).put((byte) (isLeaving ? 1 : 0)).put(state);
        buffer.putLong(deadlineUs).putLong(sinceUs).putLong(windowUs).putShort((short) opened).putShort((short) revision);
        buffer.putInt(tolerations.length).put(tolerations);
        for (byte[] text : new byte[][] {space, own, taint}) buffer.putShort((short) text.length).put(text);
        return buffer.array();
    }

    static String text(ByteBuffer buffer) {
        byte[] bytes = new byte[buffer.getShort()];
        buffer.get(bytes);
        return new String(bytes, StandardCharsets.UTF_8);
    }
}
