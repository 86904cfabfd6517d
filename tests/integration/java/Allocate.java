/* SPDX-License-Identifier: Apache-2.0 */
import java.io.File;
import java.util.ArrayList;
import java.util.List;

/**
 * Allocates for ARG0 milliseconds with some memory live, collects once on request, starts a named thread, loads a class by name
 * and a lambda late, starts a process, and says how many descriptors it had at first and at last.
 */
public class Allocate {
    static final List<byte[]> live = new ArrayList<>();
    static volatile Object sink;

    public static class Late {
        public static class Nested extends Late {
        }
    }

    static int descriptors() {
        String[] open = new File("/proc/self/fd").list();
        return open == null ? -1 : open.length;
    }

    static void allocate(long untilNs) {
        for (int i = 0; System.nanoTime() < untilNs; i++) {
            byte[] block = new byte[4096];
            sink = block;
            if (i % 6 == 0)
                live.add(block);
            if (live.size() > 3000)
                live.subList(0, 1500).clear();
        }
    }

    public static void main(String[] arguments) throws Exception {
        long end = System.nanoTime() + Long.parseLong(arguments[0]) * 1_000_000;
        int before = descriptors();
        Thread worker = new Thread(() -> {
            try {
                Class.forName("Allocate$Late$Nested").getDeclaredConstructor().newInstance();
            } catch (ReflectiveOperationException e) {
                throw new IllegalStateException(e);
            }
        }, "search worker with a long name");

        worker.start();
        worker.join();
        Process child = new ProcessBuilder("ls", "-l", "/proc/self/fd").start();
        String inherited = new String(child.getInputStream().readAllBytes());
        child.waitFor();
        long now = System.nanoTime();
        allocate(now + (end - now) / 2);
        System.gc();
        allocate(end);
        System.out.println("inherited " + (inherited.contains("tailor") || inherited.contains("eventfd") ? "yes" : "no"));
        System.out.println("descriptors " + before + " " + descriptors());
        System.out.println("done");
    }
}
