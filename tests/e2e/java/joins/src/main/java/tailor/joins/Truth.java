// SPDX-License-Identifier: Apache-2.0
package tailor.joins;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;

/** Which kernel thread worked for one request when, told by the code that did the work. */
final class Truth {
    private static final Path SELF = Path.of("/proc/thread-self");
    private static final ThreadLocal<Integer> TID = new ThreadLocal<>();
    private static final Queue<Truth> ALL = new ConcurrentLinkedQueue<>();

    final String id;
    private final long number;
    private final StringBuilder stretches = new StringBuilder();

    /** A request is known by the parent id of its traceparent: the proxy's number, where the client sent none. */
    Truth(String traceparent) {
        id = traceparent != null && traceparent.length() == 55 ? traceparent.substring(36, 52) : "0";
        number = Long.parseUnsignedLong(id, 16);
        ALL.add(this);
    }

    /** A stretch of time in which the calling thread, not blocked on anybody, works for this request. */
    final class Work implements AutoCloseable {
        private final int tid = tid();
        private final long startNs = System.nanoTime();

        private Work() {
            Application.begin(number);
        }

        @Override
        public void close() {
            Application.end(number);
            add(tid, startNs, System.nanoTime());
        }
    }

    Work work() {
        return new Work();
    }

    private synchronized void add(int tid, long startNs, long endNs) {
        stretches.append(' ').append(tid).append(':').append(startNs).append(':').append(endNs);
    }

    private synchronized String line() {
        return id + stretches + "\n";
    }

    /** One line a request: its id, then TID:START_NS:END_NS for each stretch. */
    static String everything() {
        StringBuilder text = new StringBuilder();
        for (Truth truth : ALL) {
            text.append(truth.line());
        }
        return text.toString();
    }

    /** The kernel's id of the running thread; that of the carrier in a virtual thread, where it must be asked for each time. */
    private static int tid() {
        if (Virtual.is(Thread.currentThread())) {
            return read();
        }
        Integer tid = TID.get();
        if (tid == null) {
            tid = read();
            TID.set(tid);
        }
        return tid;
    }

    private static int read() {
        try {
            return Integer.parseInt(Files.readSymbolicLink(SELF).getFileName().toString());
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }
}
