import io.netty.util.HashedWheelTimer;
import io.netty.util.Timeout;
import io.netty.util.TimerTask;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.management.ManagementFactory;
import java.util.Arrays;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import org.apache.kafka.server.util.timer.SystemTimer;

/**
 * Kafka's SystemTimer and netty's HashedWheelTimer, doing what wheels.c does: reads lines "case number", answers the
 * same numbers. Cases "kafka-…" and "netty-…".
 *
 * Kafka's timer is advanced by a thread of its own, as the broker's reaper does; expired tasks run in the timer's
 * executor. netty's has a thread of its own. Both are made new for each case. Each request is a new task with 100
 * bytes, as of the blog; what is due or completed is forgotten, so that it may be collected.
 */
public final class WheelPeers {
    static final long MILLI = 1_000_000;
    static final long SECOND = 1_000_000_000;
    static final long TIME_OUT_MILLIS = 200;

    static long seed;

    static long random() {
        seed ^= seed >>> 12;
        seed ^= seed << 25;
        seed ^= seed >>> 27;
        return seed * 2685821657736338717L;
    }

    static long below(long bound) {
        return ((random() >>> 32) * bound) >>> 32;
    }

    static double uniform() {
        return ((random() >>> 11) + 0.5) / 9007199254740992.0;
    }

    /** Counts of durations in 64 steps per power of two; one thread at a time writes. */
    static final class Histogram {
        final long[] slots = new long[64 * 64];
        long smallest = Long.MAX_VALUE;

        void record(long nanos, long count) {
            smallest = Math.min(smallest, nanos);
            long shown = Math.max(nanos, 64);
            int shift = 63 - Long.numberOfLeadingZeros(shown) - 6;
            slots[shift * 64 + (int) (shown >>> shift)] += count;
        }

        /** Milliseconds. */
        double quantile(double share) {
            long rank = (long) Math.ceil(share * Arrays.stream(slots).sum());
            for (int slot = 0; slot < slots.length; slot++) {
                rank -= slots[slot];
                if (rank <= 0) {
                    int shift = slot < 128 ? 0 : slot / 64 - 1;
                    return ((double) (slot - shift * 64L) * (1L << shift)) / MILLI;
                }
            }
            return 0;
        }
    }

    /** What both timers can do. */
    interface Wheel {
        Object insert(long delayMillis, Expiring task);

        void cancel(Object handle);

        void close() throws Exception;
    }

    /** Something with a time-out; who made it says what happens. */
    interface Expiring {
        void expired();
    }

    static final class KafkaTask extends org.apache.kafka.server.util.timer.TimerTask {
        final Expiring task;

        KafkaTask(long delayMillis, Expiring task) {
            super(delayMillis);
            this.task = task;
        }

        @Override
        public void run() {
            task.expired();
        }
    }

    static final class Kafka implements Wheel {
        final SystemTimer timer = new SystemTimer("peer");
        volatile boolean closed;
        final Thread reaper = new Thread(this::reap, "reaper");

        Kafka() {
            reaper.start();
        }

        void reap() {
            try {
                while (!closed) {
                    timer.advanceClock(200);
                }
            } catch (InterruptedException end) {
                Thread.currentThread().interrupt();
            }
        }

        public Object insert(long delayMillis, Expiring task) {
            KafkaTask made = new KafkaTask(delayMillis, task);
            timer.add(made);
            return made;
        }

        public void cancel(Object handle) {
            ((KafkaTask) handle).cancel();
        }

        public void close() throws Exception {
            closed = true;
            reaper.join();
            timer.close();
        }
    }

    static final class NettyTask implements TimerTask {
        final Expiring task;

        NettyTask(Expiring task) {
            this.task = task;
        }

        @Override
        public void run(Timeout timeout) {
            task.expired();
        }
    }

    static final class Netty implements Wheel {
        final HashedWheelTimer timer = new HashedWheelTimer(1, TimeUnit.MILLISECONDS, 512);

        public Object insert(long delayMillis, Expiring task) {
            return timer.newTimeout(new NettyTask(task), delayMillis, TimeUnit.MILLISECONDS);
        }

        public void cancel(Object handle) {
            ((Timeout) handle).cancel();
        }

        public void close() {
            timer.stop();
        }
    }

    static final Expiring NOTHING = () -> {};

    static String pairs(Wheel wheel, int count, long millis) {
        seed = 88172645463325252L;
        Object[] handles = new Object[count];
        for (int i = 0; i < count; i++) {
            handles[i] = wheel.insert(60000 + below(60000), NOTHING);
        }
        long done = 0;
        long began = System.nanoTime();
        long now = began;
        while (now - began < millis * MILLI) {
            for (int i = 0; i < 1000; i++) {
                int at = (int) below(count);
                wheel.cancel(handles[at]);
                handles[at] = wheel.insert(60000 + below(60000), NOTHING);
            }
            done += 1000;
            now = System.nanoTime();
        }
        return done + " " + (now - began) * 1e-9;
    }

    static final class Request implements Expiring {
        final byte[] payload = new byte[100];
        final long due;
        final Histogram lateness;
        Object handle;

        Request(long due, Histogram lateness) {
            this.due = due;
            this.lateness = lateness;
        }

        @Override
        public void expired() {
            lateness.record(System.nanoTime() - due, 1);
        }
    }

