/* SPDX-License-Identifier: Apache-2.0 */
import java.io.BufferedInputStream;
import java.io.EOFException;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.util.Arrays;
import java.util.HashMap;
import java.util.Locale;
import java.util.Map;

/**
 * server.py's requests and answers in a JVM: StoppingServer PORT LOG LIVE_MIB. It has so much to keep alive that a collection takes a
 * while; a byte on its standard input asks for one. It ends when its standard input does.
 */
public class StoppingServer {
    private static final int PIECES = 5;
    private static final int CHUNK = 10_000;

    private static final class Node {
        final Node next;
        final long a;

        Node(Node next, long a) {
            this.next = next;
            this.a = a;
        }
    }

    private static final int NODE_BYTES = 24;
    private static volatile Node live;

    private static String line(InputStream in) throws IOException {
        StringBuilder line = new StringBuilder();
        for (int c = in.read(); c != '\n'; c = in.read()) {
            if (c < 0) {
                throw new EOFException();
            }
            if (c != '\r') {
                line.append((char) c);
            }
        }
        return line.toString();
    }

    private static byte[] bytes(InputStream in, int count) throws IOException {
        byte[] bytes = in.readNBytes(count);
        if (bytes.length < count) {
            throw new EOFException();
        }
        return bytes;
    }

    private static byte[] digestOfBody(InputStream in, Map<String, String> fields) throws Exception {
        MessageDigest digest = MessageDigest.getInstance("SHA-256");
        if (!"chunked".equals(fields.get("transfer-encoding"))) {
            digest.update(bytes(in, Integer.parseInt(fields.getOrDefault("content-length", "0"))));
            return digest.digest();
        }
        for (int size = Integer.parseInt(line(in), 16); size > 0; size = Integer.parseInt(line(in), 16)) {
            digest.update(bytes(in, size));
            line(in);
        }
        while (!line(in).isEmpty()) {
            // Nobody asked for trailers.
        }
        return digest.digest();
    }

    /** As answer_to() of content.py. */
    private static byte[] answerTo(String path, byte[] bodyDigest) throws Exception {
        int size = Integer.parseInt(path.split("/")[2]);
        byte[] block = MessageDigest.getInstance("SHA-256").digest(path.getBytes(StandardCharsets.ISO_8859_1));
        byte[] answer = new byte[size + bodyDigest.length];
        for (int at = 0; at < size; at += block.length) {
            System.arraycopy(block, 0, answer, at, Math.min(block.length, size - at));
        }
        System.arraycopy(bodyDigest, 0, answer, size, bodyDigest.length);
        return answer;
    }

    private static byte[] joined(byte[]... parts) {
        byte[] all = new byte[Arrays.stream(parts).mapToInt(part -> part.length).sum()];
        int at = 0;
        for (byte[] part : parts) {
            System.arraycopy(part, 0, all, at, part.length);
            at += part.length;
        }
        return all;
    }

    private static byte[] ascii(String text) {
        return text.getBytes(StandardCharsets.US_ASCII);
    }

    /** Returns whether the connection goes on. */
    private static boolean write(OutputStream out, char style, byte[] data) throws Exception {
        if (style == 'e') {
            out.write(joined(ascii("HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n"), data));
            return false;
        }
        if (style == 'c') {
            out.write(ascii("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"));
            for (int at = 0; at < data.length; at += CHUNK) {
                byte[] piece = Arrays.copyOfRange(data, at, Math.min(data.length, at + CHUNK));
                out.write(joined(ascii(Integer.toHexString(piece.length) + "\r\n"), piece, ascii("\r\n")));
            }
            out.write(ascii("0\r\n\r\n"));
            return true;
        }
        byte[] all = joined(ascii("HTTP/1.1 200 OK\r\nContent-Length: " + data.length + "\r\n\r\n"), data);
        int step = style == 'p' ? all.length / PIECES + 1 : all.length;
        for (int at = 0; at < all.length; at += step) {
            out.write(all, at, Math.min(step, all.length - at));
            if (style == 'p') {
                Thread.sleep(2);
            }
        }
        return true;
    }

    private static boolean answer(String first, InputStream in, OutputStream out, FileOutputStream log) throws Exception {
        String[] words = first.split(" ");
        Map<String, String> fields = new HashMap<>();
        for (String field = line(in); !field.isEmpty(); field = line(in)) {
            int colon = field.indexOf(':');
            fields.put(field.substring(0, colon).toLowerCase(Locale.ROOT), field.substring(colon + 1).trim());
        }
        if (fields.containsKey("expect")) {
            out.write(ascii("HTTP/1.1 100 Continue\r\n\r\n"));
        }
        byte[] digest = digestOfBody(in, fields);
        String[] parts = words[1].split("/");
        // A write of its own, before anything is done about it: a server that is killed has still counted.
        log.write(ascii(words[0].charAt(0) + parts[1] + "\n"));
        int delay = Integer.parseInt(parts[4]);
        if (delay > 0) {
            Thread.sleep(delay);
        }
        return write(out, parts[3].charAt(0), answerTo(words[1], digest));
    }

    private static void serve(Socket accepted, FileOutputStream log) {
        try (Socket socket = accepted) {
            socket.setTcpNoDelay(true);
            InputStream in = new BufferedInputStream(socket.getInputStream(), 1 << 16);
            while (answer(line(in), in, socket.getOutputStream(), log)) {
                // The next one.
            }
        } catch (Exception e) {
            // The other side has gone.
        }
    }

    public static void main(String[] arguments) throws Exception {
        FileOutputStream log = new FileOutputStream(arguments[1], true);
        for (long left = Long.parseLong(arguments[2]) << 20; left > 0; left -= NODE_BYTES) {
            live = new Node(live, left);
        }
        ServerSocket listener = new ServerSocket(Integer.parseInt(arguments[0]), 1024, InetAddress.getLoopbackAddress());
        Thread collector = new Thread(() -> {
            try {
                while (System.in.read() >= 0) {
                    System.gc();
                }
            } catch (IOException e) {
                // As if it had ended.
            }
            Runtime.getRuntime().halt(0);
        });
        collector.start();
        System.out.println(listener.getLocalPort());
        System.out.flush();
        while (true) {
            Socket accepted = listener.accept();
            Thread thread = new Thread(() -> serve(accepted, log));
            thread.setDaemon(true);
            thread.start();
        }
    }
}
