//! E5: parallel full scans under each I/O scheduler.

use super::{NOTHING, OPEN, Question, above_one, size};

const DIRECT: &str =
    "With asynchronous + direct I/O under anticipatory: DOP 1: 65 s, 2: 101, 3: 110 (linearity lost).";
const AHEAD: &str = "Read-ahead 0: 53, 60, 64, 88, 124 s at DOP 1 to 5. Read-ahead 2 MB: 61, 61, 64, 92, 90, 89, 97, 102 at DOP 1 to 8.";
const DRIVES: &str =
    "single runs on one drive of 2006: its own series jumps by a third from one degree to the next";

/// Its questions.
pub const E5: &[Question] = &[
    Question {
        id: "e5-rise",
        asks: "From one worker to two, how many times the time under none, mq-deadline and bfq, for that under the \
               anticipatory relative?",
        published: "more: sharp under noop, deadline and CFQ, far less under the anticipatory one",
        source: "The other three rise sharply from 1 to 2, anticipatory far less (the graph itself is not preserved).",
        unit: "times the rise under the anticipatory relative",
        rule: above_one(0.1),
        because: "no figure is preserved; the least of the three rises must be larger by more than a tenth",
        unmeasured: None,
    },
    Question {
        id: "e5-anticipatory-2",
        asks: "Direct, under the anticipatory one: how many times the time of one worker do two take?",
        published: "1.55: 101 s against 65",
        source: DIRECT,
        unit: "times",
        rule: size(101.0 / 65.0, 1.0, 1.5, 0.1),
        because: DRIVES,
        unmeasured: None,
    },
    Question {
        id: "e5-anticipatory-3",
        asks: "And three?",
        published: "1.69: 110 s against 65",
        source: DIRECT,
        unit: "times",
        rule: size(110.0 / 65.0, 1.0, 1.5, 0.1),
        because: DRIVES,
        unmeasured: None,
    },
    Question {
        id: "e5-ahead-none",
        asks: "Buffered without read-ahead: how many times the time of one worker do five take?",
        published: "2.34: 124 s against 53",
        source: AHEAD,
        unit: "times",
        rule: size(124.0 / 53.0, 1.0, 1.5, 0.1),
        because: DRIVES,
        unmeasured: None,
    },
    Question {
        id: "e5-ahead-2m",
        asks: "And with a read-ahead of 2 MiB?",
        published: "1.48: 90 s against 61",
        source: AHEAD,
        unit: "times",
        rule: size(90.0 / 61.0, 1.0, 1.5, 0.1),
        because: DRIVES,
        unmeasured: None,
    },
    Question {
        id: "e5-waits",
        asks: "By 30 workers, which share of the processors' time is I/O wait?",
        published: "0.6, with 10 % user, 10 % system, 20 % idle",
        source: "At DOP 30: 10 % user, 10 % system, 60 % I/O wait, 20 % idle.",
        unit: "share of time",
        rule: size(0.6, 0.0, 1.5, 0.0),
        because: "I/O wait depends on the number of processors, which was not published: half as much again",
        unmeasured: Some("the number of processors there is not known: snowmelt-lab watch shows ours"),
    },
    Question {
        id: "e5-shared",
        asks: "Do workers that share the scan need a scheduler at all?",
        published: "not asked",
        source: "",
        unit: "times the seconds of ranges, by 8 workers under none",
        rule: OPEN,
        because: NOTHING,
        unmeasured: None,
    },
    Question {
        id: "e5-postgresql",
        asks: "PostgreSQL by 8 processes under the anticipatory relative: how many times the time of ranges does \
               sharing blocks take?",
        published: "not asked",
        source: "",
        unit: "times",
        rule: OPEN,
        because: NOTHING,
        unmeasured: None,
    },
];
