// SPDX-License-Identifier: Apache-2.0
package tailor.searchserver;

import java.net.InetSocketAddress;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import org.eclipse.jetty.http.HttpHeader;
import org.eclipse.jetty.io.Content;
import org.eclipse.jetty.server.Handler;
import org.eclipse.jetty.server.Request;
import org.eclipse.jetty.server.Response;
import org.eclipse.jetty.server.Server;
import org.eclipse.jetty.server.ServerConnector;
import org.eclipse.jetty.util.Callback;
import org.eclipse.jetty.util.thread.QueuedThreadPool;

/** The endpoints behind Jetty: selector and worker threads, head and body in one write. */
final class JettyFront {
    private JettyFront() {}

    /** Starts serving and returns the port. */
    static int start(InetSocketAddress address, int threads, Endpoints endpoints) throws Exception {
        Server server = new Server(new QueuedThreadPool(threads + 4, threads + 4));
        ServerConnector connector = new ServerConnector(server, 1, 1);
        connector.setHost(address.getHostString());
        connector.setPort(address.getPort());
        connector.setIdleTimeout(300_000);
        server.addConnector(connector);
        server.setHandler(new Handler.Abstract() {
            @Override
            public boolean handle(Request request, Response response, Callback callback) throws Exception {
                String form = null;
                if (request.getMethod().equals("POST")) {
                    if (request.getLength() > Endpoints.BODY_BYTES_MAX) {
                        Response.writeError(request, response, callback, 413);
                        return true;
                    }
                    form = Content.Source.asString(request, StandardCharsets.UTF_8);
                }
                Answer answer = endpoints.answer(
                        request.getMethod(), Request.getPathInContext(request), request.getHttpURI().getQuery(), form);
                response.setStatus(answer.status());
                response.getHeaders().put(HttpHeader.CONTENT_TYPE, answer.type());
                response.getHeaders().put("X-Server", endpoints.name());
                response.getHeaders().put(HttpHeader.CONTENT_LENGTH, answer.body().length);
                boolean head = request.getMethod().equals("HEAD");
                response.write(true, head ? ByteBuffer.allocate(0) : ByteBuffer.wrap(answer.body()), callback);
                return true;
            }
        });
        server.start();
        return connector.getLocalPort();
    }
}
