// SPDX-License-Identifier: Apache-2.0
package tailor.joins;

import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;

/** Virtual threads, of which the release that this is compiled for knows nothing. */
final class Virtual {
    private static final MethodHandle IS = find(() ->
            MethodHandles.lookup().findVirtual(Thread.class, "isVirtual", MethodType.methodType(boolean.class)));
    private static final MethodHandle START = find(() -> MethodHandles.lookup()
            .findStatic(Thread.class, "startVirtualThread", MethodType.methodType(Thread.class, Runnable.class)));

    private Virtual() {}

    private interface Lookup {
        MethodHandle handle() throws ReflectiveOperationException;
    }

    private static MethodHandle find(Lookup lookup) {
        try {
            return lookup.handle();
        } catch (ReflectiveOperationException e) {
            return null;
        }
    }

    static boolean is(Thread thread) {
        try {
            return IS != null && (boolean) IS.invokeExact(thread);
        } catch (Throwable e) {
            throw new IllegalStateException(e);
        }
    }

    static Thread start(Runnable work) {
        if (START == null) {
            throw new UnsupportedOperationException("this JVM has no virtual threads");
        }
        try {
            return (Thread) START.invokeExact(work);
        } catch (Throwable e) {
            throw new IllegalStateException(e);
        }
    }
}
