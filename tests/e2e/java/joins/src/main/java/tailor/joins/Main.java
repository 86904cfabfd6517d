// SPDX-License-Identifier: Apache-2.0
package tailor.joins;

import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.ThreadFactory;
import java.util.concurrent.atomic.AtomicInteger;

/** Serves in the shape that the argument names, on a free port of the loopback interface, which it prints. */
public final class Main {
    private Main() {}

    public static void main(String[] arguments) throws Exception {
        String shape = arguments.length == 1 ? arguments[0] : "";
        int port = switch (shape) {
            // Who has been handed work may hand it on and wait: a pool of some size could wait for itself.
            case "thread" -> BlockingShape.start(
                    Executors.newCachedThreadPool(named("http-")), Executors.newCachedThreadPool(named("helper-")));
            case "jetty" -> JettyShape.start(pool("helper-", 3));
            case "netty" -> NettyShape.start(pool("worker-", 4), pool("helper-", 2));
            case "forkjoin" -> new ForkJoinShape().start();
            case "virtual" -> BlockingShape.start(Virtual::start, Virtual::start);
            default -> {
                System.err.println("usage: joins thread|jetty|netty|forkjoin|virtual");
                System.exit(2);
                yield 0;
            }
        };
        System.out.println("listening 127.0.0.1:" + port);
    }

    private static ExecutorService pool(String name, int threads) {
        return Executors.newFixedThreadPool(threads, named(name));
    }

    private static ThreadFactory named(String name) {
        AtomicInteger count = new AtomicInteger();
        return work -> new Thread(work, name + count.incrementAndGet());
    }
}
