// SPDX-License-Identifier: Apache-2.0
package tailor.searchserver;

import java.io.BufferedReader;
import java.io.EOFException;
import java.io.IOException;
import java.io.InputStream;
import java.io.RandomAccessFile;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.zip.GZIPInputStream;

/**
 * A dictionary in the format of dictd(8): NAME.index, lines of headword, offset and length, and NAME.dict.dz, the text,
 * compressed in a way that gzip reads.
 */
final class DictdFile {
    private static final String DIGITS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

    /** One article and every headword that leads to it, in the order of the index. */
    record Entry(List<String> headwords, String text) {}

    interface Consumer {
        void accept(Entry entry) throws IOException;
    }

    private record Place(int offset, int length) implements Comparable<Place> {
        @Override
        public int compareTo(Place other) {
            int byOffset = Integer.compare(offset, other.offset);
            return byOffset != 0 ? byOffset : Integer.compare(length, other.length);
        }
    }

    private final Path index;
    private final Path text;

    /** The dictionary `name` in `directory`; nothing is opened yet. */
    DictdFile(Path directory, String name) {
        index = directory.resolve(name + ".index");
        text = directory.resolve(name + ".dict.dz");
    }

    boolean exists() {
        return Files.isReadable(index) && Files.isReadable(text);
    }

    /** Hands every article once to `consumer`, in the order of the text. */
    void forEach(Consumer consumer) throws IOException {
        Map<Place, List<String>> places = readIndex();
        byte[] bytes = readText();
        for (Map.Entry<Place, List<String>> place : places.entrySet()) {
            int offset = place.getKey().offset();
            int length = place.getKey().length();
            if ((long) offset + length > bytes.length) {
                throw new IOException(index + ": an entry (" + place.getValue().get(0) + ") lies behind the end of " + text);
            }
            consumer.accept(new Entry(place.getValue(), new String(bytes, offset, length, StandardCharsets.UTF_8)));
        }
    }

    /** A number of the index: base 64, most significant digit first, no padding. */
    static int parseNumber(String digits) throws IOException {
        long value = 0;
        for (int i = 0; i < digits.length(); i++) {
            int digit = DIGITS.indexOf(digits.charAt(i));
            if (digit < 0) {
                throw new IOException("not a base-64 number: \"" + digits + "\"");
            }
            value = value << 6 | digit;
            if (value > Integer.MAX_VALUE) {
                throw new IOException("number too large: \"" + digits + "\"");
            }
        }
        if (digits.isEmpty()) {
            throw new IOException("a number is missing");
        }
        return (int) value;
    }

    private Map<Place, List<String>> readIndex() throws IOException {
        Map<Place, List<String>> places = new TreeMap<>();
        try (BufferedReader lines = Files.newBufferedReader(index, StandardCharsets.UTF_8)) {
            int number = 0;
            for (String line = lines.readLine(); line != null; line = lines.readLine()) {
                number++;
                // A fourth column, the headword as printed, is allowed and not needed.
                String[] columns = line.split("\t");
                if (columns.length < 3) {
                    throw new IOException(index + ":" + number + ": expected headword, offset and length");
                }
                // The database describes itself in entries with such names.
                if (columns[0].startsWith("00-database") || columns[0].startsWith("00database")) {
                    continue;
                }
                Place place = new Place(parseNumber(columns[1]), parseNumber(columns[2]));
                List<String> headwords = places.computeIfAbsent(place, key -> new ArrayList<>(1));
                if (!headwords.contains(columns[0])) {
                    headwords.add(columns[0]);
                }
            }
        }
        return places;
    }

    private byte[] readText() throws IOException {
        byte[] bytes = new byte[uncompressedSize()];
        try (InputStream in = new GZIPInputStream(Files.newInputStream(text), 1 << 16)) {
            if (in.readNBytes(bytes, 0, bytes.length) != bytes.length) {
                throw new EOFException(text + " ends early");
            }
        }
        return bytes;
    }

    /** RFC 1952: the last four bytes are the size modulo 2^32, least significant first. */
    private int uncompressedSize() throws IOException {
        try (RandomAccessFile file = new RandomAccessFile(text.toFile(), "r")) {
            if (file.length() < 18) {
                throw new EOFException(text + " is too short for gzip");
            }
            file.seek(file.length() - 4);
            int size = Integer.reverseBytes(file.readInt());
            if (size < 0) {
                throw new IOException(text + " is larger than 2 GiB");
            }
            return size;
        }
    }
}
