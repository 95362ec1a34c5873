//! E3: restart after a crash on wide but slow storage.

use super::{NOTHING, OPEN, Question, above_one, at_most, size};

/// Its questions.
pub const E3: &[Question] = &[
    Question {
        id: "e3-journal-ahead",
        asks: "How many times as fast is a journal read when many pieces are asked for at once?",
        published: "faster: serial reads of 32 KiB were the first thing to be mended",
        source: "Journals (at most 64 MB each) used to be read serially, 32 KB at a time. Fix 1: prefetch the whole \
                 journal file at once.",
        unit: "times the serial rate",
        rule: above_one(0.1),
        because: "no gain was published; 10 % is more than two runs of the same differ on a modelled volume",
        unmeasured: None,
    },
    Question {
        id: "e3-scattered",
        asks: "How fast are scattered writes of 4 KiB, by the best of all ways?",
        published: "never above 3 MB/s",
        source: "scattered 4 KiB page writes (1 GB) never beat 3 MB/s whatever the API",
        unit: "MB/s",
        rule: at_most(3.0, 0.0, 1.1),
        because: "the bound is a rounded figure; the volume is modelled, so the finding is that no way gets around it",
        unmeasured: None,
    },
    Question {
        id: "e3-sync-once",
        asks: "How many times as fast are writes through a map with one sync instead of one per journal?",
        published: "faster, and still too slow",
        source: "First tried: one sync for the whole recovery instead of one per journal; helped, still too expensive.",
        unit: "times the rate with a sync per journal",
        rule: above_one(0.05),
        because: "\"helped\" has no figure; two runs of the same way differ by less than 5 % on a modelled volume",
        unmeasured: None,
    },
    Question {
        id: "e3-targets-ahead",
        asks: "How many times as fast are changes through a memory map when their places are read ahead?",
        published: "faster: one page fault after the other was the limit",
        source: "Writing through the map page-faulted the targets one by one at 3 MB/s. Fix 3: compute all target \
                 addresses first and prefetch them (with neighbours), then write.",
        unit: "times the rate without",
        rule: above_one(0.1),
        because: "no gain was published; 10 % is more than two runs of the same differ on a modelled volume",
        unmeasured: None,
    },
    Question {
        id: "e3-copy",
        asks: "How fast is a plain copy?",
        published: "10 MB/s at most",
        source: "a plain copy peaks at about 10 MB per second",
        unit: "MB/s",
        rule: size(10.0, 0.0, 1.5, 0.0),
        because: "\"about\", and the peak of one volume; it is modelled with this rate of writes, so the finding is what \
                  the reads of the copy cost beside them",
        unmeasured: None,
    },
    Question {
        id: "e3-restart",
        asks: "How long from the start after a crash to the first right answer?",
        published: "no time: before it was mended the sync of a data file of 45 GB took minutes",
        source: "Syncing a 45 GB data file took multiple minutes.",
        unit: "s",
        rule: OPEN,
        because: NOTHING,
        unmeasured: None,
    },
    Question {
        id: "e3-restart-postgresql",
        asks: "And PostgreSQL, with the same changes as rows?",
        published: "not published",
        source: "",
        unit: "s",
        rule: OPEN,
        because: NOTHING,
        unmeasured: None,
    },
    Question {
        id: "e3-restart-virtuoso",
        asks: "And Virtuoso, with the same changes?",
        published: "not published",
        source: "",
        unit: "s",
        rule: OPEN,
        because: NOTHING,
        unmeasured: None,
    },
];
