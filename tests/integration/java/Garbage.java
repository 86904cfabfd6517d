/* SPDX-License-Identifier: Apache-2.0 */
import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.util.concurrent.Executors;

/**
 * A server whose requests leave garbage: Garbage NAME KIB KEPT_MIB BACKGROUND_KIB. Each request makes KIB, of which a quarter is kept until
 * KEPT_MIB are: that is what a young collection has to copy. Each millisecond without a request makes BACKGROUND_KIB. It answers with its
 * name, and prints its port.
 */
public class Garbage {
    static final int PIECE = 1024;
    static byte[][] kept;
    static int next;

    static synchronized void keep(byte[] piece) {
        kept[next] = piece;
        next = (next + 1) % kept.length;
    }

    static long make(int kib) {
        long sum = 0;

        for (int i = 0; i < kib; i++) {
            byte[] piece = new byte[PIECE - 16];

            piece[i % piece.length] = 1;
            sum += piece[0];
            if (i % 4 == 0) {
                keep(piece);
            }
        }
        return sum;
    }

    static void answer(HttpExchange exchange, String name, int kib) throws IOException {
        byte[] bytes = name.getBytes();

        exchange.getRequestBody().readAllBytes();
        make(kib);
        exchange.sendResponseHeaders(200, bytes.length);
        exchange.getResponseBody().write(bytes);
        exchange.close();
    }

    public static void main(String[] arguments) throws Exception {
        HttpServer server = HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 100);
        int kib = Integer.parseInt(arguments[1]), background = Integer.parseInt(arguments[3]);

        kept = new byte[Integer.parseInt(arguments[2]) * 1024][];
        for (int i = 0; i < kept.length; i++) {
            kept[i] = new byte[PIECE - 16];
        }
        server.createContext("/", exchange -> answer(exchange, arguments[0], kib));
        server.setExecutor(Executors.newFixedThreadPool(8));
        server.start();
        System.out.println(server.getAddress().getPort());
        while (background > 0) {
            Thread.sleep(1);
            make(background);
        }
    }
}
