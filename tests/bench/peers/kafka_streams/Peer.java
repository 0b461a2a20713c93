import java.time.Duration;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.CountDownLatch;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.CloseOptions;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.errors.StreamsUncaughtExceptionHandler.StreamThreadExceptionResponse;
import org.apache.kafka.streams.state.Stores;

/** The eviction job as a Kafka Streams program: two co-partitioned inputs, one store in memory with its changelog, one output. */
public final class Peer {
    static final String STORE = "state";

    private Peer() {}

    /** Arguments: servers, application id, topics of nodes, pods and commands, processing guarantee, folder. */
    public static void main(String[] arguments) throws InterruptedException {
        var streams = new KafkaStreams(topology(arguments[2], arguments[3], arguments[4]),
            settings(arguments[0], arguments[1], arguments[5], arguments[6]));
        var ended = new CountDownLatch(1);
        streams.setUncaughtExceptionHandler(error -> {
            error.printStackTrace();
            ended.countDown();
            return StreamThreadExceptionResponse.SHUTDOWN_CLIENT;
        });
        Runtime.getRuntime().addShutdownHook(new Thread(() -> {
            // Leaves the group, so that the next one need not wait for the end of our session.
            streams.close(CloseOptions.timeout(Duration.ofSeconds(20))
                .withGroupMembershipOperation(CloseOptions.GroupMembershipOperation.LEAVE_GROUP));
            ended.countDown();
        }));
        streams.start();
        ended.await();
    }

    private static Topology topology(String nodes, String pods, String commands) {
        var bytes = Serdes.ByteArray();
        var store = Stores.keyValueStoreBuilder(Stores.inMemoryKeyValueStore(STORE), Serdes.String(), bytes)
            .withLoggingEnabled(Map.of())
            .withCachingDisabled();
        return new Topology()
            .addSource("inputs", bytes.deserializer(), bytes.deserializer(), nodes, pods)
            .addProcessor("evictor", Evictor::new, "inputs")
            .addStateStore(store, "evictor")
            .addSink("commands", commands, bytes.serializer(), bytes.serializer(), "evictor");
    }

    private static Properties settings(String servers, String application, String guarantee, String folder) {
        boolean exactlyOnce = guarantee.equals(StreamsConfig.EXACTLY_ONCE_V2);
        var settings = new Properties();
        settings.put("bootstrap.servers", servers);
        settings.put("application.id", application);
        settings.put("processing.guarantee", guarantee);
        settings.put("state.dir", folder);
        settings.put("num.stream.threads", 2); // one for each core of the machine that the goals were set on
        // Exactly once: the default, and what its readers wait for. At least once: offsets only, by default each 30 s.
        settings.put("commit.interval.ms", exactlyOnce ? 100 : 1_000);
        settings.put("poll.ms", 5); // punctuations wait for a poll to return; 100 by default
        settings.put("buffered.records.per.partition", 5_000); // 1,000 pauses partitions all the time in a backlog
        settings.put("consumer.max.poll.records", 5_000);
        settings.put("consumer.max.partition.fetch.bytes", 4_194_304); // as ours
        settings.put("consumer.session.timeout.ms", 10_000); // as ours
        settings.put("consumer.auto.offset.reset", "earliest");
        settings.put("restore.consumer.max.poll.records", 10_000);
        settings.put("restore.consumer.max.partition.fetch.bytes", 4_194_304);
        settings.put("producer.linger.ms", 5); // 100 by default at least once; less costs throughput
        settings.put("producer.batch.size", 131_072);
        settings.put("producer.acks", "all");
        return settings;
    }
}
