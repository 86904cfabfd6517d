/* SPDX-License-Identifier: Apache-2.0 */
import io.tailor.Tailor;
import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.List;

/**
 * An application that says which requests its threads work for. It waits for a line of input, and does what ARG0 names; what it
 * prints, a line each, is what the events must say.
 */
public class Application {
    static final int THREADS = 8, ROUNDS = 300;

    static String parent(long request) {
        return "00-0af7651916cd43dd8448eb211c80319c-" + String.format("%016x", request) + "-01";
    }

    static void say(String what, long... numbers) {
        StringBuilder line = new StringBuilder(what);
        for (long number : numbers)
            line.append(' ').append(Long.toUnsignedString(number));
        System.out.println(line);
    }

    /** One thread's requests, in each form that a request can be named. */
    static void serve(long thread) {
        for (long i = 1; i <= ROUNDS; i++) {
            long request = thread << 56 | 0xabcdef00L << 16 | i, begun;
            switch ((int) (i % 3)) {
                case 0 -> begun = Tailor.begin(request);
                case 1 -> begun = Tailor.begin(parent(request));
                default -> begun = Tailor.begin(String.format("%016x", request));
            }
            if (begun != request)
                throw new AssertionError(begun + " for " + request);
            Tailor.end(begun);
            if (i % 50 == 0)
                Thread.yield();
        }
    }

    static void threads() throws Exception {
        List<Thread> threads = new ArrayList<>();
        for (int i = 0; i < THREADS; i++) {
            long number = i + 0xf1; /* the top bit set */
            threads.add(new Thread(() -> serve(number), "worker " + number));
        }
        for (Thread thread : threads)
            thread.start();
        for (Thread thread : threads)
            thread.join();
    }

    /** Each works, sleeps, and goes on with the same request wherever it is then. */
    static void virtual() throws Exception {
        Method start = Thread.class.getMethod("startVirtualThread", Runnable.class);
        List<Thread> threads = new ArrayList<>();
        for (int i = 0; i < 40; i++) {
            long request = 1000 + i;
            threads.add((Thread) start.invoke(null, (Runnable) () -> {
                say("virtual", Thread.currentThread().getId(), Tailor.begin(request));
                try {
                    Thread.sleep(3);
                } catch (InterruptedException e) {
                    throw new IllegalStateException(e);
                }
                Tailor.end(request);
            }));
        }
        for (Thread thread : threads)
            thread.join();
    }

    static void garbage() {
        String good = parent(0x1122334455667788L);
        String[] texts = {null, "", " ", "x", "1122334455667788 ", "112233445566778g", "1122334455667788".repeat(3), "0".repeat(16), good.substring(1),
            good.replace('-', '_'), good.replace("0af7", "0AF7"), "\u0661".repeat(16), "\ud83d\ude00".repeat(30), "-".repeat(10000), parent(0),
            good + good, good + "-x", "ff" + good.substring(2), "cc" + good.substring(2) + "x", good.replaceAll("-0af.{29}-", "-" + "0".repeat(32) + "-")};
        String[] sound = {good, "1122334455667788", "cc" + good.substring(2) + "-x"};
        for (String text : texts)
            say("garbage", Tailor.begin(text));
        for (String text : sound)
            say("sound", Tailor.begin(text));
        Tailor.begin(0);
        Tailor.end(0);
    }

    static void crossed() {
        Tailor.begin(1);
        Tailor.begin(2);
        Tailor.end(1);
        Tailor.end(3);
        Tailor.end(2);
        Tailor.end(2);
        Tailor.begin(-1);
        Tailor.end(-1);
    }

    static void time() {
        String header = parent(77);
        for (int round = 0; round < 5; round++) {
            long start = System.nanoTime();
            for (int i = 0; i < 200_000; i++)
                Tailor.end(Tailor.begin(header));
            long end = System.nanoTime();
            say("nanoseconds", (end - start) / 400_000);
        }
    }

    static native void nativeBegin(long request);

    static native void nativeEnd(long request);

    /** The same by native code, also on a virtual thread where there are some. */
    static void byNativeCode() throws Exception {
        System.load(System.getenv("TAILOR_APPLICATION_NATIVE"));
        nativeBegin(5);
        nativeBegin(0);
        nativeEnd(5);
        if (Runtime.version().feature() < 21)
            return;
        Thread thread = (Thread) Thread.class.getMethod("startVirtualThread", Runnable.class).invoke(null, (Runnable) () -> {
            say("virtual", Thread.currentThread().getId(), 6);
            nativeBegin(6);
            nativeEnd(6);
        });
        thread.join();
    }

    /** For an agent that comes later: goes on until the standard input ends. */
    static void later() throws Exception {
        long calls = 0;
        while (System.in.available() == 0) {
            Tailor.end(Tailor.begin(++calls));
            Thread.sleep(1);
        }
    }

    public static void main(String[] arguments) throws Exception {
        System.out.println("waiting");
        if (!arguments[0].equals("later"))
            System.in.read();
        switch (arguments[0]) {
            case "threads" -> threads();
            case "virtual" -> virtual();
            case "garbage" -> garbage();
            case "crossed" -> crossed();
            case "native" -> byNativeCode();
            case "time" -> time();
            case "later" -> later();
            default -> throw new IllegalArgumentException(arguments[0]);
        }
        System.out.println("done");
    }
}
