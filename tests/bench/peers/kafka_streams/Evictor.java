import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.time.Instant;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.PriorityQueue;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.processor.PunctuationType;
import org.apache.kafka.streams.processor.api.Processor;
import org.apache.kafka.streams.processor.api.ProcessorContext;
import org.apache.kafka.streams.processor.api.Record;
import org.apache.kafka.streams.state.KeyValueIterator;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.common.serialization.StringSerializer;

/** Keeps nodes and pods, decides who has to leave when, and sends Schedule, Cancel and Evict. */
final class Evictor implements Processor<byte[], byte[], byte[], byte[]> {
    private static final Duration TICK = Duration.ofMillis(10);
    private static final int REMEMBERED_LISTS = 10_000;
    private static final String PODS = "P/";

    private record Timer(long deadlineUs, String key) implements Comparable<Timer> {
        @Override
        public int compareTo(Timer other) {
            return Long.compare(deadlineUs, other.deadlineUs);
        }
    }

    private final PriorityQueue<Timer> timers = new PriorityQueue<>();
    // Most pods have one of a few lists: read each once.
    private final Map<ByteBuffer, List<Toleration>> lists = new HashMap<>();
    private final StringSerializer texts = new StringSerializer();
    private ProcessorContext<byte[], byte[]> context;
    private KeyValueStore<String, byte[]> store;

    @Override
    public void init(ProcessorContext<byte[], byte[]> context) {
        this.context = context;
        store = context.getStateStore(Peer.STORE);
        try (KeyValueIterator<String, byte[]> rows = store.prefixScan(PODS, texts)) {
            rows.forEachRemaining(row -> {
                if (PodRow.state(row.value) == PodRow.SCHEDULED) timers.add(new Timer(PodRow.deadlineUs(row.value), row.key));
            });
        }
        context.schedule(TICK, PunctuationType.WALL_CLOCK_TIME, at -> fire());
    }

    @Override
    public void process(Record<byte[], byte[]> record) {
        try {
            Event event = Event.read(record.value());
            if (event == null) return;
            String cluster = new String(record.key(), StandardCharsets.UTF_8);
            if (event.isNode) node(cluster + "/" + event.name, event);
            else pod(cluster + "/" + event.nodeName, event);
        } catch (IOException error) {
            System.err.println("unreadable record: " + error.getMessage());
        }
    }

    private void pod(String node, Event event) throws IOException {
        String key = PODS + node + "/" + event.uid;
        byte[] old = store.get(key);
        if (old != null && !event.isDeleted && (event.version <= PodRow.version(old) || PodRow.isSame(old, event))) return;
        if (event.isDeleted) {
            if (old == null) return;
            PodRow pod = PodRow.decode(old);
            if (pod.state == PodRow.SCHEDULED) send("Cancel", node, key, pod, "PodGone");
            store.delete(key);
            return;
        }
        PodRow pod = old == null ? new PodRow() : PodRow.decode(old);
        if (old == null) {
            pod.sinceUs = observedUs(event);
            pod.namespace = event.namespace;
            pod.name = event.name;
            pod.taintKey = "";
        }
        pod.version = event.version;
        pod.isLeaving = event.isLeaving;
        pod.tolerations = event.tolerations;
        decide(node, key, pod, nodeRow(node), nowUs());
        store.put(key, pod.encode());
    }

    private void node(String node, Event event) throws IOException {
        NodeRow old = nodeRow(node);
        if (old != null && event.version <= old.version()) return;
        NodeRow next = null;
        if (!event.isDeleted) {
            next = (old == null ? new NodeRow(0, "", List.of()) : old).with(event, observedUs(event));
            if (next == old) return;
        }
        store.put("N/" + node, next == null ? null : next.encode());
        long nowUs = nowUs();
        try (KeyValueIterator<String, byte[]> rows = store.prefixScan(PODS + node + "/", texts)) {
            while (rows.hasNext()) {
                KeyValue<String, byte[]> row = rows.next();
                PodRow pod = PodRow.decode(row.value);
                if (decide(node, row.key, pod, next, nowUs)) store.put(row.key, pod.encode());
            }
        }
    }

