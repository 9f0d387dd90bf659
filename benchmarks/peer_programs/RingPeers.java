import com.lmax.disruptor.BatchEventProcessor;
import com.lmax.disruptor.BatchEventProcessorBuilder;
import com.lmax.disruptor.BusySpinWaitStrategy;
import com.lmax.disruptor.EventHandler;
import com.lmax.disruptor.RingBuffer;
import com.lmax.disruptor.Sequence;
import com.lmax.disruptor.WaitStrategy;
import com.lmax.disruptor.YieldingWaitStrategy;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.Arrays;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.SynchronousQueue;
import org.jctools.queues.MessagePassingQueue;
import org.jctools.queues.MpscArrayQueue;
import org.jctools.queues.SpscArrayQueue;

/**
 * The queues of JCTools and the ring of the Disruptor, doing what rings.c does: reads lines "case milliseconds",
 * answers "items seconds" or, for round trips, "p50 p99" in nanoseconds. Its threads are called t0 to t3, so that who
 * started it can pin them. A thread that finds nothing spins a hundred times, then yields, as in rings.c.
 */
public final class RingPeers {
    static final int CAPACITY = 1024;
    static final int BATCH = 100;
    static final int CHECK_EVERY = 64;
    static final int PATIENCE = 100;
    static final Object ITEM = new Object();

    static volatile boolean stop;
    static volatile long taken;
    static volatile double seconds;
    static volatile long sink;

    /** Who finds nothing to do. */
    static int idle(int turns) {
        if (turns < PATIENCE) {
            Thread.onSpinWait();
            return turns + 1;
        }
        Thread.yield();
        return turns;
    }

    static void offers(MessagePassingQueue<Object> queue) {
        while (!stop) {
            for (int i = 0; i < CHECK_EVERY; i++) {
                int turns = 0;
                while (!queue.offer(ITEM)) {
                    if (stop) {
                        return;
                    }
                    turns = idle(turns);
                }
            }
        }
    }

    static void polls(MessagePassingQueue<Object> queue) {
        long count = 0;
        int turns = 0;
        long from = System.nanoTime();
        while (!stop) {
            for (int i = 0; i < CHECK_EVERY; i++) {
                if (queue.relaxedPoll() == null) {
                    turns = idle(turns);
                } else {
                    turns = 0;
                    count++;
                }
            }
        }
        seconds = (System.nanoTime() - from) * 1e-9;
        taken = count;
    }

    static void fills(MessagePassingQueue<Object> queue) {
        int turns = 0;
        while (!stop) {
            turns = queue.fill(() -> ITEM, BATCH) > 0 ? 0 : idle(turns);
        }
    }

    static final class Adding implements MessagePassingQueue.Consumer<Object> {
        long sum;

        @Override
        public void accept(Object item) {
            sum += item == ITEM ? 1 : 0;
        }
    }

    static void drains(MessagePassingQueue<Object> queue) {
        Adding adding = new Adding();
        long count = 0;
        int turns = 0;
        long from = System.nanoTime();
        while (!stop) {
            int got = queue.drain(adding, BATCH);
            count += got;
            turns = got > 0 ? 0 : idle(turns);
        }
        seconds = (System.nanoTime() - from) * 1e-9;
        taken = count;
        sink = adding.sum;
    }

    static final class Cell {
        long value;
    }

    static final class Reading implements EventHandler<Cell> {
        long sum;
        long count;

        @Override
        public void onEvent(Cell cell, long sequence, boolean endOfBatch) {
            sum += cell.value;
            count++;
        }
    }

    static RingBuffer<Cell> ring(boolean several, WaitStrategy wait) {
        return several
            ? RingBuffer.createMultiProducer(Cell::new, CAPACITY, wait)
            : RingBuffer.createSingleProducer(Cell::new, CAPACITY, wait);
    }

    static void publishes(RingBuffer<Cell> ring, int batch) {
        long n = 0;
        while (!stop) {
            long last = ring.next(batch);
            for (long sequence = last - batch + 1; sequence <= last; sequence++) {
                ring.get(sequence).value = n++;
            }
            ring.publish(last - batch + 1, last);
        }
    }

    /** Readers behind each other (pipeline) or beside each other; the last one counts. */
    static void disruptor(int writers, int batch, int readers, boolean pipeline, int millis) throws Exception {
        RingBuffer<Cell> ring = ring(writers > 1, new YieldingWaitStrategy());
        BatchEventProcessor<?>[] processors = new BatchEventProcessor<?>[readers];
        Reading[] reading = new Reading[readers];
        for (int i = 0; i < readers; i++) {
            Sequence[] upstream = pipeline && i > 0
                ? new Sequence[] {processors[i - 1].getSequence()}
                : new Sequence[0];
            reading[i] = new Reading();
            processors[i] = new BatchEventProcessorBuilder().build(ring, ring.newBarrier(upstream), reading[i]);
        }
        if (pipeline) {
            ring.addGatingSequences(processors[readers - 1].getSequence());
        } else {
            for (BatchEventProcessor<?> processor : processors) {
                ring.addGatingSequences(processor.getSequence());
            }
        }
        Runnable[] bodies = new Runnable[4];
        bodies[0] = () -> publishes(ring, batch);
        for (int i = 0; i < readers; i++) {
            bodies[i + 1] = processors[i];
        }
        if (writers > 1) {
            bodies[2] = () -> publishes(ring, batch);
        }
        long from = System.nanoTime();
        CountDownLatch done = start(bodies);
        Thread.sleep(millis);
        long count = reading[readers - 1].count;
        seconds = (System.nanoTime() - from) * 1e-9;
        taken = count;
        stop = true;
        for (BatchEventProcessor<?> processor : processors) {
            processor.halt();
            ring.removeGatingSequence(processor.getSequence()); // a writer that waits for it is let go
        }
        done.await();
    }

