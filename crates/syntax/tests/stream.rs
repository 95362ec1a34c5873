//! An update read as a stream is the one read whole, wherever it is cut, in bounded memory.

use std::convert::Infallible;
use std::io::Read;

use snowmelt_syntax::tree::{Operation, Quad};
use snowmelt_syntax::{BATCH_QUADS, ErrorCode, Limits, ParseOptions, StreamError, parse_update, read_update};

const TEXT: &str = "PREFIX e: <http://e.example/é/> # ;\n\
    INSERT DATA { e:a e:p 1, 2.5, -3e1 ; e:q [ a e:t ] , ( 'x' \"\"\"y\"z\n\"\"\"@en ) . GRAPH e:g { _:b e:p <u:\\u00e9> , 'c;}'^^e:d } e:a e:b e:c } ;\n\
    PREFIX e: <http://f.example/> DELETE { ?s ?p ?o } INSERT { GRAPH ?s { ?o e:p 'é' } } WHERE { ?s ?p ?o FILTER(?o < 3 && ?s != e:a) } ;\n\
    DELETE DATA { e:a e:p e:b.c } ; COPY SILENT e:g TO DEFAULT ; CLEAR ALL";

/// A reader of parts of a length, but for the first.
struct Parts<'a> {
    rest: &'a [u8],
    first: usize,
    others: usize,
}

impl Read for Parts<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let wanted = std::mem::replace(&mut self.first, self.others).max(1);
        let len = wanted.min(buffer.len()).min(self.rest.len());
        let (now, later) = self.rest.split_at(len);
        buffer[..len].copy_from_slice(now);
        self.rest = later;
        Ok(len)
    }
}

/// The operations, with the parts of data put together.
fn read(reader: &mut dyn Read, batch: usize) -> Vec<Operation> {
    let mut all: Vec<Operation> = Vec::new();
    let taken = read_update(reader, &ParseOptions::default(), batch, |operation| {
        match (all.last_mut(), operation.operation, operation.goes_on) {
            (Some(Operation::InsertData(quads)), Operation::InsertData(more), true)
            | (Some(Operation::DeleteData(quads)), Operation::DeleteData(more), true) => quads.extend(more),
            (_, operation, goes_on) => {
                assert!(!goes_on);
                all.push(operation);
            }
        }
        Ok::<(), Infallible>(())
    });
    taken.unwrap();
    all
}

#[test]
fn a_stream_cut_anywhere_is_the_whole() {
    let whole = parse_update(TEXT, &ParseOptions::default()).unwrap();
    let whole: Vec<Operation> = whole.operations.into_iter().map(|operation| operation.operation).collect();
    assert_eq!(whole.len(), 6);
    for cut in 1..=TEXT.len() {
        let mut reader = Parts { rest: TEXT.as_bytes(), first: cut, others: TEXT.len() };
        assert_eq!(read(&mut reader, BATCH_QUADS), whole, "cut at {cut}");
    }
    for (others, batch) in [(1, 1), (2, 3), (7, 2), (1000, 1)] {
        let mut reader = Parts { rest: TEXT.as_bytes(), first: others, others };
        assert_eq!(read(&mut reader, batch), whole, "parts of {others}, batches of {batch}");
    }
}

#[test]
fn places_are_those_of_the_whole() {
    let (lines, line) = ("CLEAR ALL ;\n".repeat(20_000), "CLEAR ALL ; ".repeat(20_000));
    for (text, place) in [
        (format!("{lines}\n  CLEAR ALLL"), (20_002, 9)),
        (format!("{line}CLEAR ALLL"), (1, 240_007)),
        (format!("{lines}é {line}CLEAR ALLL").replace("é", "# é\n"), (20_002, 240_008)),
    ] {
        let whole = parse_update(&text, &ParseOptions::default()).unwrap_err();
        let mut reader = Parts { rest: text.as_bytes(), first: 5, others: 1000 };
        let read = read_update(&mut reader, &ParseOptions::default(), 10, |_| Ok::<(), Infallible>(()));
        let Err(StreamError::Syntax(error)) = read else { panic!("{read:?}") };
        assert_eq!((error.line, error.column, error.span), (whole.line, whole.column, whole.span), "{error}");
        assert_eq!((error.line, error.column), place);
    }
}

