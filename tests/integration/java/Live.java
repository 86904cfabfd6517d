/* SPDX-License-Identifier: Apache-2.0 */
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.management.GarbageCollectorMXBean;
import java.lang.management.ManagementFactory;
import java.lang.management.MemoryPoolMXBean;
import java.lang.management.MemoryType;

/**
 * Keeps ARG0 MiB of small objects alive and does what it is told, a line each: "gc", "churn MILLISECONDS" makes garbage, "heap"
 * prints what the beans say, "keep MIB" keeps more; an empty line ends it. Prints "ok" after each.
 */
public class Live {
    static final class Node {
        final Node next;
        final long[] payload = new long[4];

        Node(Node next) {
            this.next = next;
        }
    }

    static Node live;
    static volatile Object sink;

    static void keep(int mebibytes) {
        // A node and its payload take 72 bytes with compressed pointers, 80 without.
        for (int i = 0; i < mebibytes * (1 << 20) / 72; i++)
            live = new Node(live);
    }

    static void churn(long milliseconds) {
        for (long end = System.nanoTime() + milliseconds * 1_000_000; System.nanoTime() < end;)
            sink = new byte[4096];
    }

    static void printHeap() {
        for (MemoryPoolMXBean pool : ManagementFactory.getMemoryPoolMXBeans())
            if (pool.getType() == MemoryType.HEAP)
                System.out.println("pool|" + pool.getName() + "|" + pool.getUsage().getUsed() + "|" + pool.getUsage().getCommitted() + "|"
                                   + pool.getUsage().getMax());
        for (GarbageCollectorMXBean collector : ManagementFactory.getGarbageCollectorMXBeans())
            System.out.println("collector|" + collector.getName() + "|" + collector.getCollectionCount());
    }

    public static void main(String[] arguments) throws Exception {
        BufferedReader input = new BufferedReader(new InputStreamReader(System.in));

        keep(Integer.parseInt(arguments[0]));
        System.out.println("waiting");
        for (String line = input.readLine(); line != null && !line.isEmpty(); line = input.readLine()) {
            String[] words = line.split(" ");
            switch (words[0]) {
            case "gc": System.gc(); break;
            case "churn": churn(Long.parseLong(words[1])); break;
            case "keep": keep(Integer.parseInt(words[1])); break;
            case "heap": printHeap(); break;
            default: throw new IllegalArgumentException(line);
            }
            System.out.println("ok");
        }
        System.out.println("done");
    }
}
