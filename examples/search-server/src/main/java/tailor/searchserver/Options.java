// SPDX-License-Identifier: Apache-2.0
package tailor.searchserver;

import java.nio.file.Path;
import java.util.Locale;

/** The command line. */
final class Options {
    static final String USAGE =
            """
            Usage: java [JVM OPTION...] -jar search-server.jar [OPTION...]
            Serves a Lucene index of the dictionaries gcide and wn over HTTP.

              --port PORT        listen on it; 0 (the default) takes a free one
              --address ADDRESS  listen on this address (127.0.0.1)
              --name NAME        sent as X-Server with every response (search)
              --index DIR        where the index is, or is built at the first start (index)
              --http SERVER      jetty (default) or jdk
              --threads N        threads that search (8)
              --live-set SIZE    small objects kept alive: makes full collections long (0)
              --tenure SIZE      part of the live set that each search replaces (0)
              --garbage SIZE     allocated by each search and dropped at once (0)
              --warm SECONDS     searches run against itself before it says that it listens (3)
            """;

    int port;
    String address = "127.0.0.1";
    String name = "search";
    Path index = Path.of("index");
    String http = "jetty";
    int threads = 8;
    long liveSet;
    long tenure;
    long garbage;
    double warmSeconds = 3;

    /** Throws IllegalArgumentException with a line for the person who typed it. */
    static Options parse(String[] arguments) {
        Options options = new Options();
        for (int i = 0; i < arguments.length; i += 2) {
            String option = arguments[i];
            if (i + 1 == arguments.length) {
                throw new IllegalArgumentException("option " + option + " needs a value, or does not exist");
            }
            options.set(option, arguments[i + 1]);
        }
        if (options.tenure > 0 && options.tenure > options.liveSet) {
            throw new IllegalArgumentException("--tenure replaces a part of --live-set and cannot be larger");
        }
        return options;
    }

    private void set(String option, String value) {
        try {
            switch (option) {
                case "--port" -> port = between(Integer.parseInt(value), 0, 65535);
                case "--address" -> address = value;
                case "--name" -> name = value;
                case "--index" -> index = Path.of(value);
                case "--http" -> {
                    if (!value.equals("jetty") && !value.equals("jdk")) {
                        throw new IllegalArgumentException("--http is jetty or jdk, not " + value);
                    }
                    http = value;
                }
                case "--threads" -> threads = between(Integer.parseInt(value), 1, 1024);
                case "--live-set" -> liveSet = size(value);
                case "--tenure" -> tenure = size(value);
                case "--garbage" -> garbage = size(value);
                case "--warm" -> warmSeconds = Double.parseDouble(value);
                default -> throw new IllegalArgumentException("there is no option " + option);
            }
        } catch (NumberFormatException e) {
            throw new IllegalArgumentException(option + ": not a number: " + value, e);
        }
    }

    private static int between(int value, int min, int max) {
        if (value < min || value > max) {
            throw new NumberFormatException();
        }
        return value;
    }

    /** "512", "64KiB", "120MiB", "1GiB". */
    static long size(String text) {
        String digits = text;
        int shift = 0;
        String[] units = {"kib", "mib", "gib"};
        for (int i = 0; i < units.length; i++) {
            if (text.toLowerCase(Locale.ROOT).endsWith(units[i])) {
                digits = text.substring(0, text.length() - 3);
                shift = 10 * (i + 1);
            }
        }
        long value = Long.parseLong(digits);
        if (value < 0 || value > Long.MAX_VALUE >> shift + 8) {
            throw new NumberFormatException();
        }
        return value << shift;
    }
}
