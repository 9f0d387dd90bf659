import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashMap;
import java.util.Map;
import org.apache.storm.Config;
import org.apache.storm.LocalCluster;
import org.apache.storm.generated.StormTopology;
import org.apache.storm.spout.SpoutOutputCollector;
import org.apache.storm.task.OutputCollector;
import org.apache.storm.task.TopologyContext;
import org.apache.storm.topology.OutputFieldsDeclarer;
import org.apache.storm.topology.TopologyBuilder;
import org.apache.storm.topology.base.BaseRichBolt;
import org.apache.storm.topology.base.BaseRichSpout;
import org.apache.storm.tuple.Fields;
import org.apache.storm.tuple.Tuple;

/**
 * A topology of Storm in its LocalCluster, without a network: "StormPeers case batch parkMicros pending row...".
 * pending: topology.max.spout.pending, one acker and message ids; 0: nothing is acked. Says "ready" once tuples arrive;
 * answers each line "case milliseconds" with "tuples seconds", taken by the last bolt. "rate N" has the spout emit N
 * tuples per second, each with the time as its id; "latency milliseconds" answers "p50 p99 acked" from emit to ack, in
 * microseconds.
 */
public final class StormPeers {
    static final int COUNT_EVERY = 256;

    /** Only the last bolt's single task writes it. */
    static volatile long taken;

    /** Nanoseconds between two emits; 0: as many as possible. */
    static volatile double interval_nanos;

    /** How many tuples took so many tens of microseconds from emit to ack; only the spout's single task writes it. */
    static final long[] latencies = new long[100_000];

    static volatile boolean measuring;

    static final class ConstSpout extends BaseRichSpout {
        private final String[] rows;
        private final boolean acked;
        private SpoutOutputCollector collector;
        private int next;
        private long id;
        private double due;

        ConstSpout(String[] rows, boolean acked) {
            this.rows = rows;
            this.acked = acked;
        }

        @Override
        public void open(Map<String, Object> conf, TopologyContext context, SpoutOutputCollector collector) {
            this.collector = collector;
        }

        @Override
        public void nextTuple() {
            double interval = interval_nanos;
            if (interval > 0) {
                nextPaced(interval);
                return;
            }
            String row = nextRow();
            if (acked) {
                collector.emit(Collections.singletonList(row), id++);
            } else {
                collector.emit(Collections.singletonList(row));
            }
        }

        private void nextPaced(double interval) {
            long now = System.nanoTime();
            if (due == 0) {
                due = now;
            }
            if (now >= due) {
                due += interval;
                collector.emit(Collections.singletonList(nextRow()), now);
            }
        }

        private String nextRow() {
            String row = rows[next];
            next = next + 1 < rows.length ? next + 1 : 0;
            return row;
        }

        @Override
        public void ack(Object id) {
            if (measuring) {
                long tens = (System.nanoTime() - (Long) id) / 10_000;
                latencies[(int) Math.min(tens, latencies.length - 1)]++;
            }
        }

        @Override
        public void declareOutputFields(OutputFieldsDeclarer declarer) {
            declarer.declare(new Fields("row"));
        }
    }

    abstract static class Step extends BaseRichBolt {
        protected transient OutputCollector collector;

        @Override
        public void prepare(Map<String, Object> conf, TopologyContext context, OutputCollector collector) {
            this.collector = collector;
        }

        @Override
        public void declareOutputFields(OutputFieldsDeclarer declarer) {
            declarer.declare(new Fields("word"));
        }
    }

    static final class IdBolt extends Step {
        @Override
        public void execute(Tuple tuple) {
            collector.emit(tuple, tuple.getValues());
            collector.ack(tuple);
        }
    }

    static final class SplitBolt extends Step {
        @Override
        public void execute(Tuple tuple) {
            for (String word : tuple.getString(0).split(" ")) {
                collector.emit(tuple, Collections.singletonList(word));
            }
            collector.ack(tuple);
        }
    }

    abstract static class LastBolt extends Step {
        private long count;

        @Override
        public void execute(Tuple tuple) {
            take(tuple);
            collector.ack(tuple);
            if (++count % COUNT_EVERY == 0) {
                taken = count;
            }
        }

        abstract void take(Tuple tuple);

        @Override
        public void declareOutputFields(OutputFieldsDeclarer declarer) {}
    }

    static final class NullBolt extends LastBolt {
        @Override
        void take(Tuple tuple) {}
    }

