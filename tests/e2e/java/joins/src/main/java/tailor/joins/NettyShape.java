// SPDX-License-Identifier: Apache-2.0
package tailor.joins;

import io.netty.bootstrap.ServerBootstrap;
import io.netty.buffer.Unpooled;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelInitializer;
import io.netty.channel.ChannelOption;
import io.netty.channel.SimpleChannelInboundHandler;
import io.netty.channel.nio.NioEventLoopGroup;
import io.netty.channel.socket.SocketChannel;
import io.netty.channel.socket.nio.NioServerSocketChannel;
import io.netty.handler.codec.http.DefaultFullHttpResponse;
import io.netty.handler.codec.http.FullHttpRequest;
import io.netty.handler.codec.http.HttpHeaderNames;
import io.netty.handler.codec.http.HttpObjectAggregator;
import io.netty.handler.codec.http.HttpResponseStatus;
import io.netty.handler.codec.http.HttpServerCodec;
import io.netty.handler.codec.http.HttpVersion;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.Executor;
import java.util.concurrent.atomic.AtomicInteger;

/** Netty: an event loop reads and writes, executors work in between. */
final class NettyShape {
    private NettyShape() {}

    /** workers does the work, helpers what it hands on. */
    static int start(Executor workers, Executor helpers) throws InterruptedException {
        ServerBootstrap bootstrap = new ServerBootstrap()
                .group(new NioEventLoopGroup(1), new NioEventLoopGroup(4))
                .channel(NioServerSocketChannel.class)
                .childOption(ChannelOption.TCP_NODELAY, true)
                .childHandler(new ChannelInitializer<SocketChannel>() {
                    @Override
                    protected void initChannel(SocketChannel channel) {
                        channel.pipeline().addLast(
                                new HttpServerCodec(), new HttpObjectAggregator(65536), new Front(workers, helpers));
                    }
                });
        return ((InetSocketAddress) bootstrap.bind("127.0.0.1", 0).sync().channel().localAddress()).getPort();
    }

    private static final class Front extends SimpleChannelInboundHandler<FullHttpRequest> {
        private final Executor workers;
        private final Executor helpers;

        Front(Executor workers, Executor helpers) {
            this.workers = workers;
            this.helpers = helpers;
        }

        @Override
        protected void channelRead0(ChannelHandlerContext context, FullHttpRequest request) {
            int mark = request.uri().indexOf('?');
            if (request.uri().equals("/truth")) {
                answer(context, Truth.everything().getBytes(StandardCharsets.US_ASCII));
                return;
            }
            Plan plan = new Plan(mark < 0 ? null : request.uri().substring(mark + 1),
                    new Truth(request.headers().get("traceparent")));
            try (Truth.Work work = plan.truth.work()) {
                workers.execute(() -> run(plan, context));
            }
        }

        private void run(Plan plan, ChannelHandlerContext context) {
            switch (plan.proceed()) {
                case 'h' -> helpers.execute(() -> run(plan, context));
                case 'f' -> {
                    AtomicInteger left = new AtomicInteger(plan.pieces);
                    for (int i = plan.pieces; i > 0; i--) {
                        helpers.execute(() -> {
                            plan.compute(Plan.PIECE_US);
                            if (left.decrementAndGet() == 0) {
                                run(plan, context);
                            }
                        });
                    }
                }
                default -> context.executor().execute(() -> {
                    try (Truth.Work work = plan.truth.work()) {
                        answer(context, plan.body());
                    }
                });
            }
        }

        private static void answer(ChannelHandlerContext context, byte[] body) {
            DefaultFullHttpResponse response = new DefaultFullHttpResponse(
                    HttpVersion.HTTP_1_1, HttpResponseStatus.OK, Unpooled.wrappedBuffer(body));
            response.headers().setInt(HttpHeaderNames.CONTENT_LENGTH, body.length);
            context.writeAndFlush(response);
        }
    }
}
