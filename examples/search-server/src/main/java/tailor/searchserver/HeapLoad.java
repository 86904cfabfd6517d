// SPDX-License-Identifier: Apache-2.0
package tailor.searchserver;

import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicReferenceArray;

/**
 * What a search server with caches does to its heap, made adjustable: a live set of small objects, of which every request
 * replaces the oldest part, and garbage that dies with the request. Real collections then happen by allocation alone, as
 * often and as long as these three sizes and the JVM's flags say; see README.md.
 */
final class HeapLoad {
    /** 12 bytes of header, 4 of reference and 24 of payload: 40 bytes, about what a cache's entry of small parts is made of. */
    private static final class Node {
        static final int BYTES = 40;

        final Node next;
        final long a;
        final long b;
        final long c;

        Node(Node next, long seed) {
            this.next = next;
            a = seed;
            b = seed + 1;
            c = seed + 2;
        }
    }

    private static final int GARBAGE_PIECE = 1024;
    /** The live set is replaced in pieces of this size if requests replace none. */
    private static final long DEFAULT_CHUNK = 64 * 1024;

    private final AtomicReferenceArray<Node> chunks;
    private final AtomicLong next = new AtomicLong();
    private final long chunkBytes;
    private final long garbageBytes;
    private final boolean churns;
    /** Read by nobody; keeps the compiler from removing the allocation. */
    private volatile byte[] lastPiece;

    /** Makes the live set of `liveBytes`; each request replaces `tenureBytes` of it and wastes `garbageBytes`. */
    HeapLoad(long liveBytes, long tenureBytes, long garbageBytes) {
        chunkBytes = tenureBytes > 0 ? tenureBytes : DEFAULT_CHUNK;
        churns = tenureBytes > 0 && liveBytes > 0;
        this.garbageBytes = garbageBytes;
        chunks = new AtomicReferenceArray<>((int) ((liveBytes + chunkBytes - 1) / chunkBytes));
        for (int i = 0; i < chunks.length(); i++) {
            chunks.set(i, chunk(i));
        }
    }

    /** Called once a request, on its thread. */
    void request() {
        for (long done = 0; done < garbageBytes; done += GARBAGE_PIECE) {
            lastPiece = new byte[GARBAGE_PIECE - 16];
        }
        if (churns) {
            long sequence = next.getAndIncrement();
            chunks.set((int) (sequence % chunks.length()), chunk(sequence));
        }
    }

    private Node chunk(long seed) {
        Node head = null;
        for (long bytes = 0; bytes < chunkBytes; bytes += Node.BYTES) {
            head = new Node(head, seed + bytes);
        }
        return head;
    }
}