    static final class CountBolt extends LastBolt {
        private final HashMap<String, Long> counts = new HashMap<>();

        @Override
        void take(Tuple tuple) {
            counts.merge(tuple.getString(0), 1L, Long::sum);
        }
    }

    static StormTopology topology(String name, boolean acked, String[] rows) {
        TopologyBuilder builder = new TopologyBuilder();
        builder.setSpout("spout", new ConstSpout(rows, acked), 1);
        switch (name) {
            case "null":
                builder.setBolt("last", new NullBolt(), 1).localOrShuffleGrouping("spout");
                break;
            case "id-null":
                builder.setBolt("id", new IdBolt(), 1).localOrShuffleGrouping("spout");
                builder.setBolt("last", new NullBolt(), 1).localOrShuffleGrouping("id");
                break;
            case "word-count":
                builder.setBolt("split", new SplitBolt(), 1).localOrShuffleGrouping("spout");
                builder.setBolt("last", new CountBolt(), 1).fieldsGrouping("split", new Fields("word"));
                break;
            default:
                throw new IllegalArgumentException(name);
        }
        return builder.createTopology();
    }

    static Config settings(int batch, int parkMicros, int pending) {
        String park = "org.apache.storm.policy.WaitStrategyPark";
        Config conf = new Config();
        conf.setNumWorkers(1);
        conf.setNumAckers(pending > 0 ? 1 : 0);
        if (pending > 0) {
            conf.setMaxSpoutPending(pending);
        }
        conf.setNumEventLoggers(0);
        conf.put(Config.TOPOLOGY_PRODUCER_BATCH_SIZE, batch);
        conf.put(Config.TOPOLOGY_EXECUTOR_RECEIVE_BUFFER_SIZE, 32768);
        conf.put(Config.TOPOLOGY_SPOUT_RECVQ_SKIPS, 8);
        conf.put(Config.TOPOLOGY_DISABLE_LOADAWARE_MESSAGING, true);
        conf.put(Config.TOPOLOGY_STATS_SAMPLE_RATE, 0.0005);
        conf.put(Config.TOPOLOGY_SPOUT_WAIT_STRATEGY, park);
        conf.put(Config.TOPOLOGY_SPOUT_WAIT_PARK_MICROSEC, parkMicros);
        conf.put(Config.TOPOLOGY_BOLT_WAIT_STRATEGY, park);
        conf.put(Config.TOPOLOGY_BOLT_WAIT_PARK_MICROSEC, parkMicros);
        conf.put(Config.TOPOLOGY_BACKPRESSURE_WAIT_STRATEGY, park);
        conf.put(Config.TOPOLOGY_BACKPRESSURE_WAIT_PARK_MICROSEC, parkMicros);
        return conf;
    }

    static String latency(long millis) throws InterruptedException {
        Arrays.fill(latencies, 0);
        measuring = true;
        Thread.sleep(millis);
        measuring = false;
        long[] seen = latencies.clone();
        long all = Arrays.stream(seen).sum();
        return quantile(seen, all / 2) + " " + quantile(seen, all - all / 100) + " " + all;
    }

    /** Microseconds within which so many were acked. */
    static long quantile(long[] seen, long wanted) {
        int tens = 0;
        for (long sum = seen[0]; sum < wanted && tens < seen.length - 1; sum += seen[tens]) {
            tens++;
        }
        return (tens + 1) * 10L;
    }

    public static void main(String[] args) throws Exception {
        PrintStream answers = System.out;
        System.setOut(System.err); // Storm logs there
        int pending = Integer.parseInt(args[3]);
        String[] rows = Arrays.copyOfRange(args, 4, args.length);
        Config conf = settings(Integer.parseInt(args[1]), Integer.parseInt(args[2]), pending);
        LocalCluster cluster = new LocalCluster();
        cluster.submitTopology(args[0], conf, topology(args[0], pending > 0, rows));
        while (taken == 0) {
            Thread.sleep(10);
        }
        answers.println("ready");
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            long millis = Long.parseLong(line.split(" ")[1]);
            if (line.startsWith("rate ")) {
                interval_nanos = 1e9 / millis;
                answers.println("0");
                continue;
            }
            if (line.startsWith("latency ")) {
                answers.println(latency(millis));
                continue;
            }
            long before = taken;
            long began = System.nanoTime();
            Thread.sleep(millis);
            answers.println((taken - before) + " " + (System.nanoTime() - began) / 1e9);
        }
        Runtime.getRuntime().halt(0);
    }
}
