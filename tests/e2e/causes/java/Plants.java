// SPDX-License-Identifier: Apache-2.0
import java.io.RandomAccessFile;
import java.lang.management.GarbageCollectorMXBean;
import java.lang.management.ManagementFactory;
import java.lang.management.MemoryPoolMXBean;
import java.lang.management.MemoryType;
import java.lang.reflect.Field;
import java.net.InetAddress;
import java.net.Socket;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.ByteBuffer;
import java.nio.MappedByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.SynchronousQueue;
import sun.misc.Unsafe;

/** What a request of the victim suffers, and what must be there for it. */
final class Plants {
	private static final int PAGE = 4096;
	private static volatile long sink;

	private final FileChannel disk;
	private final Path classes;
	private final Unsafe unsafe;
	private final Object lock = new Object();
	private final ByteBuffer read = ByteBuffer.allocateDirect(2 << 20);
	private final SynchronousQueue<Runnable> copier = new SynchronousQueue<>();
	private final ExecutorService pool = Executors.newSingleThreadExecutor(work -> new Thread(work, "worker"));
	/** One that stays: how long it waited for a CPU is asked for afterwards. */
	private final ExecutorService holder = Executors.newSingleThreadExecutor(work -> new Thread(work, "holder"));
	private final List<Thread> sleepers = new ArrayList<>();
	private byte[] from, to;
	private Object live;
	private Object fresh;

	Plants(String disk, String classes) throws Exception {
		this.disk = new RandomAccessFile(disk, "r").getChannel();
		this.classes = Path.of(classes);
		Field field = Unsafe.class.getDeclaredField("theUnsafe");
		field.setAccessible(true);
		unsafe = (Unsafe)field.get(null);
		Victim.start("copier", () -> {
			try {
				while (true)
					copier.take().run();
			} catch (InterruptedException end) {
				// Nobody does.
			}
		});
	}

	void suffer(String path, Map<String, String> query) throws Exception {
		switch (path) {
		case "/spin": spin(number(query, "us")); break;
		case "/compute": compute(number(query, "us")); break;
		case "/sleep": Thread.sleep(number(query, "ms")); break;
		case "/lock":
			synchronized (lock) {
				spin(100);
			}
			break;
		case "/disk":
			synchronized (read) {
				read.clear().limit((int)number(query, "bytes"));
				disk.read(read, number(query, "offset"));
			}
			break;
		case "/map": touchFile(number(query, "offset"), number(query, "bytes")); break;
		case "/memory": touchMemory(number(query, "mib") << 20); break;
		case "/allocate": allocateUntilCollection(); break;
		case "/copy": stopDuringCopy(number(query, "us")); break;
		case "/classes": loadClasses((int)number(query, "count")); break;
		case "/pool": pool.submit(() -> spin(number(query, "us"))).get(); break;
		case "/backend": askBackend((int)number(query, "port")); break;
		default: spin(300);
		}
	}

	String command(String[] words) throws Exception {
		switch (words[0]) {
		case "hold": holdLock(Long.parseLong(words[1]), words[2].equals("working")); break;
		case "live": live = nodes(Integer.parseInt(words[1]) << 20); break;
		case "fill": return fill(Integer.parseInt(words[1]));
		case "collect":
			fresh = null;
			System.gc();
			break;
		case "arrays":
			from = new byte[Integer.parseInt(words[1]) << 20];
			to = new byte[from.length];
			break;
		case "spin":
			for (int i = 0; i < Integer.parseInt(words[2]); i++)
				Victim.start("spinner", () -> spin(1000 * Long.parseLong(words[1])));
			break;
		case "touch": touchMemory(Long.parseLong(words[1]) << 20); break;
		case "threads": setSleepers(Integer.parseInt(words[1]), Integer.parseInt(words[2])); break;
		default: throw new IllegalArgumentException(words[0]);
		}
		return "done";
	}

	private static long number(Map<String, String> query, String name) {
		return Long.parseLong(query.get(name));
	}

	/** Until the clock says so, whoever else had the CPU meanwhile. */
	static void spin(long us) {
		long end = System.nanoTime() + 1000 * us, turns = 0;
		while (System.nanoTime() < end)
			turns++;
		sink += turns;
	}

