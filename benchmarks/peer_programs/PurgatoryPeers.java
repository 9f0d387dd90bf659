import java.lang.management.ManagementFactory;
import java.util.List;
import org.apache.kafka.server.purgatory.DelayedOperation;
import org.apache.kafka.server.purgatory.DelayedOperationKey;
import org.apache.kafka.server.purgatory.DelayedOperationPurgatory;

/**
 * Kafka's DelayedOperationPurgatory doing what purgatory.py does: "PurgatoryPeers pending operations keys runs" prints
 * one line of nanoseconds per operation for each run, and one of bytes per pending operation.
 */
public final class PurgatoryPeers {
    static final class Operation extends DelayedOperation {
        Operation() {
            super(60_000);
        }

        @Override
        public void onExpiration() {}

        @Override
        public void onComplete() {}

        @Override
        public boolean tryComplete() {
            return false;
        }
    }

    record Key(int number) implements DelayedOperationKey {
        @Override
        public String keyLabel() {
            return Integer.toString(number);
        }
    }

    static long used() {
        for (int i = 0; i < 3; i++) System.gc();
        return ManagementFactory.getMemoryMXBean().getHeapMemoryUsage().getUsed();
    }

    static Operation watched(DelayedOperationPurgatory<Operation> purgatory, List<List<Key>> keys, int number) {
        Operation operation = new Operation();
        purgatory.tryCompleteElseWatch(operation, keys.get(number % keys.size()));
        return operation;
    }

    public static void main(String[] arguments) throws Exception {
        int pending = Integer.parseInt(arguments[0]);
        int operations = Integer.parseInt(arguments[1]);
        int keyCount = Integer.parseInt(arguments[2]);
        int runs = Integer.parseInt(arguments[3]);
        List<List<Key>> keys = new java.util.ArrayList<>();
        for (int i = 0; i < keyCount; i++) keys.add(List.of(new Key(i), new Key((i + 1) % keyCount)));
        Operation[] held = new Operation[pending];
        long before = used();
        var purgatory = new DelayedOperationPurgatory<Operation>("benchmark", 0);
        for (int i = 0; i < pending; i++) held[i] = watched(purgatory, keys, i);
        long bytes = used() - before;
        for (int run = 0; run < runs + 1; run++) {
            long began = System.nanoTime();
            for (int i = 0; i < operations; i++) {
                int place = (int) ((i * 2654435761L) % pending);
                held[place].forceComplete();
                held[place] = watched(purgatory, keys, i);
            }
            long nanos = System.nanoTime() - began;
            if (run > 0) System.out.println((double) nanos / operations); // the first one warms up
        }
        System.out.println((double) bytes / pending);
        purgatory.shutdown();
    }
}
