/* SPDX-License-Identifier: Apache-2.0 */
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.locks.ReentrantLock;

/**
 * It waits for a line of input; then, with ARG0 "run": virtual threads that sleep, yield, and wait for locks and monitors, and note each time which kernel thread they run on: what
 * the mounts must say. With ARG0 "time": what a mount and an unmount cost together.
 */
public class VirtualThreads {
    static final int THREADS = 50, ROUNDS = 20;
    static final Queue<String> seen = new ConcurrentLinkedQueue<>();
    static final Object monitor = new Object();
    static final ReentrantLock lock = new ReentrantLock();

    /** /proc/thread-self is a link to "PID/task/TID" of the kernel thread that reads it. */
    static void note() {
        try {
            long before = System.nanoTime();
            Path self = Files.readSymbolicLink(Path.of("/proc/thread-self"));
            seen.add("ran " + before + " " + System.nanoTime() + " " + Thread.currentThread().threadId() + " " + self.getFileName());
        } catch (java.io.IOException e) {
            throw new java.io.UncheckedIOException(e);
        }
    }

    static void pause(int round) throws InterruptedException {
        switch (round % 4) {
            case 0 -> Thread.sleep(1);
            case 1 -> Thread.yield();
            case 2 -> {
                synchronized (monitor) {
                    note();
                    Thread.sleep(0, 100_000);
                    note();
                }
            }
            default -> {
                lock.lock();
                try {
                    Thread.yield();
                } finally {
                    lock.unlock();
                }
            }
        }
    }

    static void work(int number) {
        try {
            for (int i = 0; i < ROUNDS; i++) {
                note();
                pause(number + i);
                note();
            }
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }

    static void run() throws InterruptedException {
        /* Loading a class may make a virtual thread wait, and go on elsewhere, in the midst of a note. */
        note();
        seen.clear();
        List<Thread> threads = new ArrayList<>();
        for (int i = 0; i < THREADS; i++) {
            int number = i;
            threads.add(Thread.ofVirtual().name("virtual " + i).start(() -> work(number)));
        }
        for (Thread thread : threads)
            thread.join();
        seen.forEach(System.out::println);
    }

    static void takeTurns(int times) {
        for (int i = 0; i < times; i++)
            Thread.yield();
    }

    static void time() throws InterruptedException {
        for (int round = 0; round < 5; round++) {
            long start = System.nanoTime();
            Thread one = Thread.startVirtualThread(() -> takeTurns(100_000)), other = Thread.startVirtualThread(() -> takeTurns(100_000));
            one.join();
            other.join();
            System.out.println("nanoseconds " + (System.nanoTime() - start) / 200_000);
        }
    }

    public static void main(String[] arguments) throws Exception {
        System.out.println("waiting");
        System.in.read();
        if (arguments[0].equals("time"))
            time();
        else
            run();
        System.out.println("done");
    }
}
