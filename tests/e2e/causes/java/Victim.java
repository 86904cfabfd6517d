// SPDX-License-Identifier: Apache-2.0
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.Map;

/**
 * A server of one thread a connection that suffers what a request's target tells it to: /lock, /disk?offset=N, ... What does not begin
 * with a request is told through a second port, one line a command, answered by one line when it is done.
 *
 * Arguments: the disk's file, the jar of classes. Prints "listening PORT control PORT".
 */
public final class Victim {
	static final byte[] BIG = new byte[32 << 20];

	public static void main(String[] arguments) throws Exception {
		Plants plants = new Plants(arguments[0], arguments[1]);
		InetAddress here = InetAddress.getLoopbackAddress();
		ServerSocket requests = new ServerSocket(0, 1024, here);
		ServerSocket control = new ServerSocket(0, 4, here);

		start("control", () -> accept(control, "control", socket -> command(plants, socket)));
		System.out.println("listening " + requests.getLocalPort() + " control " + control.getLocalPort());
		accept(requests, "connection", socket -> serve(plants, socket));
	}

	interface Talk {
		void with(Socket socket) throws Exception;
	}

	static Thread start(String name, Runnable work) {
		Thread thread = new Thread(work, name);
		thread.setDaemon(true);
		thread.start();
		return thread;
	}

	private static void accept(ServerSocket listener, String name, Talk talk) {
		for (int number = 1;; number++) {
			try {
				Socket socket = listener.accept();
				start(name + "-" + number, () -> {
					try (socket) {
						socket.setTcpNoDelay(true);
						talk.with(socket);
					} catch (IOException closed) {
						// The other side is gone.
					} catch (Exception bug) {
						bug.printStackTrace();
					}
				});
			} catch (IOException error) {
				error.printStackTrace();
				return;
			}
		}
	}

	/** One head without a body, as bytes up to the empty line; null at the end of the connection. */
	private static String readHead(InputStream in, byte[] buffer) throws IOException {
		int length = 0;
		while (length < buffer.length) {
			int more = in.read(buffer, length, buffer.length - length);
			if (more < 0)
				return null;
			length += more;
			if (length >= 4 && buffer[length - 1] == '\n' && buffer[length - 3] == '\n')
				return new String(buffer, 0, length, StandardCharsets.ISO_8859_1);
		}
		throw new IOException("a head of more than " + buffer.length + " bytes");
	}

	static Map<String, String> query(String target) {
		Map<String, String> values = new HashMap<>();
		int mark = target.indexOf('?');
		for (String pair : mark < 0 ? new String[0] : target.substring(mark + 1).split("&")) {
			int equal = pair.indexOf('=');
			values.put(pair.substring(0, equal), pair.substring(equal + 1));
		}
		return values;
	}

	private static void serve(Plants plants, Socket socket) throws Exception {
		InputStream in = socket.getInputStream();
		OutputStream out = socket.getOutputStream();
		byte[] buffer = new byte[8192];
		String head;

		while ((head = readHead(in, buffer)) != null) {
			String target = head.split(" ", 3)[1];
			Map<String, String> query = query(target);
			int mark = target.indexOf('?');
			String path = mark < 0 ? target : target.substring(0, mark);
			int length = Integer.parseInt(query.getOrDefault("kib", "0")) * 1024;

			plants.suffer(path, query);
			if (length == 0)
				length = 300;
			byte[] answer = ("HTTP/1.1 200 OK\r\nContent-Length: " + length + "\r\n\r\n").getBytes(StandardCharsets.ISO_8859_1);
			if (path.equals("/nagle")) {
				// Head and body in two writes, the second of which Nagle's algorithm holds back.
				socket.setTcpNoDelay(false);
				out.write(answer);
				out.write(BIG, 0, length);
				// Turned off again at once it would send what it holds: by the next request.
				continue;
			}
			socket.setTcpNoDelay(true);
			if (length > 4096) {
				out.write(answer);
				out.write(BIG, 0, length);
				continue;
			}
			byte[] whole = new byte[answer.length + length];
			System.arraycopy(answer, 0, whole, 0, answer.length);
			out.write(whole);
		}
	}

	private static void command(Plants plants, Socket socket) throws Exception {
		BufferedReader in = new BufferedReader(new InputStreamReader(socket.getInputStream()));
		String line;

		while ((line = in.readLine()) != null) {
			String answer;
			try {
				answer = plants.command(line.split(" "));
			} catch (Exception error) {
				error.printStackTrace();
				answer = "error " + error;
			}
			socket.getOutputStream().write((answer + "\n").getBytes(StandardCharsets.ISO_8859_1));
		}
	}
}
