// SPDX-License-Identifier: Apache-2.0
package tailor.joins;

import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.StandardSocketOptions;
import java.nio.ByteBuffer;
import java.nio.channels.SelectionKey;
import java.nio.channels.Selector;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ForkJoinPool;
import java.util.concurrent.ForkJoinTask;

/** A selector reads; a work-stealing pool does the rest, the writing included, in pieces that its threads steal from each other. */
final class ForkJoinShape {
    private final ForkJoinPool pool = new ForkJoinPool(4);

    int start() throws IOException {
        ServerSocketChannel listener = ServerSocketChannel.open();
        listener.bind(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0));
        listener.configureBlocking(false);
        Selector selector = Selector.open();
        listener.register(selector, SelectionKey.OP_ACCEPT);
        new Thread(() -> select(selector, listener), "selector").start();
        return ((InetSocketAddress) listener.getLocalAddress()).getPort();
    }

    private void select(Selector selector, ServerSocketChannel listener) {
        try {
            for (;;) {
                selector.select();
                for (SelectionKey key : selector.selectedKeys()) {
                    if (key.isAcceptable()) {
                        SocketChannel connection = listener.accept();
                        connection.configureBlocking(false);
                        connection.setOption(StandardSocketOptions.TCP_NODELAY, true);
                        connection.register(selector, SelectionKey.OP_READ, new Message());
                    } else {
                        read(key);
                    }
                }
                selector.selectedKeys().clear();
            }
        } catch (IOException e) {
            throw new java.io.UncheckedIOException(e);
        }
    }

    private void read(SelectionKey key) {
        SocketChannel connection = (SocketChannel) key.channel();
        Message message = (Message) key.attachment();
        try {
            int count = connection.read(message.space());
            if (count < 0) {
                connection.close();
            } else if (message.add(count)) {
                if (message.path.equals("/truth")) {
                    write(connection, Message.response(Truth.everything().getBytes(StandardCharsets.US_ASCII)));
                    return;
                }
                Plan plan = new Plan(message.query, new Truth(message.traceparent));
                try (Truth.Work work = plan.truth.work()) {
                    pool.execute(() -> serve(connection, plan));
                }
            }
        } catch (IOException e) {
            key.cancel();
        }
    }

    private static void serve(SocketChannel connection, Plan plan) {
        run(plan);
        try (Truth.Work work = plan.truth.work()) {
            write(connection, Message.response(plan.body()));
        } catch (IOException e) {
            // The peer closed.
        }
    }

    private static void run(Plan plan) {
        switch (plan.proceed()) {
            case 'h' -> ForkJoinTask.adapt(() -> run(plan)).fork().join();
            case 'f' -> {
                List<ForkJoinTask<?>> pieces = new ArrayList<>();
                for (int i = 0; i < plan.pieces; i++) {
                    pieces.add(ForkJoinTask.adapt(() -> plan.compute(Plan.PIECE_US)));
                }
                ForkJoinTask.invokeAll(pieces);
                run(plan);
            }
            default -> { }
        }
    }

    private static void write(SocketChannel connection, ByteBuffer response) throws IOException {
        while (response.hasRemaining()) {
            if (connection.write(response) == 0) {
                Thread.onSpinWait();
            }
        }
    }
}
