// SPDX-License-Identifier: Apache-2.0
package tailor.searchserver;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.channels.FileChannel;
import java.nio.channels.FileLock;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.StandardOpenOption;
import java.util.Comparator;
import java.util.List;
import java.util.stream.Stream;
import org.apache.lucene.analysis.en.EnglishAnalyzer;
import org.apache.lucene.document.Document;
import org.apache.lucene.document.Field;
import org.apache.lucene.document.StoredField;
import org.apache.lucene.document.StringField;
import org.apache.lucene.document.TextField;
import org.apache.lucene.index.DirectoryReader;
import org.apache.lucene.index.IndexWriter;
import org.apache.lucene.index.IndexWriterConfig;
import org.apache.lucene.store.Directory;
import org.apache.lucene.store.MMapDirectory;

/**
 * The Lucene index of the dictionaries, in a directory that any number of servers share. The first one builds it in a
 * directory of its own and renames that when it is complete, under a file lock, so that an index is either whole or absent.
 */
final class DictionaryIndex {
    static final String WORD = "word";
    static final String TEXT = "text";
    static final String DICTIONARY = "dictionary";

    private static final Path DICTIONARIES = Path.of("/usr/share/dictd");
    private static final List<String> NAMES = List.of("gcide", "wn");
    /** Changes with the fields, the analyzer or Lucene's format, so that an old index is left alone and a new one is made. */
    private static final String VERSION = "dictionaries-1";

    private DictionaryIndex() {}

    /** Opens the index in `home`, building it first if it is not there. */
    static DirectoryReader open(Path home) throws IOException {
        Path ready = home.resolve(VERSION);
        if (!Files.isDirectory(ready)) {
            buildOnce(home, ready);
        }
        return DirectoryReader.open(new MMapDirectory(ready));
    }

    private static void buildOnce(Path home, Path ready) throws IOException {
        Files.createDirectories(home);
        try (FileChannel file = FileChannel.open(home.resolve("lock"), StandardOpenOption.CREATE, StandardOpenOption.WRITE);
                FileLock lock = lock(file)) {
            if (!lock.isValid() || Files.isDirectory(ready)) {
                return; // another server built it while this one waited
            }
            Path draft = home.resolve(VERSION + ".building");
            deleteTree(draft); // of a server that was killed: whoever builds holds the lock
            build(draft);
            Files.move(draft, ready, StandardCopyOption.ATOMIC_MOVE);
        }
    }

    private static FileLock lock(FileChannel file) throws IOException {
        FileLock lock = file.tryLock();
        if (lock == null) {
            System.err.println("search-server: another server builds the index; waiting for it");
            lock = file.lock();
        }
        return lock;
    }

    private static void build(Path draft) throws IOException {
        long start = System.nanoTime();
        IndexWriterConfig config = new IndexWriterConfig(new EnglishAnalyzer());
        config.setRAMBufferSizeMB(32);
        config.setUseCompoundFile(false);
        int count = 0;
        try (Directory directory = new MMapDirectory(draft);
                IndexWriter writer = new IndexWriter(directory, config)) {
            for (String name : NAMES) {
                count += add(writer, name);
            }
            System.err.println("search-server: merging the index");
            writer.forceMerge(1); // the same cost for every query, on every machine
            writer.commit();
        }
        System.err.printf("search-server: indexed %d articles in %.1f s%n", count, (System.nanoTime() - start) / 1e9);
    }

    private static int add(IndexWriter writer, String name) throws IOException {
        DictdFile dictionary = new DictdFile(DICTIONARIES, name);
        if (!dictionary.exists()) {
            throw new IOException(DICTIONARIES + " has no dictionary \"" + name + "\"; install the package dict-" + name);
        }
        int[] count = {0};
        dictionary.forEach(entry -> {
            Document document = new Document();
            for (String headword : entry.headwords()) {
                document.add(new TextField(WORD, headword, Field.Store.YES));
                document.add(new TextField(TEXT, headword, Field.Store.NO));
            }
            document.add(new TextField(TEXT, entry.text(), Field.Store.NO));
            document.add(new StringField(DICTIONARY, name, Field.Store.NO));
            document.add(new StoredField(DICTIONARY, name));
            writer.addDocument(document);
            if (++count[0] % 25_000 == 0) {
                System.err.println("search-server: indexing " + name + ", " + count[0] + " articles");
            }
        });
        return count[0];
    }

    private static void deleteTree(Path root) throws IOException {
        if (!Files.exists(root)) {
            return;
        }
        try (Stream<Path> paths = Files.walk(root)) {
            paths.sorted(Comparator.reverseOrder()).forEach(path -> {
                try {
                    Files.delete(path);
                } catch (IOException e) {
                    throw new UncheckedIOException(e);
                }
            });
        }
    }
}
