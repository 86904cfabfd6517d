// SPDX-License-Identifier: Apache-2.0
package tailor.searchserver;

import java.io.IOException;
import java.net.URLDecoder;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.Map;
import org.apache.lucene.analysis.en.EnglishAnalyzer;
import org.apache.lucene.document.Document;
import org.apache.lucene.index.StoredFields;
import org.apache.lucene.queryparser.classic.ParseException;
import org.apache.lucene.queryparser.classic.QueryParser;
import org.apache.lucene.search.IndexSearcher;
import org.apache.lucene.search.Query;
import org.apache.lucene.search.ScoreDoc;
import org.apache.lucene.search.TopDocs;

/** The paths that the server answers. Any thread. */
final class Endpoints {
    static final int BODY_BYTES_MAX = 1 << 20;

    private static final int HITS_DEFAULT = 10;
    private static final int HITS_MAX = 100;
    private static final int ECHO_BYTES_MAX = 64 << 20;

    private final String name;
    private final IndexSearcher searcher;
    private final EnglishAnalyzer analyzer = new EnglishAnalyzer();
    private final HeapLoad heap;

    Endpoints(String name, IndexSearcher searcher, HeapLoad heap) {
        this.name = name;
        this.searcher = searcher;
        this.heap = heap;
    }

    /** Value of the X-Server header of every answer. */
    String name() {
        return name;
    }

    /** Answers a request; `query` and `form` are urlencoded, either may be null. A HEAD gets the answer to the GET. */
    Answer answer(String method, String path, String query, String form) throws IOException {
        boolean reads = method.equals("GET") || method.equals("HEAD");
        if (!reads && !(method.equals("POST") && path.equals("/search"))) {
            return error(405, method + " is not answered at " + path);
        }
        try {
            switch (path) {
                case "/search":
                    return search(parameters(query, form));
                case "/ready":
                    return Answer.json(200, "{\"ready\":true}\n");
                case "/echo":
                    return echo(parameters(query, null));
                default:
                    return error(404, "there is nothing at " + path);
            }
        } catch (IllegalArgumentException e) {
            return error(400, e.getMessage());
        }
    }

    private Answer search(Map<String, String> parameters) throws IOException {
        String text = parameters.get("q");
        if (text == null || text.isBlank()) {
            return error(400, "parameter q is missing");
        }
        int count = number(parameters, "n", HITS_DEFAULT, 1, HITS_MAX);
        heap.request();
        TopDocs found = searcher.search(parse(text), count);
        StringBuilder json = new StringBuilder(256);
        json.append("{\"query\":");
        appendString(json, text);
        json.append(",\"total\":").append(found.totalHits.value);
        json.append(",\"hits\":[");
        StoredFields stored = searcher.storedFields();
        for (int i = 0; i < found.scoreDocs.length; i++) {
            ScoreDoc hit = found.scoreDocs[i];
            Document document = stored.document(hit.doc);
            json.append(i == 0 ? "{\"word\":" : ",{\"word\":");
            appendString(json, document.get(DictionaryIndex.WORD));
            json.append(",\"dictionary\":");
            appendString(json, document.get(DictionaryIndex.DICTIONARY));
            json.append(",\"score\":").append(hit.score).append('}');
        }
        json.append("]}\n");
        return Answer.json(200, json.toString());
    }

    /** A query in Lucene's syntax; what does not parse is searched for as plain words. */
    private Query parse(String text) {
        QueryParser parser = new QueryParser(DictionaryIndex.TEXT, analyzer); // not thread-safe, cheap to make
        try {
            return parser.parse(text);
        } catch (ParseException e) {
            try {
                return parser.parse(QueryParser.escape(text));
            } catch (ParseException again) {
                throw new IllegalArgumentException("not a query: " + text, again);
            }
        }
    }

    /** `bytes` bytes that depend on their position only, so that a client can tell a whole body from a patched one. */
    private static Answer echo(Map<String, String> parameters) {
        byte[] body = new byte[number(parameters, "bytes", 64, 0, ECHO_BYTES_MAX)];
        for (int i = 0; i < body.length; i++) {
            body[i] = (byte) ('a' + i % 26);
        }
        return new Answer(200, "text/plain", body);
    }

    private static Answer error(int status, String message) {
        StringBuilder json = new StringBuilder("{\"error\":");
        appendString(json, message);
        return Answer.json(status, json.append("}\n").toString());
    }

    private static int number(Map<String, String> parameters, String key, int absent, int min, int max) {
        String text = parameters.get(key);
        if (text == null) {
            return absent;
        }
        try {
            int value = Integer.parseInt(text);
            if (value >= min && value <= max) {
                return value;
            }
        } catch (NumberFormatException e) {
            // falls through to the one message
        }
        throw new IllegalArgumentException("parameter " + key + " must be a number from " + min + " to " + max);
    }

    private static Map<String, String> parameters(String query, String form) {
        Map<String, String> parameters = new HashMap<>();
        for (String part : new String[] {query, form}) {
            if (part == null || part.isEmpty()) {
                continue;
            }
            for (String pair : part.split("&")) {
                int equals = pair.indexOf('=');
                String key = equals < 0 ? pair : pair.substring(0, equals);
                String value = equals < 0 ? "" : pair.substring(equals + 1);
                parameters.put(URLDecoder.decode(key, StandardCharsets.UTF_8), URLDecoder.decode(value, StandardCharsets.UTF_8));
            }
        }
        return parameters;
    }

    private static void appendString(StringBuilder json, String text) {
        json.append('"');
        for (int i = 0; i < text.length(); i++) {
            char c = text.charAt(i);
            if (c == '"' || c == '\\') {
                json.append('\\').append(c);
            } else if (c < 0x20) {
                json.append(String.format("\\u%04x", (int) c));
            } else {
                json.append(c);
            }
        }
        json.append('"');
    }
}
