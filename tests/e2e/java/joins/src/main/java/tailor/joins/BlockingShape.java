// SPDX-License-Identifier: Apache-2.0
package tailor.joins;

import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.StandardSocketOptions;
import java.nio.ByteBuffer;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Executor;

/** A thread, of the platform or a virtual one, stays with a connection, blocks, and waits for those that it hands work to. */
final class BlockingShape {
    private BlockingShape() {}

    /** connections runs one thread for each connection, helpers what is handed on. */
    static int start(Executor connections, Executor helpers) throws IOException {
        ServerSocketChannel listener = ServerSocketChannel.open();
        listener.bind(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0));
        Thread acceptor = new Thread(() -> accept(listener, connections, helpers), "acceptor");
        acceptor.start();
        return ((InetSocketAddress) listener.getLocalAddress()).getPort();
    }

    private static void accept(ServerSocketChannel listener, Executor connections, Executor helpers) {
        try {
            for (;;) {
                SocketChannel connection = listener.accept();
                connection.setOption(StandardSocketOptions.TCP_NODELAY, true);
                connections.execute(() -> serve(connection, helpers));
            }
        } catch (IOException e) {
            throw new java.io.UncheckedIOException(e);
        }
    }

    private static void serve(SocketChannel connection, Executor helpers) {
        Message message = new Message();
        try (connection) {
            for (int count; (count = connection.read(message.space())) > 0;) {
                if (!message.add(count)) {
                    continue;
                }
                if (message.path.equals("/truth")) {
                    write(connection, Message.response(Truth.everything().getBytes(StandardCharsets.US_ASCII)));
                    continue;
                }
                Plan plan = new Plan(message.query, new Truth(message.traceparent));
                // To have begun is worth a stretch, too: the first step may be a wait.
                plan.compute(0);
                run(plan, helpers);
                try (Truth.Work work = plan.truth.work()) {
                    write(connection, Message.response(plan.body()));
                }
            }
        } catch (IOException e) {
            // The peer closed.
        }
    }

    private static void run(Plan plan, Executor helpers) {
        switch (plan.proceed()) {
            case 'h' -> CompletableFuture.runAsync(() -> run(plan, helpers), helpers).join();
            case 'f' -> {
                CompletableFuture<?>[] pieces = new CompletableFuture<?>[plan.pieces];
                for (int i = 0; i < pieces.length; i++) {
                    pieces[i] = CompletableFuture.runAsync(() -> plan.compute(Plan.PIECE_US), helpers);
                }
                CompletableFuture.allOf(pieces).join();
                run(plan, helpers);
            }
            default -> { }
        }
    }

    private static void write(SocketChannel connection, ByteBuffer response) throws IOException {
        while (response.hasRemaining()) {
            connection.write(response);
        }
    }
}
