// SPDX-License-Identifier: Apache-2.0
package tailor.searchserver;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.zip.GZIPOutputStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class DictdFileTest {
    @TempDir
    Path directory;

    private DictdFile dictionary(String index, String text) throws IOException {
        Files.writeString(directory.resolve("test.index"), index);
        try (OutputStream out = new GZIPOutputStream(Files.newOutputStream(directory.resolve("test.dict.dz")))) {
            out.write(text.getBytes(StandardCharsets.UTF_8));
        }
        return new DictdFile(directory, "test");
    }

    private static List<DictdFile.Entry> read(DictdFile dictionary) throws IOException {
        List<DictdFile.Entry> entries = new ArrayList<>();
        dictionary.forEach(entries::add);
        return entries;
    }

    @Test
    void numbersAreBase64WithTheMostSignificantDigitFirst() throws IOException {
        assertEquals(0, DictdFile.parseNumber("A"));
        assertEquals(38, DictdFile.parseNumber("m"));
        assertEquals(63, DictdFile.parseNumber("/"));
        assertEquals(64, DictdFile.parseNumber("BA"));
        assertEquals(4 * 64 + 21, DictdFile.parseNumber("EV"));
        assertThrows(IOException.class, () -> DictdFile.parseNumber("a b"));
        assertThrows(IOException.class, () -> DictdFile.parseNumber(""));
        assertThrows(IOException.class, () -> DictdFile.parseNumber("//////"));
    }

    @Test
    void headwordsOfOneArticleAreReadTogetherAndTheDatabaseItselfIsSkipped() throws IOException {
        // "about" 0..5, "cat: an animal" 5..19
        List<DictdFile.Entry> entries =
                read(dictionary("00-database-info\tA\tF\ncat\tF\tO\nkitten\tF\tO\ncat\tF\tO\n", "aboutcat: an animal"));
        assertEquals(List.of(new DictdFile.Entry(List.of("cat", "kitten"), "cat: an animal")), entries);
    }

    @Test
    void anEntryBehindTheEndOfTheTextIsAnError() throws IOException {
        DictdFile dictionary = dictionary("cat\tA\tBA\n", "short");
        assertTrue(assertThrows(IOException.class, () -> read(dictionary)).getMessage().contains("cat"));
    }

    @Test
    void aLineWithoutItsNumbersIsAnErrorThatNamesTheLine() throws IOException {
        DictdFile dictionary = dictionary("cat\tA\tB\ndog\n", "short");
        assertTrue(assertThrows(IOException.class, () -> read(dictionary)).getMessage().contains(":2:"));
    }
}
