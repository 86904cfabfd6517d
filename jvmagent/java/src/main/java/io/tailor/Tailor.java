/* SPDX-License-Identifier: Apache-2.0 */
package io.tailor;

import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;

/**
 * Says which request a thread works for, where Tailor cannot see it: across queues, pools and any other hand-off.
 *
 * <pre>{@code
 * long request = Tailor.begin(traceparent);
 * try {
 *     search();
 * } finally {
 *     Tailor.end(request);
 * }
 * }</pre>
 *
 * A call is for the thread that makes it, platform or virtual, from then on; it costs about as much as
 * System.nanoTime() twice, allocates nothing, waits for nothing and never throws. Where the JVM has no agent of
 * Tailor it does nothing. A begin replaces the one before it on the same thread; an end ends only what was begun with
 * the same id.
 */
public final class Tailor {
    private static final int TRACEPARENT_LENGTH = 55;
    private static final int TRACE_AT = 3;
    private static final int PARENT_AT = 36;
    private static final int ID_LENGTH = 16;

    /* Thread.isVirtual() of JDK 21, null before. */
    private static final MethodHandle IS_VIRTUAL = findIsVirtual();

    /* The agent sets it where it comes later than this class. */
    private static volatile boolean watched;

    static {
        try {
            watched = isWatched0();
        } catch (LinkageError | RuntimeException noAgent) {
            // Stays as it is: an agent that came just now may have set it.
        }
    }

    private Tailor() {
    }

    /**
     * The calling thread works for this request from now on.
     *
     * @param request the request's id as Tailor reports it, 0: none, and nothing is done
     * @return the same id
     */
    public static long begin(long request) {
        if (watched && request != 0)
            begin0(request, virtualThread());
        return request;
    }

    /**
     * The calling thread works for this request from now on.
     *
     * @param header the value of the request's X-Tailor-Request-Id or, where it has none, traceparent; null and
     *               whatever is neither are no request, and nothing is done
     * @return the request's id for {@link #end}, 0: none
     */
    public static long begin(String header) {
        return begin(parse(header));
    }

    /**
     * The calling thread works for this request no longer.
     *
     * @param request what begin returned; it may have been called on another thread
     */
    public static void end(long request) {
        if (watched && request != 0)
            end0(request, virtualThread());
    }

    /** The id as 16 hexadecimal digits, or as the parent id of a valid traceparent (W3C Trace Context, 3.2.2); 0: neither. */
    private static long parse(String header) {
        if (header == null)
            return 0;
        int length = header.length();
        if (length == ID_LENGTH)
            return isHex(header, 0, ID_LENGTH) ? value(header, 0) : 0;
        if (length < TRACEPARENT_LENGTH)
            return 0;
        if (header.charAt(2) != '-' || header.charAt(35) != '-' || header.charAt(52) != '-')
            return 0;
        if (!isHex(header, 0, 2) || !isHex(header, TRACE_AT, 35) || !isHex(header, PARENT_AT, 52) || !isHex(header, 53, 55))
            return 0;
        boolean first = header.startsWith("00"), none = header.startsWith("ff");
        if (none || length > TRACEPARENT_LENGTH && (first || header.charAt(TRACEPARENT_LENGTH) != '-'))
            return 0;
        return (value(header, TRACE_AT) | value(header, TRACE_AT + ID_LENGTH)) == 0 ? 0 : value(header, PARENT_AT);
    }

    private static int digit(char c) {
        return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
    }

    private static boolean isHex(String text, int from, int to) {
        for (int i = from; i < to; i++)
            if (digit(text.charAt(i)) < 0)
                return false;
        return true;
    }

    private static long value(String text, int at) {
        long value = 0;
        for (int i = at; i < at + ID_LENGTH; i++)
            value = value << 4 | digit(text.charAt(i));
        return value;
    }

    /** The number of the calling virtual thread, 0 on a platform thread. */
    @SuppressWarnings("deprecation") // threadId() is younger than JDK 17; no virtual thread overrides getId()
    private static long virtualThread() {
        if (IS_VIRTUAL == null)
            return 0;
        Thread thread = Thread.currentThread();
        try {
            return (boolean) IS_VIRTUAL.invokeExact(thread) ? thread.getId() : 0;
        } catch (Throwable impossible) {
            return 0;
        }
    }

    private static MethodHandle findIsVirtual() {
        try {
            return MethodHandles.publicLookup().findVirtual(Thread.class, "isVirtual", MethodType.methodType(boolean.class));
        } catch (ReflectiveOperationException before21) {
            return null;
        }
    }

    private static native void begin0(long request, long virtualThread);

    private static native void end0(long request, long virtualThread);

    private static native boolean isWatched0();
}
