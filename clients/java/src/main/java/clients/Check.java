package clients;

import java.util.Objects;
import java.util.function.IntSupplier;

/** Assertions that name the case, and the two values that differ. */
final class Check {
    private static int count;

    private Check() {}

    static void same(String what, Object expected, Object got) {
        count++;
        if (!Objects.equals(expected, got)) {
            throw new AssertionError(what + "\n  expected: " + expected + "\n  got:      " + got);
        }
    }

    static void yes(String what, boolean holds) {
        same(what, true, holds);
    }

    /** The status that a request ends with, read from its failure. */
    static void fails(String what, int status, Runnable request, IntSupplier got) {
        try {
            request.run();
        } catch (RuntimeException e) {
            same(what, status, got.getAsInt());
            return;
        }
        throw new AssertionError(what + "\n  expected: status " + status + "\n  got:      success");
    }

    static void passed() {
        System.out.println(count + " checks");
    }
}
