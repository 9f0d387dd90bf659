import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import org.apache.storm.Config;
import org.apache.storm.LocalCluster;
import org.apache.storm.generated.StormTopology;
import org.apache.storm.spout.ShellSpout;
import org.apache.storm.task.ShellBolt;
import org.apache.storm.topology.IRichBolt;
import org.apache.storm.topology.IRichSpout;
import org.apache.storm.topology.OutputFieldsDeclarer;
import org.apache.storm.topology.TopologyBuilder;
import org.apache.storm.tuple.Fields;

/**
 * Lines, split, count, each in processes of Python behind Storm's multi-lang pipe, in the LocalCluster:
 * "StormWords python module text out done". Ends when the file "done" exists. As streamparse builds such a topology:
 * messages are JSON, the only serializer that Storm has.
 */
public final class StormWords {
    static final String END = "end";

    /** Lines of the spout, and tuples of each pipe. */
    static final int PENDING = 1000;

    /** Less: threads that have nothing to do take more of the processors from Python. */
    static final int PARK_MICROS = 1000;

    static final class Lines extends ShellSpout implements IRichSpout {
        Lines(String... command) {
            super(command);
            changeChildCWD(false);
        }

        @Override
        public void declareOutputFields(OutputFieldsDeclarer declarer) {
            declarer.declare(new Fields("line"));
            declarer.declareStream(END, new Fields("none"));
        }

        @Override
        public Map<String, Object> getComponentConfiguration() {
            return null;
        }
    }

    static final class Step extends ShellBolt implements IRichBolt {
        Step(String... command) {
            super(command);
            changeChildCWD(false);
        }

        @Override
        public void declareOutputFields(OutputFieldsDeclarer declarer) {
            declarer.declare(new Fields("word"));
        }

        @Override
        public Map<String, Object> getComponentConfiguration() {
            return null;
        }
    }

    static StormTopology topology(String python, String module) {
        TopologyBuilder builder = new TopologyBuilder();
        builder.setSpout("lines", new Lines(python, "-m", module, "Lines"), 1);
        builder.setBolt("split", new Step(python, "-m", module, "Split"), 1).shuffleGrouping("lines");
        builder.setBolt("count", new Step(python, "-m", module, "Count"), 1)
                .fieldsGrouping("split", new Fields("word"))
                .allGrouping("lines", END);
        return builder.createTopology();
    }

    static Config settings() {
        String park = "org.apache.storm.policy.WaitStrategyPark";
        Config conf = new Config();
        conf.setNumWorkers(1);
        conf.setNumAckers(1);
        conf.setNumEventLoggers(0);
        conf.setMaxSpoutPending(PENDING);
        conf.put(Config.TOPOLOGY_SHELLBOLT_MAX_PENDING, PENDING);
        // More stalls: a ShellBolt emits in a thread of its own, whose batches are never flushed.
        conf.put(Config.TOPOLOGY_PRODUCER_BATCH_SIZE, 1);
        conf.put(Config.TOPOLOGY_DISABLE_LOADAWARE_MESSAGING, true);
        conf.put(Config.TOPOLOGY_STATS_SAMPLE_RATE, 0.0005);
        conf.put(Config.TOPOLOGY_SPOUT_WAIT_STRATEGY, park);
        conf.put(Config.TOPOLOGY_SPOUT_WAIT_PARK_MICROSEC, PARK_MICROS);
        conf.put(Config.TOPOLOGY_BOLT_WAIT_STRATEGY, park);
        conf.put(Config.TOPOLOGY_BOLT_WAIT_PARK_MICROSEC, PARK_MICROS);
        conf.put(Config.TOPOLOGY_BACKPRESSURE_WAIT_STRATEGY, park);
        conf.put(Config.TOPOLOGY_BACKPRESSURE_WAIT_PARK_MICROSEC, PARK_MICROS);
        return conf;
    }

    public static void main(String[] args) throws Exception {
        Config conf = settings();
        conf.put("words.text", args[2]);
        conf.put("words.out", args[3]);
        conf.put("words.done", args[4]);
        LocalCluster cluster = new LocalCluster();
        cluster.submitTopology("words", conf, topology(args[0], args[1]));
        while (!Files.exists(Path.of(args[4]))) {
            Thread.sleep(20);
        }
        Runtime.getRuntime().halt(0); // the processes of Python end with their pipe
    }
}
