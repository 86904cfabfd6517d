// SPDX-License-Identifier: Apache-2.0
package tailor.searchserver;

import java.io.BufferedInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.net.InetAddress;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.util.Locale;

/** Searches sent to the server by itself over HTTP, so that its first client does not meet interpreted code. */
final class WarmUp {
    private static final String[] WORDS = {
        "river", "engine", "stone", "music", "letter", "garden", "winter", "copper", "horse", "mirror", "ocean", "paper",
        "silver", "temple", "valley", "window", "anchor", "bridge", "castle", "desert", "feather", "harbor", "island", "journey",
    };

    private WarmUp() {}

    /** Returns how many searches were answered in `seconds`. */
    static long run(InetAddress address, int port, double seconds) throws IOException {
        long end = System.nanoTime() + (long) (seconds * 1e9);
        long done = 0;
        while (System.nanoTime() < end) {
            // A connection for 500 requests: connecting is warmed up, too.
            try (Socket socket = new Socket(address, port)) {
                socket.setTcpNoDelay(true);
                socket.setSoTimeout(30_000);
                InputStream in = new BufferedInputStream(socket.getInputStream());
                for (int i = 0; i < 500 && System.nanoTime() < end; i++) {
                    search(socket.getOutputStream(), in, WORDS[(int) (done++ % WORDS.length)]);
                }
            }
        }
        return done;
    }

    private static void search(OutputStream out, InputStream in, String word) throws IOException {
        String request = "GET /search?q=" + word + " HTTP/1.1\r\nHost: localhost\r\n\r\n";
        out.write(request.getBytes(StandardCharsets.US_ASCII));
        int length = -1;
        String status = line(in);
        for (String header = line(in); !header.isEmpty(); header = line(in)) {
            if (header.toLowerCase(Locale.ROOT).startsWith("content-length:")) {
                length = Integer.parseInt(header.substring(header.indexOf(':') + 1).trim());
            }
        }
        if (!status.startsWith("HTTP/1.1 200") || length < 0) {
            throw new IOException("the server answers its own search with: " + status);
        }
        in.skipNBytes(length);
    }

    private static String line(InputStream in) throws IOException {
        StringBuilder line = new StringBuilder();
        for (int c = in.read(); c != '\n'; c = in.read()) {
            if (c < 0) {
                throw new IOException("the server closed the connection of its own search");
            }
            if (c != '\r') {
                line.append((char) c);
            }
        }
        return line.toString();
    }
}
