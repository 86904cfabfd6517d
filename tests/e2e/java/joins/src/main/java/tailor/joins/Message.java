// SPDX-License-Identifier: Apache-2.0
package tailor.joins;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.Locale;

/** As much HTTP/1.1 as a test of keep-alive connections needs: a request is a head without a body. */
final class Message {
    private byte[] bytes = new byte[8192];
    private int length;

    String query;
    String path;
    String traceparent;

    /** Where to read to. */
    ByteBuffer space() {
        return ByteBuffer.wrap(bytes, length, bytes.length - length);
    }

    /** So many more bytes have come; true when the request's head is complete and taken apart. */
    boolean add(int count) {
        length += count;
        String text = new String(bytes, 0, length, StandardCharsets.ISO_8859_1);
        int end = text.indexOf("\r\n\r\n");
        if (end < 0) {
            return false;
        }
        String[] lines = text.substring(0, end).split("\r\n");
        String target = lines[0].split(" ")[1];
        int mark = target.indexOf('?');
        path = mark < 0 ? target : target.substring(0, mark);
        query = mark < 0 ? null : target.substring(mark + 1);
        traceparent = null;
        for (String line : lines) {
            if (line.toLowerCase(Locale.ROOT).startsWith("traceparent:")) {
                traceparent = line.substring(12).trim();
            }
        }
        length -= end + 4;
        System.arraycopy(bytes, end + 4, bytes, 0, length);
        return true;
    }

    static ByteBuffer response(byte[] body) {
        byte[] head = ("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: " + body.length + "\r\n\r\n")
                .getBytes(StandardCharsets.US_ASCII);
        return ByteBuffer.allocate(head.length + body.length).put(head).put(body).flip();
    }
}
