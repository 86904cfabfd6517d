/* SPDX-License-Identifier: Apache-2.0 */
import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Executors;

/**
 * A server that answers with its name (argument 0) after the milliseconds that the path says (/wait/N), collects (/collect) or counts the
 * requests that it has begun to answer (/count), which is all that it prints its port for.
 */
public class Waiting {
    static final List<byte[]> live = new ArrayList<>();
    static int count;

    static synchronized int counted(int more) {
        return count += more;
    }

    static void answer(HttpExchange exchange, String name) throws IOException {
        String path = exchange.getRequestURI().getPath();
        String body = name;

        exchange.getRequestBody().readAllBytes();
        if (path.startsWith("/wait/")) {
            counted(1);
            try {
                Thread.sleep(Integer.parseInt(path.substring(6)));
            } catch (InterruptedException e) {
                throw new IOException(e);
            }
        } else if (path.equals("/collect")) {
            System.gc();
        } else if (path.equals("/count")) {
            body = Integer.toString(counted(0));
        }
        byte[] bytes = body.getBytes();
        exchange.sendResponseHeaders(200, bytes.length);
        exchange.getResponseBody().write(bytes);
        exchange.close();
    }

    public static void main(String[] arguments) throws IOException {
        HttpServer server = HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 100);

        /* So that a full collection has something to do. */
        for (int i = 0; i < Integer.parseInt(arguments[1]); i++)
            live.add(new byte[100]);
        server.createContext("/", exchange -> answer(exchange, arguments[0]));
        server.setExecutor(Executors.newCachedThreadPool());
        server.start();
        System.out.println(server.getAddress().getPort());
    }
}
