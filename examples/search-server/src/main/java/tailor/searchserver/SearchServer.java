// SPDX-License-Identifier: Apache-2.0
package tailor.searchserver;

import java.net.InetSocketAddress;
import java.util.logging.Level;
import java.util.logging.Logger;
import org.apache.lucene.index.DirectoryReader;
import org.apache.lucene.search.IndexSearcher;

/** A search server over HTTP: open or build the index, fill the heap, listen, warm up, say so. */
public final class SearchServer {
    /** Held so that its level is not collected with it; Lucene would report at each start which vector code it chose. */
    private static final Logger LUCENE = Logger.getLogger("org.apache.lucene");

    private SearchServer() {}

    public static void main(String[] arguments) {
        Options options;
        try {
            if (arguments.length == 1 && arguments[0].equals("--help")) {
                System.out.print(Options.USAGE);
                return;
            }
            options = Options.parse(arguments);
        } catch (IllegalArgumentException e) {
            System.err.println("search-server: " + e.getMessage() + "; --help lists the options");
            System.exit(2);
            return;
        }
        LUCENE.setLevel(Level.SEVERE);
        try {
            serve(options);
        } catch (Exception | OutOfMemoryError e) {
            System.err.println("search-server: " + e);
            System.exit(1);
        }
    }

    private static void serve(Options options) throws Exception {
        DirectoryReader reader = DictionaryIndex.open(options.index);
        HeapLoad heap = new HeapLoad(options.liveSet, options.tenure, options.garbage);
        IndexSearcher searcher = new IndexSearcher(reader);
        searcher.setQueryCache(null); // a repeated query costs what the first one did
        Endpoints endpoints = new Endpoints(options.name, searcher, heap);
        InetSocketAddress address = new InetSocketAddress(options.address, options.port);
        int port = options.http.equals("jdk")
                ? JdkFront.start(address, options.threads, endpoints)
                : JettyFront.start(address, options.threads, endpoints);
        if (options.warmSeconds > 0) {
            long searches = WarmUp.run(address.getAddress(), port, options.warmSeconds);
            System.err.println("search-server: warmed up by " + searches + " searches");
            System.gc(); // each server starts with an equally full heap
        }
        System.out.println("listening " + address.getAddress().getHostAddress() + ":" + port);
        System.out.flush();
    }
}