    static final int LONGEST = 100_000;
    static final int[] TRIPS = new int[LONGEST];

    static void trip(long took) {
        TRIPS[(int) Math.min(took, LONGEST - 1)]++;
    }

    static void calls(SpscArrayQueue<Object> there, SpscArrayQueue<Object> back) {
        while (!stop) {
            long from = System.nanoTime();
            while (!there.offer(ITEM)) {
                Thread.onSpinWait();
            }
            while (back.relaxedPoll() == null) {
                if (stop) {
                    return;
                }
            }
            trip(System.nanoTime() - from);
        }
    }

    static void answers(SpscArrayQueue<Object> there, SpscArrayQueue<Object> back) {
        while (!stop) {
            Object item = there.relaxedPoll();
            if (item != null) {
                back.offer(item);
            }
        }
    }

    static void disruptorTrips(int millis) throws Exception {
        RingBuffer<Cell> there = ring(false, new BusySpinWaitStrategy());
        RingBuffer<Cell> back = ring(false, new BusySpinWaitStrategy());
        Sequence heard = new Sequence(-1);
        back.addGatingSequences(heard);
        BatchEventProcessor<Cell> answering = new BatchEventProcessorBuilder().build(there, there.newBarrier(),
            (cell, sequence, endOfBatch) -> {
                long slot = back.next();
                back.get(slot).value = cell.value;
                back.publish(slot);
            });
        there.addGatingSequences(answering.getSequence());
        CountDownLatch done = start(() -> {
            for (long n = 0; !stop; n++) {
                long from = System.nanoTime();
                long slot = there.next();
                there.get(slot).value = n;
                there.publish(slot);
                while (back.getCursor() < n) {
                    if (stop) {
                        return;
                    }
                    Thread.onSpinWait();
                }
                heard.set(n);
                trip(System.nanoTime() - from);
            }
        }, answering);
        Thread.sleep(millis);
        stop = true;
        answering.halt();
        done.await();
    }

    static void queue(MessagePassingQueue<Object> queue, boolean several, boolean batch, int millis) throws Exception {
        Runnable producer = batch ? () -> fills(queue) : () -> offers(queue);
        Runnable consumer = batch ? () -> drains(queue) : () -> polls(queue);
        CountDownLatch done = several ? start(producer, consumer, producer) : start(producer, consumer);
        Thread.sleep(millis);
        stop = true;
        done.await();
    }

    @SuppressWarnings({"unchecked", "rawtypes"})
    static final SynchronousQueue<Runnable>[] TURNS = new SynchronousQueue[4];

    /** Hands a body to each of the threads. */
    static CountDownLatch start(Runnable... bodies) throws InterruptedException {
        int count = (int) Arrays.stream(bodies).filter(body -> body != null).count();
        CountDownLatch done = new CountDownLatch(count);
        stop = false;
        for (int i = 0; i < count; i++) {
            Runnable body = bodies[i];
            TURNS[i].put(() -> {
                body.run();
                done.countDown();
            });
        }
        return done;
    }

    static String run(String name, int millis) throws Exception {
        Arrays.fill(TRIPS, 0);
        switch (name) {
            case "jctools-spsc" -> queue(new SpscArrayQueue<>(CAPACITY), false, false, millis);
            case "jctools-spsc-batch" -> queue(new SpscArrayQueue<>(CAPACITY), false, true, millis);
            case "jctools-mpsc" -> queue(new MpscArrayQueue<>(CAPACITY), true, false, millis);
            case "jctools-mpsc-batch" -> queue(new MpscArrayQueue<>(CAPACITY), true, true, millis);
            case "disruptor-spsc" -> disruptor(1, 1, 1, false, millis);
            case "disruptor-spsc-batch" -> disruptor(1, BATCH, 1, false, millis);
            case "disruptor-mpsc" -> disruptor(2, 1, 1, false, millis);
            case "disruptor-mpsc-batch" -> disruptor(2, BATCH, 1, false, millis);
            case "disruptor-broadcast" -> disruptor(1, 1, 3, false, millis);
            case "disruptor-pipeline" -> disruptor(1, 1, 2, true, millis);
            case "jctools-round-trip" -> {
                SpscArrayQueue<Object> there = new SpscArrayQueue<>(CAPACITY);
                SpscArrayQueue<Object> back = new SpscArrayQueue<>(CAPACITY);
                CountDownLatch done = start(() -> calls(there, back), () -> answers(there, back));
                Thread.sleep(millis);
                stop = true;
                done.await();
            }
            case "disruptor-round-trip" -> disruptorTrips(millis);
            default -> throw new IllegalArgumentException(name);
        }
        return name.endsWith("round-trip") ? at(0.5) + " " + at(0.99) : taken + " " + seconds;
    }

    static int at(double share) {
        long all = Arrays.stream(TRIPS).asLongStream().sum();
        long seen = 0;
        for (int i = 0; i < LONGEST; i++) {
            seen += TRIPS[i];
            if (seen >= share * all) {
                return i;
            }
        }
        return LONGEST;
    }

    public static void main(String[] arguments) throws Exception {
        for (int i = 0; i < TURNS.length; i++) {
            SynchronousQueue<Runnable> turns = new SynchronousQueue<>();
            TURNS[i] = turns;
            Thread thread = new Thread(() -> {
                try {
                    while (true) {
                        turns.take().run();
                    }
                } catch (InterruptedException ended) {
                    return;
                }
            }, "t" + i);
            thread.setDaemon(true);
            thread.start();
        }
        System.out.println("ready");
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String[] words = line.split(" ");
            System.out.println(run(words[0], Integer.parseInt(words[1])));
        }
    }
}
