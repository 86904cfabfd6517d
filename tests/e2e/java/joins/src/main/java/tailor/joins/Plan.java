// SPDX-License-Identifier: Apache-2.0
package tailor.joins;

import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import java.util.concurrent.locks.ReentrantLock;

/**
 * What a request asks to be done, step by step: cN computes for N us, sN sleeps so long, lN computes with the lock that all
 * requests share, h hands the rest to another thread, fN has N small pieces done by whoever is free.
 */
final class Plan {
    private static final ReentrantLock LOCK = new ReentrantLock();
    static final int PIECE_US = 150;

    final Truth truth;
    private final String[] steps;
    private int next;

    Plan(String query, Truth truth) {
        this.truth = truth;
        steps = query == null || !query.startsWith("plan=") ? new String[0] : query.substring(5).split(",");
    }

    /** Does the steps up to one that needs another thread, which is returned: 'h' or 'f'. 0 at the end. */
    char proceed() {
        while (next < steps.length) {
            String step = steps[next++];
            int amount = step.length() > 1 ? Integer.parseInt(step.substring(1)) : 0;
            switch (step.charAt(0)) {
                case 'c' -> compute(amount);
                case 's' -> LockSupport.parkNanos(TimeUnit.MICROSECONDS.toNanos(amount));
                case 'l' -> computeLocked(amount);
                case 'f' -> {
                    pieces = amount;
                    return 'f';
                }
                case 'h' -> {
                    return 'h';
                }
                default -> throw new IllegalArgumentException(step);
            }
        }
        return 0;
    }

    /** How many pieces the last 'f' asked for. */
    int pieces;

    void compute(int us) {
        try (Truth.Work work = truth.work()) {
            spin(us);
        }
    }

    private void computeLocked(int us) {
        LOCK.lock();
        try (Truth.Work work = truth.work()) {
            spin(us);
        } finally {
            LOCK.unlock();
        }
    }

    private static void spin(int us) {
        long end = System.nanoTime() + TimeUnit.MICROSECONDS.toNanos(us);
        while (System.nanoTime() < end) {
            Thread.onSpinWait();
        }
    }

    /** The answer's body. */
    byte[] body() {
        return ("{\"id\":\"" + truth.id + "\"}\n").getBytes(java.nio.charset.StandardCharsets.US_ASCII);
    }
}
