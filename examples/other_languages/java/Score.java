// Score rows with librankcore from Java 22 or later, by its foreign functions.
//
//     javac Score.java
//     java --enable-native-access=ALL-UNNAMED Score LIBRARY MODEL < rows.svm

import static java.lang.foreign.ValueLayout.*;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.SymbolLookup;
import java.lang.invoke.MethodHandle;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

@SuppressWarnings("restricted") // of the package that the option above allows
public class Score {
    static final int UNSUPPORTED = 4, ROOM = 200;
    static SymbolLookup library;

    static MethodHandle function(String name, MemoryLayout result, MemoryLayout... arguments) {
        var type = result == null ? FunctionDescriptor.ofVoid(arguments) : FunctionDescriptor.of(result, arguments);
        return Linker.nativeLinker().downcallHandle(library.find("rankcore_" + name).orElseThrow(), type);
    }

    static void check(int code) throws Throwable {
        if (code == 0) return;
        var words = (MemorySegment) function("message", ADDRESS, JAVA_INT).invokeExact(code);
        throw new IllegalArgumentException(words.reinterpret(Long.MAX_VALUE).getString(0));
    }

    static void score(Arena arena, String path) throws Throwable {
        var open = function("open", ADDRESS, ADDRESS, ADDRESS, JAVA_LONG);
        var close = function("close", null, ADDRESS);
        var nRanks = function("n_ranks", JAVA_INT, ADDRESS);
        var label = function("label", JAVA_LONG, ADDRESS, JAVA_INT, ADDRESS, JAVA_LONG);
        var csr = function("csr", JAVA_INT, ADDRESS, ADDRESS, ADDRESS, ADDRESS, JAVA_LONG, ADDRESS, ADDRESS);
        var probabilities = function("csr_probabilities", JAVA_INT,
            ADDRESS, ADDRESS, ADDRESS, ADDRESS, JAVA_LONG, ADDRESS);
        var text = arena.allocate(ROOM);
        var model = (MemorySegment) open.invokeExact(arena.allocateFrom(path), text, (long) ROOM);
        if (model.address() == 0) throw new IllegalArgumentException(path + ": " + text.getString(0));
        try {
            var values = new ArrayList<Double>();
            var columns = new ArrayList<Integer>();
            var offsets = new ArrayList<Long>(List.of(0L));
            var lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
            for (String line; (line = lines.readLine()) != null; ) {
                var items = line.split("#", 2)[0].strip().split("\\s+");
                if (items[0].isEmpty()) continue;
                for (var item : List.of(items).subList(1, items.length)) { // the first is the label
                    var pair = item.split(":");
                    if (pair[0].equals("qid")) continue;
                    columns.add(Integer.parseInt(pair[0]) - 1);
                    values.add(Double.parseDouble(pair[1]));
                }
                offsets.add((long) values.size());
            }
            int n = offsets.size() - 1, k = (int) nRanks.invokeExact(model);
            var v = arena.allocateFrom(JAVA_DOUBLE, values.stream().mapToDouble(x -> x).toArray());
            var c = arena.allocateFrom(JAVA_INT, columns.stream().mapToInt(x -> x).toArray());
            var o = arena.allocateFrom(JAVA_LONG, offsets.stream().mapToLong(x -> x).toArray());
            var scores = arena.allocate(JAVA_DOUBLE, n + 1);
            var ranks = arena.allocate(JAVA_INT, n + 1);
            var table = arena.allocate(JAVA_DOUBLE, (long) n * k + 1);
            var to = k > 0 ? ranks : MemorySegment.NULL;
            check((int) csr.invokeExact(model, v, c, o, (long) n, scores, to));
            int code = (int) probabilities.invokeExact(model, v, c, o, (long) n, table);
            if (code != UNSUPPORTED) check(code);
            var out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
            for (int i = 0; i < n; i++) {
                if (k > 0) label.invoke(model, ranks.getAtIndex(JAVA_INT, i), text, (long) ROOM);
                out.print(scores.getAtIndex(JAVA_DOUBLE, i) + " " + (k > 0 ? text.getString(0) : "-"));
                for (long j = (long) i * k; code == 0 && j < (long) (i + 1) * k; j++)
                    out.print(" " + table.getAtIndex(JAVA_DOUBLE, j));
                out.println();
            }
            out.flush();
        } finally {
            close.invokeExact(model);
        }
    }

    public static void main(String[] arguments) throws Throwable {
        try (var arena = Arena.ofConfined()) {
            library = SymbolLookup.libraryLookup(Path.of(arguments[0]), arena);
            score(arena, arguments[1]);
        } catch (IllegalArgumentException error) {
            System.err.println(error.getMessage());
            System.exit(1);
        }
    }
}
