// SPDX-License-Identifier: Apache-2.0
package tailor.searchserver;

import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.Executors;

/**
 * The endpoints behind the JDK's own server. It writes head and body separately; without
 * -Dsun.net.httpserver.nodelay=true the body waits for the acknowledgement of the head, which the other side delays
 * by about 40 ms: a real case of a response buffered by TCP.
 */
final class JdkFront {
    private JdkFront() {}

    /** Starts serving and returns the port. */
    static int start(InetSocketAddress address, int threads, Endpoints endpoints) throws IOException {
        HttpServer server = HttpServer.create(address, 128);
        server.createContext("/", exchange -> {
            try (exchange) {
                answer(exchange, endpoints);
            } catch (RuntimeException e) {
                e.printStackTrace(); // the server itself would swallow it
                throw e;
            }
        });
        server.setExecutor(Executors.newFixedThreadPool(threads));
        server.start();
        return server.getAddress().getPort();
    }

    private static void answer(HttpExchange exchange, Endpoints endpoints) throws IOException {
        // Read to the end in any case: a rest in the stream would cost the connection.
        byte[] body = exchange.getRequestBody().readNBytes(Endpoints.BODY_BYTES_MAX);
        Answer answer = endpoints.answer(
                exchange.getRequestMethod(),
                exchange.getRequestURI().getPath(),
                exchange.getRequestURI().getRawQuery(),
                new String(body, StandardCharsets.UTF_8));
        exchange.getResponseHeaders().set("Content-Type", answer.type());
        exchange.getResponseHeaders().set("X-Server", endpoints.name());
        if (exchange.getRequestMethod().equals("HEAD")) {
            exchange.getResponseHeaders().set("Content-Length", Integer.toString(answer.body().length));
            exchange.sendResponseHeaders(answer.status(), -1);
            return;
        }
        exchange.sendResponseHeaders(answer.status(), answer.body().length == 0 ? -1 : answer.body().length);
        if (answer.body().length > 0) {
            exchange.getResponseBody().write(answer.body());
        }
    }
}
