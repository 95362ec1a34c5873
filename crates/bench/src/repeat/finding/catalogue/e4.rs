//! E4: the requests that the device receives.

use super::{Question, above_one, size};

const PIECES: &str =
    "Buffered, the kernel issues 4 KiB pieces whatever size was asked: 2.86 M for 8 KiB, 4.83 M for 16 KiB";
const ALIGNED: &str = "alignment is a parameter of the experiment (aligned: 2 and 4)";
const CACHED: &str = "reads of half a minute leave up to a tenth of the device in the page cache, and a page there is \
                      not read again";

/// Its questions.
pub const E4: &[Question] = &[
    Question {
        id: "e4-buffered-8k-512",
        asks: "Device reads for each buffered read of 8 KiB at a multiple of 512 bytes?",
        published: "2.86",
        source: PIECES,
        unit: "requests per read",
        rule: size(2.86, 1.0, 1.1, 0.0),
        because: CACHED,
        unmeasured: None,
    },
    Question {
        id: "e4-buffered-16k-512",
        asks: "And for each of 16 KiB?",
        published: "4.83",
        source: PIECES,
        unit: "requests per read",
        rule: size(4.83, 1.0, 1.1, 0.0),
        because: CACHED,
        unmeasured: None,
    },
    Question {
        id: "e4-buffered-8k",
        asks: "Device reads for each aligned buffered read of 8 KiB?",
        published: "2, computed",
        source: ALIGNED,
        unit: "requests per read",
        rule: size(2.0, 1.0, 1.1, 0.0),
        because: CACHED,
        unmeasured: None,
    },
    Question {
        id: "e4-buffered-16k",
        asks: "And for each of 16 KiB?",
        published: "4, computed",
        source: ALIGNED,
        unit: "requests per read",
        rule: size(4.0, 1.0, 1.1, 0.0),
        because: CACHED,
        unmeasured: None,
    },
    Question {
        id: "e4-direct-splits",
        asks: "Reads of an array's drives for each direct read of 8 KiB at a multiple of 512 bytes?",
        published: "1.172, with chunks of 64 KiB",
        source: "8 KiB requests arrive whole, a few split at chunk borders (1,172 K device reads for 1 M).",
        unit: "requests per read",
        rule: size(1.172, 1.0, 2.0, 0.0),
        because: "15 of the 128 offsets in a chunk cut a read, which makes 1.117; the publication does not say why it \
                  counted more",
        unmeasured: None,
    },
    Question {
        id: "e4-speed",
        asks: "How many times as many reads of 8 KiB per second are there direct as buffered?",
        published: "1.64: 4578 and 2787",
        source: "With O_DIRECT: 4578 IOPS, 37.5 MB/s, steady. Without: 2787 IOPS, 22.8 MB/s",
        unit: "times",
        rule: size(4578.0 / 2787.0, 1.0, 1.5, 0.1),
        because: "pieces that are read side by side would make 1, one after the other 2.86: 1.43 to 1.96 is neither",
        unmeasured: None,
    },
    Question {
        id: "e4-unsteady",
        asks: "How many times as much do buffered reads vary from interval to interval as direct ones?",
        published: "more: direct reads are steady, buffered ones are disturbed",
        source: "Without: 2787 IOPS, 22.8 MB/s, with the same disturbance",
        unit: "times the variation of direct reads",
        rule: above_one(0.25),
        because: "no figure was published; two variations of the same load differ by a quarter by chance",
        unmeasured: None,
    },
    Question {
        id: "e4-index-scan",
        asks: "How many bytes has a request beneath TPC-H's query 1 by an index scan, read-ahead off?",
        published: "4096: pieces of 4 KiB of reads of 8 KiB, as of random reads",
        source: "Buffered, the kernel issues 4 KiB pieces whatever size was asked",
        unit: "bytes",
        rule: size(4096.0, 8192.0, 1.1, 0.0),
        because: "requests come whole or in pieces; a tenth is for neighbours that happened to be merged",
        unmeasured: None,
    },
    Question {
        id: "e4-index-scan-unsteady",
        asks: "How many times as much does its throughput vary from second to second as that of direct reads?",
        published: "more: unstable from second to second",
        source: "showed disturbed I/O (throughput unstable from second to second)",
        unit: "times the variation of direct reads",
        rule: above_one(0.25),
        because: "no figure was published; two variations of the same load differ by a quarter by chance",
        unmeasured: None,
    },
];
