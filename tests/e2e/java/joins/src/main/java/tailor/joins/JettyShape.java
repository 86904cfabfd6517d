// SPDX-License-Identifier: Apache-2.0
package tailor.joins;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.Executor;
import java.util.concurrent.atomic.AtomicInteger;
import org.eclipse.jetty.http.HttpHeader;
import org.eclipse.jetty.server.Handler;
import org.eclipse.jetty.server.Request;
import org.eclipse.jetty.server.Response;
import org.eclipse.jetty.server.Server;
import org.eclipse.jetty.server.ServerConnector;
import org.eclipse.jetty.util.Callback;
import org.eclipse.jetty.util.thread.QueuedThreadPool;

/** Jetty: a selector wakes a thread of its pool, which reads and serves; what is handed on is also answered by who got it. */
final class JettyShape {
    private JettyShape() {}

    static int start(Executor helpers) throws Exception {
        Server server = new Server(new QueuedThreadPool(10, 10));
        ServerConnector connector = new ServerConnector(server, 1, 1);
        connector.setHost("127.0.0.1");
        server.addConnector(connector);
        server.setHandler(new Handler.Abstract() {
            @Override
            public boolean handle(Request request, Response response, Callback callback) {
                if (Request.getPathInContext(request).equals("/truth")) {
                    answer(response, callback, Truth.everything().getBytes(StandardCharsets.US_ASCII));
                    return true;
                }
                Plan plan = new Plan(request.getHttpURI().getQuery(), new Truth(request.getHeaders().get("traceparent")));
                plan.compute(0);
                run(plan, response, callback, helpers);
                return true;
            }
        });
        server.start();
        return connector.getLocalPort();
    }

    private static void run(Plan plan, Response response, Callback callback, Executor helpers) {
        switch (plan.proceed()) {
            case 'h' -> helpers.execute(() -> run(plan, response, callback, helpers));
            case 'f' -> {
                AtomicInteger left = new AtomicInteger(plan.pieces);
                for (int i = plan.pieces; i > 0; i--) {
                    helpers.execute(() -> {
                        plan.compute(Plan.PIECE_US);
                        if (left.decrementAndGet() == 0) {
                            run(plan, response, callback, helpers);
                        }
                    });
                }
            }
            default -> {
                try (Truth.Work work = plan.truth.work()) {
                    answer(response, callback, plan.body());
                }
            }
        }
    }

    private static void answer(Response response, Callback callback, byte[] body) {
        response.setStatus(200);
        response.getHeaders().put(HttpHeader.CONTENT_LENGTH, body.length);
        response.write(true, ByteBuffer.wrap(body), callback);
    }
}