#[test]
fn errors_of_stream_and_sink_end_it() {
    let options = ParseOptions::default();
    let mut half = &b"INSERT DATA { <u:a> <u:b> '\xC3"[..];
    let read = read_update(&mut half, &options, 10, |_| Ok::<(), Infallible>(()));
    assert!(
        matches!(&read, Err(StreamError::Syntax(error)) if error.code == ErrorCode::Encoding),
        "{read:?}"
    );
    let mut ended = 0;
    let read = read_update(&mut "CLEAR ALL ; CLEAR ALL ; CLEAR ALL".as_bytes(), &options, 10, |_| {
        ended += 1;
        if ended == 2 { Err("enough") } else { Ok(()) }
    });
    assert!(matches!(read, Err(StreamError::Sink("enough"))) && ended == 2);
    struct Broken;
    impl Read for Broken {
        fn read(&mut self, _: &mut [u8]) -> std::io::Result<usize> {
            Err(std::io::Error::other("gone"))
        }
    }
    let read = read_update(&mut Broken, &options, 10, |_| Ok::<(), Infallible>(()));
    assert!(matches!(read, Err(StreamError::Read(_))), "{read:?}");
    let limits = Limits { token_bytes: 1 << 20, ..Limits::default() };
    let long = format!("INSERT DATA {{ <u:a> <u:b> '{}' }}", "x".repeat(2 << 20));
    let read = read_update(&mut long.as_bytes(), &ParseOptions { limits, ..options }, 10, |_| {
        Ok::<(), Infallible>(())
    });
    assert!(matches!(&read, Err(StreamError::Syntax(error)) if error.code == ErrorCode::Limit), "{read:?}");
}

/// Text without end, but for its length.
struct Endless {
    begun: bool,
    left: usize,
    line: &'static [u8],
    ends: &'static [u8],
}

impl Read for Endless {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let begin = &b"INSERT DATA { <u:s> <u:p> 0 "[..];
        if !std::mem::replace(&mut self.begun, true) {
            buffer[..begin.len()].copy_from_slice(begin);
            return Ok(begin.len());
        }
        if self.left == 0 {
            let ends = std::mem::take(&mut self.ends);
            buffer[..ends.len()].copy_from_slice(ends);
            return Ok(ends.len());
        }
        let lines = (buffer.len() / self.line.len()).min(self.left);
        for to in buffer.chunks_exact_mut(self.line.len()).take(lines) {
            to.copy_from_slice(self.line);
        }
        self.left -= lines;
        Ok(lines * self.line.len())
    }
}

/// Bytes of a long stream: 20 MB, or as many as `SNOWMELT_STREAM_MB` says.
fn stream_bytes() -> usize {
    let megabytes = std::env::var("SNOWMELT_STREAM_MB").ok().and_then(|n| n.parse().ok());
    megabytes.unwrap_or(20) << 20
}

/// One operation, in the ways that its data can be long.
#[test]
fn a_long_stream_takes_bounded_memory() {
    for (line, ends) in [
        (&b". <http://example.org/subject> <http://example.org/p> 'object'@en \n"[..], &b"}"[..]),
        (&b", 'one more object of the same subject and predicate' "[..], &b"}"[..]),
        (&b"; <http://example.org/another/predicate> <http://example.org/o> "[..], &b"}"[..]),
        (&b". [] <http://example.org/p> [ <http://example.org/q> 1 , 2 , 3 ] \n"[..], &b"}"[..]),
    ] {
        let lines = stream_bytes() / line.len();
        let mut reader = Endless { begun: false, left: lines, line, ends };
        let mut quads: usize = 0;
        let count = |quads: &[Quad]| quads.len();
        let info = allocation_counter::measure(|| {
            let read = read_update(&mut reader, &ParseOptions::default(), BATCH_QUADS, |operation| {
                if let Operation::InsertData(data) = &operation.operation {
                    quads += count(data);
                }
                Ok::<(), Infallible>(())
            });
            read.unwrap();
        });
        assert!(quads > lines, "{quads} quads of {lines} lines");
        assert!(info.bytes_max < 16 << 20, "{} bytes: {}", info.bytes_max, String::from_utf8_lossy(line));
    }
}