    static final int BY_TIME_LIMIT = 256;

    /** Sorted times of events, and beside them the number of the request, negative (-1 - number) where it completes. */
    static long[] times;
    static int[] numbers;

    static void makeEvents(int rate, int requests, double median, double upper) {
        seed = 2463534242L;
        double when = 0;
        double sigma = Math.log(upper / median) / 0.6744897501960817;
        long[] comes = new long[requests];
        long[] completes = new long[requests];
        int many = 0;
        for (int i = 0; i < requests; i++) {
            when += -Math.log(uniform()) * 1e9 / rate;
            double normal = Math.sqrt(-2 * Math.log(uniform())) * Math.cos(6.283185307179586 * uniform());
            double takes = median * Math.exp(sigma * normal) * 1e6;
            comes[i] = (long) when;
            if (takes < TIME_OUT_MILLIS * MILLI) {
                // The place of the request in the low bits: sorted as numbers, then looked up.
                completes[many++] = ((long) (when + takes) << 27) | i;
            }
        }
        Arrays.sort(completes, 0, many);
        times = new long[requests + many];
        numbers = new int[requests + many];
        for (int i = 0, j = 0, n = 0; n < times.length; n++) {
            if (j == many || i < requests && comes[i] <= completes[j] >>> 27) {
                times[n] = comes[i];
                numbers[n] = i++;
            } else {
                times[n] = completes[j] >>> 27;
                numbers[n] = -1 - (int) (completes[j++] & ((1 << 27) - 1));
            }
        }
    }

    static String blog(Wheel wheel, int rate, double median, double upper) throws Exception {
        makeEvents(rate, Math.min(rate * 2, 12_000_000), median, upper);
        Histogram slip = new Histogram();
        Histogram lateness = new Histogram();
        int places = wheel == null ? 1 : Integer.highestOneBit(Math.max(rate, 2));
        Request[] ring = new Request[places];
        long checked = 0;
        System.gc();
        long began = System.nanoTime() + 10 * MILLI;
        if (wheel == null) {
            began -= times[times.length - 1] + 10 * MILLI;
        }
        long now = began;
        long started = System.nanoTime();
        for (int i = 0; i < times.length; ) {
            now = System.nanoTime();
            if (times[i] > now - began) {
                Thread.onSpinWait();
                continue;
            }
            int first = i;
            int last = Math.min(i + BY_TIME_LIMIT, times.length);
            for (; i < last && times[i] <= now - began; i++) {
                int number = numbers[i];
                if (wheel == null) {
                    checked += number;
                } else if (number < 0) {
                    int at = (-1 - number) & (places - 1);
                    if (ring[at] != null) {
                        wheel.cancel(ring[at].handle);
                        ring[at] = null;
                    }
                } else {
                    Request request = new Request(now + TIME_OUT_MILLIS * MILLI, lateness);
                    request.handle = wheel.insert(TIME_OUT_MILLIS, request);
                    ring[number & (places - 1)] = request;
                }
            }
            slip.record(now - began - times[first], i - first);
        }
        if (wheel == null) {
            return 2e9 * rate / (System.nanoTime() - started) + " " + (checked & 1);
        }
        double achieved = times[times.length - 1] / (double) (now - began);
        Thread.sleep(500); // the last ones expire
        return achieved + " " + slip.quantile(0.99) + " " + lateness.quantile(0.99) + " "
                + (lateness.smallest < 0 ? 1 : 0);
    }

    static double processorSeconds() {
        return ((com.sun.management.OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean())
                        .getProcessCpuTime()
                * 1e-9;
    }

    static String spread(Wheel wheel, int count) throws Exception {
        Histogram lateness = new Histogram();
        seed = 88172645463325252L;
        long began = System.nanoTime();
        double used = processorSeconds();
        for (int i = 0; i < count; i++) {
            long due = began + SECOND + below(SECOND);
            // Both take milliseconds; rounded up, they should not be early.
            wheel.insert((due - System.nanoTime() + MILLI - 1) / MILLI, new Request(due, lateness));
        }
        while (System.nanoTime() - began < 3 * SECOND) {
            LockSupport.parkNanos(10 * MILLI);
        }
        return lateness.quantile(0.99) + " " + lateness.smallest / (double) MILLI + " " + (processorSeconds() - used);
    }

    static String answer(String name, int number) throws Exception {
        String[] words = name.split("-");
        if (words[0].equals("empty")) {
            return words[1].equals("low") ? blog(null, number, 20, 60) : blog(null, number, 200, 400);
        }
        Wheel wheel = words[0].equals("kafka") ? new Kafka() : new Netty();
        try {
            switch (words[1]) {
                case "pairs":
                    return pairs(wheel, Integer.parseInt(words[2]), number);
                case "low":
                    return blog(wheel, number, 20, 60);
                case "high":
                    return blog(wheel, number, 200, 400);
                default:
                    return spread(wheel, number);
            }
        } finally {
            wheel.close();
        }
    }

    public static void main(String[] arguments) throws Exception {
        BufferedReader asked = new BufferedReader(new InputStreamReader(System.in));
        System.out.println("ready");
        for (String line = asked.readLine(); line != null; line = asked.readLine()) {
            String[] words = line.split(" ");
            System.out.println(answer(words[0], Integer.parseInt(words[1])));
            System.gc();
        }
    }
}
