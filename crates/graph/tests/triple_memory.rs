//! Triple terms are far longer written out than they are stored. However many a dump or a batch of
//! ids has, those in memory at the same time have so many bytes at most.

use std::io::{self, Write};
use std::sync::Arc;

use snowmelt_database::OpenOptions;
use snowmelt_graph::{
    BatchTerm, BlankNodes, DumpFormat, GraphDatabase, GraphError, MOST_TRIPLE_LEVELS, QuadBatch, TermId,
    TermKind, TermRef, TermSink,
};

/// A database that has this memory.
fn database(memory_bytes: u64) -> (tempfile::TempDir, Arc<GraphDatabase>) {
    let dir = tempfile::tempdir().unwrap();
    let options = OpenOptions { memory_bytes, direct: false, ..OpenOptions::default() };
    let database = GraphDatabase::create(&dir.path().join("db"), &[], &options).unwrap();
    (dir, database)
}

/// Triple terms within each other, all with this predicate.
fn chain(batch: &mut QuadBatch, predicate: BatchTerm, levels: usize) -> BatchTerm {
    let subject = batch.term(TermRef::Iri("u:s"));
    let object = batch.term(TermRef::Iri("u:o"));
    (0..levels).fold(object, |object, _| batch.triple([subject, predicate, object]))
}

/// Inserts so many quads whose objects are triple terms of the most levels, each of which differs
/// in the outermost one.
fn insert_deep(database: &Arc<GraphDatabase>, quads: usize, predicate_bytes: usize) {
    let mut batch = QuadBatch::new(0);
    let predicate = batch.term(TermRef::Iri(&format!("u:{}", "p".repeat(predicate_bytes))));
    let inner = chain(&mut batch, predicate, MOST_TRIPLE_LEVELS - 1);
    for n in 0..quads {
        let subject = batch.term(TermRef::Iri(&format!("u:{n}")));
        let object = batch.triple([subject, predicate, inner]);
        batch.push([subject, predicate, object, batch.id(TermId::DEFAULT_GRAPH)]);
    }
    insert(database, &batch);
}

fn insert(database: &Arc<GraphDatabase>, batch: &QuadBatch) {
    let mut txn = database.begin().unwrap();
    txn.insert(batch, &mut BlankNodes::default()).unwrap();
    txn.commit().unwrap();
}

/// Counts what is written.
#[derive(Default)]
struct Counted(u64);

impl Write for Counted {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_dump_holds_as_many_as_have_few_bytes() {
    let (_dir, database) = database(256 << 20);
    insert_deep(&database, 1500, 1000);
    for format in [DumpFormat::NQuads, DumpFormat::TriG] {
        let (mut out, mut quads) = (Counted::default(), 0);
        let most = allocation_counter::measure(|| quads = database.dump(format, &mut out).unwrap()).bytes_max;
        assert!(quads == 1500 && out.0 > 90 << 20, "{quads} quads in {} bytes", out.0);
        assert!(most < 20 << 20, "{most} bytes were held for {format:?}");
    }
}

/// One quad needs the memory of its terms, and a dump without that ends with the error.
#[test]
fn a_quad_beyond_the_memory_ends_a_dump() {
    let of = |memory: u64| {
        let (_dir, database) = database(memory);
        insert_deep(&database, 2, 300_000);
        let before = database.database().memory().used();
        let dumped = database.dump(DumpFormat::NQuads, &mut Counted::default());
        assert_eq!(database.database().memory().used(), before, "it is given back");
        dumped
    };
    assert_eq!(of(512 << 20).unwrap(), 2);
    let refused = of(40 << 20).unwrap_err();
    assert!(refused.is_of_memory(), "{refused}");
    assert!(refused.to_string().starts_with("a dump needs"), "{refused}");
}

/// The ids of all triple terms.
fn triple_ids(database: &Arc<GraphDatabase>) -> Vec<TermId> {
    let count = database.state().unwrap().triple_terms();
    (0..count).map(TermId::triple).collect()
}

#[test]
fn decoding_holds_as_many_as_have_few_bytes() {
    let (_dir, database) = database(256 << 20);
    let mut batch = QuadBatch::new(0);
    let [s, p] = ["u:s", "u:p"].map(|iri| batch.term(TermRef::Iri(iri)));
    for n in 0..3000 {
        let object = batch.term(TermRef::string(&format!("{n}{}", "x".repeat(8000))));
        let triple = batch.triple([s, p, object]);
        batch.push([s, p, triple, batch.id(TermId::DEFAULT_GRAPH)]);
    }
    insert(&database, &batch);
    let ids = triple_ids(&database);
    let mut session = database.session().unwrap();
    let mut seen = vec![0; ids.len()];
    let most = allocation_counter::measure(|| {
        session.decode(&ids, |at, term| seen[at] += usize::from(matches!(term, TermRef::Triple(_)))).unwrap();
    });
    assert!(seen == vec![1; 3000], "each once");
    assert!(most.bytes_max < 6 << 20, "{} bytes were held of 24 MB", most.bytes_max);
}

/// Room for terms, up to so many bytes.
struct Room {
    most: usize,
    asked: usize,
    taken: usize,
}

impl TermSink for Room {
    fn room(&mut self, bytes: usize) -> bool {
        self.asked = self.asked.max(bytes);
        bytes <= self.most
    }

    fn take(&mut self, _: usize, _: TermRef<'_>) -> bool {
        self.taken += 1;
        true
    }
}

#[test]
fn room_is_asked_for_before_a_term_is_made() {
    let (_dir, database) = database(256 << 20);
    insert_deep(&database, 1, 100_000);
    let mut session = database.session().unwrap();
    let deepest = triple_ids(&database).into_iter().next_back().unwrap();
    assert_eq!(deepest.kind(), TermKind::Triple);
    let mut decode = |most: usize| -> Result<(Room, u64), GraphError> {
        let mut room = Room { most, asked: 0, taken: 0 };
        let mut done = Ok(());
        let held = allocation_counter::measure(|| done = session.decode_into(&[deepest], &mut room));
        done.map(|()| (room, held.bytes_max))
    };
    let (room, held) = decode(usize::MAX).unwrap();
    assert!(room.taken == 1 && room.asked > 12_800_000, "{} bytes", room.asked);
    assert!((6_400_000..room.asked as u64).contains(&held), "{held} bytes of {}", room.asked);
    let (room, held) = decode(1 << 20).unwrap();
    assert!(room.taken == 0 && held < 1 << 20, "{held} bytes were held without room");
}