    private void fire() {
        long nowUs = nowUs();
        try {
            while (!timers.isEmpty() && timers.peek().deadlineUs <= nowUs) {
                Timer timer = timers.poll();
                byte[] row = store.get(timer.key);
                if (row == null || PodRow.state(row) != PodRow.SCHEDULED || PodRow.deadlineUs(row) != timer.deadlineUs) continue;
                PodRow pod = PodRow.decode(row);
                String node = timer.key.substring(PODS.length(), timer.key.lastIndexOf('/'));
                if (decide(node, timer.key, pod, nodeRow(node), nowUs)) store.put(timer.key, pod.encode());
            }
        } catch (IOException error) {
            throw new java.io.UncheckedIOException(error);
        }
    }

    /** Changes what is pending for a pod and tells so; returns whether anything did change. */
    private boolean decide(String node, String key, PodRow pod, NodeRow on, long nowUs) throws IOException {
        long dueUs = Long.MAX_VALUE;
        Event.Taint reason = null;
        long windowUs = 0;
        if (on != null && !pod.isLeaving && !on.taints().isEmpty()) {
            List<Toleration> tolerations = tolerations(pod.tolerations);
            for (Event.Taint taint : on.taints()) {
                Toleration used = null;
                for (Toleration one : tolerations) {
                    if (one.tolerates(taint)) {
                        used = one;
                        break;
                    }
                }
                long startUs = Math.max(taint.sinceUs(), pod.sinceUs);
                long untilUs = used == null ? 0 : used.seconds() == null ? Long.MAX_VALUE
                    : startUs + Math.max(0, used.seconds()) * 1_000_000;
                if (untilUs < dueUs) {
                    dueUs = untilUs;
                    reason = taint;
                    windowUs = startUs;
                }
            }
        }
        if (reason == null) return cancel(node, key, pod, on);
        boolean isDue = dueUs <= nowUs;
        if (isDue ? pod.state == PodRow.ISSUED : pod.state == PodRow.SCHEDULED && pod.deadlineUs == dueUs) return false;
        if (pod.state == PodRow.NOTHING) {
            pod.opened++;
            pod.revision = 0;
        }
        pod.state = isDue ? PodRow.ISSUED : PodRow.SCHEDULED;
        pod.deadlineUs = dueUs == 0 ? windowUs : dueUs; // untolerated: due since the window began
        pod.windowUs = windowUs;
        pod.taintKey = reason.key();
        pod.revision++;
        if (!isDue) timers.add(new Timer(dueUs, key));
        send(isDue ? "Evict" : "Schedule", node, key, pod, dueUs == 0 ? "NotTolerated" : "TolerationExpires");
        return true;
    }

    private boolean cancel(String node, String key, PodRow pod, NodeRow on) throws IOException {
        if (pod.state == PodRow.NOTHING) return false;
        boolean isOwed = pod.state == PodRow.SCHEDULED || !pod.isLeaving;
        pod.state = PodRow.NOTHING;
        if (isOwed) send("Cancel", node, key, pod, on == null ? "NodeGone" : pod.isLeaving ? "PodFinished" : "TaintRemoved");
        return true;
    }

    private void send(String action, String node, String key, PodRow pod, String verdict) throws IOException {
        String uid = key.substring(key.lastIndexOf('/') + 1);
        byte[] command = Command.json(action, node, uid, pod, verdict, nowUs());
        byte[] cluster = node.substring(0, node.indexOf('/')).getBytes(StandardCharsets.UTF_8);
        context.forward(new Record<>(cluster, command, System.currentTimeMillis()));
    }

    private NodeRow nodeRow(String node) {
        byte[] row = store.get("N/" + node);
        return row == null ? null : NodeRow.decode(row);
    }

    private List<Toleration> tolerations(byte[] json) throws IOException {
        List<Toleration> found = lists.get(ByteBuffer.wrap(json));
        if (found == null) {
            if (lists.size() >= REMEMBERED_LISTS) lists.clear();
            lists.put(ByteBuffer.wrap(json), found = Toleration.readAll(json));
        }
        return found;
    }

    private static long observedUs(Event event) {
        if (event.observedAt == null) return nowUs();
        return us(Instant.parse(event.observedAt));
    }

    private static long nowUs() {
        return us(Instant.now());
    }

    private static long us(Instant at) {
        return at.getEpochSecond() * 1_000_000 + at.getNano() / 1_000;
    }
}