	/** Until this thread itself has had that much of a CPU. */
	private static void compute(long us) {
		long end = ManagementFactory.getThreadMXBean().getCurrentThreadCpuTime() + 1000 * us;
		while (ManagementFactory.getThreadMXBean().getCurrentThreadCpuTime() < end)
			spin(100);
	}

	/** Returns when the lock is held. */
	private void holdLock(long ms, boolean working) throws InterruptedException {
		CountDownLatch held = new CountDownLatch(1);

		holder.execute(() -> {
			synchronized (lock) {
				held.countDown();
				if (working) {
					spin(1000 * ms);
					return;
				}
				try {
					Thread.sleep(ms);
				} catch (InterruptedException end) {
					// Nobody does.
				}
			}
		});
		held.await();
	}

	private void touchFile(long offset, long bytes) throws Exception {
		MappedByteBuffer map = disk.map(FileChannel.MapMode.READ_ONLY, offset, bytes);
		long sum = 0;

		for (int at = 0; at < bytes; at += PAGE)
			sum += map.get(at);
		sink += sum;
	}

	/** Memory that malloc gets from the kernel anew and gives back. */
	private void touchMemory(long bytes) {
		long address = unsafe.allocateMemory(bytes);

		for (long at = 0; at < bytes; at += PAGE)
			unsafe.putByte(address + at, (byte)1);
		unsafe.freeMemory(address);
	}

	private static long collections() {
		long count = 0;
		for (GarbageCollectorMXBean collector : ManagementFactory.getGarbageCollectorMXBeans())
			count += collector.getCollectionCount();
		return count;
	}

	private static Object nodes(int bytes) {
		List<Object[]> all = new ArrayList<>();
		// A small object and an array that refers to it: 16 + 32 bytes.
		for (int made = 0; made < bytes; made += 48)
			all.add(new Object[] {new Object(), null, null});
		return all;
	}

	/** Leaves eden nearly full, `mib` of it alive. */
	private String fill(int mib) {
		MemoryPoolMXBean eden = null;

		for (MemoryPoolMXBean pool : ManagementFactory.getMemoryPoolMXBeans())
			if (pool.getType() == MemoryType.HEAP && pool.getName().contains("Eden"))
				eden = pool;
		for (int attempt = 0; attempt < 4; attempt++) {
			long before = collections();

			fresh = null;
			fresh = nodes(mib << 20);
			while (collections() == before && eden.getUsage().getUsed() < 0.9 * eden.getUsage().getCommitted())
				sink += new byte[64 << 10].length;
			if (collections() == before)
				return "done";
		}
		return "error eden does not fill";
	}

	private void allocateUntilCollection() {
		long before = collections();

		for (int i = 0; i < 1 << 12 && collections() == before; i++)
			for (int j = 0; j < 16; j++)
				sink += new byte[8 << 10].length;
		fresh = null;
	}

	/** A safepoint while another thread copies, and this one has work of its own. */
	private void stopDuringCopy(long us) throws InterruptedException {
		copier.put(() -> System.arraycopy(from, 0, to, 0, from.length));
		Victim.start("asker", () -> {
			spin(2000);
			ManagementFactory.getThreadMXBean().findMonitorDeadlockedThreads();
		});
		spin(us);
	}

	private void loadClasses(int count) throws Exception {
		try (URLClassLoader loader = new URLClassLoader(new URL[] {classes.toUri().toURL()}, null)) {
			for (int i = 0; i < count; i++)
				Class.forName(String.format("Planted%05d", i), true, loader);
		}
	}

	private static void askBackend(int port) throws Exception {
		try (Socket socket = new Socket(InetAddress.getLoopbackAddress(), port)) {
			socket.getOutputStream().write('?');
			sink += socket.getInputStream().read();
		}
	}

	private static void sleepDeep(int depth, CountDownLatch deep, Object end) {
		if (depth > 0) {
			sleepDeep(depth - 1, deep, end);
			return;
		}
		deep.countDown();
		synchronized (end) {
			try {
				end.wait();
			} catch (InterruptedException stop) {
				// The end of this thread.
			}
		}
	}

	private void setSleepers(int count, int depth) throws InterruptedException {
		CountDownLatch deep = new CountDownLatch(count);

		sleepers.forEach(Thread::interrupt);
		sleepers.clear();
		for (int i = 0; i < count; i++)
			sleepers.add(Victim.start("sleeper-" + i, () -> sleepDeep(depth, deep, new Object())));
		deep.await();
	}
}
