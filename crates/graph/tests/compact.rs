//! Reclaiming terms without quads: answers stay, dead terms go and files shrink, beside writers and
//! readers. Interruptions and power cuts leave one generation or the other, and no remains of a
//! half-made one.

#[path = "support/world.rs"]
mod world;

use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use snowmelt_base::test_seed;
use snowmelt_database::{OpenOptions, WaitFor};
use snowmelt_graph::load::{LoadOptions, LoadSizes, Source, load, load_into};
use snowmelt_graph::{
    Columns, CompactOptions, CompactStep, CompactTerms, DumpFormat, GraphDatabase, GraphError, Index, TermId,
    TermRef, TermsCompacted,
};
use snowmelt_io::PowerDisk;
use snowmelt_store::{Background, FileOpener, JournalConfig, ReadAhead, Seams, StoreError};
use tempfile::TempDir;
use world::*;

/// Number of terms in the dictionary, and of those in quads.
fn terms(database: &Arc<GraphDatabase>) -> (u64, u64) {
    let mut session = database.session().unwrap();
    let mut live = BTreeSet::new();
    for index in [Index::Sp, Index::Op, Index::Gs] {
        let mut rows = Columns::new(2);
        let mut scan = session.scan(index, &[], None);
        while scan.next(&mut session, &mut rows, 1000).unwrap() {}
        live.extend(rows.cols.iter().flatten().map(|id| TermId(*id)).filter(|id| id.kind().is_dictionary()));
    }
    (session.state().terms(), live.len() as u64)
}

/// Bytes of a fresh load of the same quads.
fn fresh_bytes(database: &Arc<GraphDatabase>) -> u64 {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("fresh.nq");
    let mut file = std::fs::File::create(&path).unwrap();
    database.dump(DumpFormat::NQuads, &mut file).unwrap();
    let options = LoadOptions { store: options(), threads: 2, ..LoadOptions::default() };
    load(&dir.path().join("db"), vec![Source::File(path)], &options, &(), &AtomicBool::new(false)).unwrap();
    stripe_bytes(&dir.path().join("db"))
}

fn stripe_bytes(dir: &Path) -> u64 {
    std::fs::metadata(dir.join("stripe-0")).unwrap().len()
}

fn near_a_fresh_load(database: &Arc<GraphDatabase>, dir: &TempDir) {
    let (size, fresh) = (stripe_bytes(&dir.path().join("db")), fresh_bytes(database));
    assert!(size * 10 <= fresh * 11, "{size} bytes, a fresh load has {fresh}");
}

#[test]
fn dead_terms_go_and_answers_stay() {
    over_seeds(3, |seed| {
        let (dir, database) = database();
        let mut world = World::new(database, seed);
        world.churn();
        world.is_right();
        let (before, live) = terms(&world.database);
        assert!(before > 3 * live, "{before} terms for {live}");
        let reclaimed = world.compact();
        assert_eq!(reclaimed, TermsCompacted::Reclaimed { before, after: live, kept_bytes: 0 });
        assert_eq!(terms(&world.database), (live, live));
        world.is_right();
        near_a_fresh_load(&world.database, &dir);
        // The database can be changed further, and opened again.
        (0..20).for_each(|_| world.change());
        world.is_right();
        let World { database, model, .. } = world;
        drop(database);
        let database = GraphDatabase::open(&dir.path().join("db"), &options()).unwrap();
        World { model, ..World::new(database, seed) }.is_right();
    });
}

/// A server with little memory can compact, too: in smaller pieces, within its budget.
#[test]
fn small_budgets_are_enough() {
    for memory_bytes in [64 << 20, 128 << 20] {
        let dir = tempfile::tempdir().unwrap();
        let database =
            GraphDatabase::create(&dir.path().join("db"), &[], &OpenOptions { memory_bytes, ..options() })
                .unwrap();
        let mut world = World::new(database, test_seed(17));
        world.churn();
        let (before, live) = terms(&world.database);
        let asked = CompactOptions { terms: CompactTerms::Always, ..CompactOptions::default() };
        let done = world.database.compact(&asked, |_| ControlFlow::Continue(())).unwrap();
        assert_eq!(done.terms, TermsCompacted::Reclaimed { before, after: live, kept_bytes: 0 });
        world.is_right();
        assert!(world.database.database().memory().peak() <= memory_bytes);
        near_a_fresh_load(&world.database, &dir);
    }
}

/// The files are never longer after a compaction than before.
#[test]
fn no_stripe_is_longer_afterwards() {
    over_seeds(6, |seed| {
        let (_dir, database) = database();
        let mut world = World::new(database, seed);
        for terms in [CompactTerms::Never, CompactTerms::Auto] {
            for round in 0..6 {
                world.change();
                if round % 2 == 0 {
                    let quads = world.quads(2000);
                    world.insert(quads);
                    world.delete(300);
                }
                world.database.database().store().checkpoint().unwrap();
                let asked = CompactOptions { terms, ..small() };
                let done = world.database.compact(&asked, |_| ControlFlow::Continue(())).unwrap();
                let (before, after) = (done.before_bytes, done.after_bytes);
                assert!(after <= before, "{after} bytes of {before}, round {round}, {terms:?}");
            }
        }
        world.is_right();
    });
}

/// A compaction right after another one finds nothing to do, also where nothing was written back
/// before the first.
#[test]
fn a_second_one_changes_no_size() {
    over_seeds(6, |seed| {
        let (_dir, database) = database();
        let mut world = World::new(database, seed);
        for terms in [CompactTerms::Never, CompactTerms::Auto, CompactTerms::Always] {
            let asked = CompactOptions { terms, ..small() };
            for round in 0..4 {
                world.range = 3000;
                let quads = world.quads(3000);
                world.insert(quads);
                // Pages that a reader still sees are free only after a checkpoint at its end.
                let reader = (round % 4 > 1).then(|| world.database.session().unwrap());
                match round % 2 {
                    0 => world.delete(2500),
                    _ => world.clear_all(),
                }
                if reader.is_some() {
                    world.database.compact(&asked, |_| ControlFlow::Continue(())).unwrap();
                }
                drop(reader);
                let [first, second] = [0, 1].map(|_| {
                    world.database.compact(&asked, |_| ControlFlow::Continue(())).unwrap().after_bytes
                });
                assert_eq!(first, second, "round {round}, {terms:?}");
            }
        }
        world.is_right();
    });
}

/// Extents that were used by trees before leave no holes, however near to the end the last live
/// one lies, and readers of before keep what they see.
#[test]
fn an_extent_near_the_end_does_not_keep_the_file() {
    over_seeds(4, |seed| {
        let (dir, database) = database();
        let mut world = World::new(database, seed);
        for _ in 0..8 {
            world.churn();
            world.clear_all();
        }
        world.churn();
        let (old, want) = (world.database.session().unwrap(), world.want());
        (0..10).for_each(|_| world.change());
        let asked = CompactOptions { terms: CompactTerms::Never, ..small() };
        let compact = |world: &World| world.database.compact(&asked, |_| ControlFlow::Continue(())).unwrap();
        compact(&world);
        assert_eq!(lines_of(old), want);
        world.is_right();
        let done = compact(&world);
        assert_eq!(done.after_bytes, stripe_bytes(&dir.path().join("db")));
        let store = world.database.database().store();
        let extents = store.extents();
        let live: Vec<_> = extents.iter().filter(|(_, extent)| extent.tree.is_some()).collect();
        let last = live.iter().map(|(id, _)| id + 1).max().unwrap();
        assert_eq!(last, live.len() as u64, "no extent is free in front of one in use");
        let pages = |words: &[u64]| words.iter().map(|word| u64::from(word.count_ones())).sum::<u64>();
        let used: u64 = live.iter().map(|(_, extent)| pages(&extent.allocated)).sum();
        // two neighbours have more than 7 of 16 pages in use
        let trees = store.catalog_all().trees.len() as u64;
        let most = ((2 * used).div_ceil(7) + 2 * trees + 4) * store.geometry().extent_bytes();
        assert!(done.after_bytes <= most, "{} bytes for {used} pages", done.after_bytes);
        world.is_right();
    });
}

/// A compaction that waits for a writer reports it, and ends when asked to.
#[test]
fn it_can_be_stopped_while_it_waits() {
    let (_dir, database) = database();
    let mut world = World::new(database, test_seed(5));
    world.churn();
    let writer = world.database.begin().unwrap();
    let mut waits = Vec::new();
    let done = world.database.compact(&small(), |step| match step {
        CompactStep::Waiting(what) => {
            waits.push(what);
            if waits.len() < 3 { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        }
        _ => ControlFlow::Continue(()),
    });
    assert!(matches!(done, Err(GraphError::Stopped)), "{done:?}");
    assert_eq!(waits, [WaitFor::Turn; 3]);
    drop(writer);
    world.compact();
    world.is_right();
}

/// If there is too little memory for new numbers, terms keep their order.
#[test]
fn little_memory_keeps_the_order() {
    over_seeds(2, |seed| {
        let (dir, database) = database();
        let mut world = World::new(database, seed);
        world.churn();
        let (before, live) = terms(&world.database);
        let options = small();
        let table_bytes = Some(before / 64 * 9 + 40);
        let options = CompactOptions { sizes: LoadSizes { table_bytes, ..options.sizes }, ..options };
        world.database.compact(&options, |_| ControlFlow::Continue(())).unwrap();
        assert_eq!(terms(&world.database), (live, live));
        world.is_right();
        near_a_fresh_load(&world.database, &dir);
        let table_bytes = Some(40);
        let options = CompactOptions { sizes: LoadSizes { table_bytes, ..options.sizes }, ..options };
        let error = world.database.compact(&options, |_| ControlFlow::Continue(())).unwrap_err();
        assert!(error.is_of_memory(), "{error}");
        world.is_right();
    });
}

/// Commits between the steps of a compaction are kept, whatever the steps have read.
#[test]
fn commits_between_its_steps_are_kept() {
    over_seeds(6, |seed| {
        let (dir, database) = database();
        let mut world = World::new(database, seed);
        world.churn();
        let database = world.database.clone();
        let (mut steps, mut large) = (0, 0);
        let changes = |world: &mut World, step: CompactStep| {
            for _ in 0..world.random.below(4) {
                world.change();
            }
            // More changes than the switch makes itself, so that there are rounds.
            if matches!(step, CompactStep::Rewriting { step: "quads", .. }) && large < 3 {
                large += 1;
                (0..3).for_each(|_| {
                    let quads = world.quads(5000);
                    world.insert(quads);
                    world.delete(2000);
                });
            }
        };
        let mut changes = changes;
        database
            .compact(&small(), |step| {
                steps += 1;
                changes(&mut world, step);
                ControlFlow::Continue(())
            })
            .unwrap();
        assert!(steps > 30, "{steps}");
        world.is_right();
        // A second compaction removes the dead terms of the last commits.
        let (_, live) = terms(&world.database);
        world.compact();
        assert_eq!(terms(&world.database), (live, live));
        world.is_right();
        near_a_fresh_load(&world.database, &dir);
    });
}

/// The database is cleared, or loaded into, at each step of a compaction.
#[test]
fn clearing_and_loading_beside_it() {
    let (_dir, database) = database();
    let mut world = World::new(database, test_seed(3));
    for at in 0.. {
        world.range = 2000;
        for _ in 0..4 {
            let quads = world.quads(300);
            world.insert(quads);
            world.delete(200);
        }
        let database = world.database.clone();
        let mut steps = 0;
        database
            .compact(&small(), |_| {
                if steps == at {
                    world.clear_all();
                    let text: String =
                        (0..50).map(|n| format!("<urn:{at}> <urn:p> \"text {n} of {at}\" .\n")).collect();
                    let source =
                        Source::Reader { name: "made".into(), read: Box::new(std::io::Cursor::new(text)) };
                    let options = LoadOptions { threads: 1, ..LoadOptions::default() };
                    load_into(&world.database, vec![source], &options, &(), &AtomicBool::new(false)).unwrap();
                    for n in 0..50 {
                        let object = TermRef::string(&format!("text {n} of {at}")).to_owned();
                        let quad = (iri(format!("urn:{at}")), iri("urn:p".into()), object, None);
                        world.model.insert(line(&quad), quad);
                    }
                    world.change();
                }
                steps += 1;
                ControlFlow::Continue(())
            })
            .unwrap();
        world.is_right();
        if at > steps {
            return;
        }
    }
}

/// Stops the threads, even if the test fails.
struct Stop<'a>(&'a AtomicBool);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Writers and readers in other threads go on throughout.
#[test]
fn writers_and_readers_go_on() {
    let (_dir, database) = database();
    let seed = test_seed(5);
    let stop = AtomicBool::new(false);
    let names = ["/one", "/two"];
    let models = thread::scope(|scope| {
        let writers: Vec<_> = names
            .iter()
            .zip(seed..)
            .map(|(name, seed)| {
                let (database, stop) = (database.clone(), &stop);
                scope.spawn(move || {
                    let mut world = World { name, ..World::new(database, seed) };
                    let mut commits = 0;
                    while !stop.load(Ordering::Relaxed) {
                        world.range = 300 + commits;
                        world.change();
                        if world.model.len() > 3000 {
                            world.delete(2000);
                        }
                        commits += 1;
                    }
                    (world.model, commits)
                })
            })
            .collect();
        let reader = scope.spawn(|| {
            let mut reads = 0;
            while !stop.load(Ordering::Relaxed) {
                let session = database.session().unwrap();
                let quads = session.state().quads();
                // The session reads for long, and its ids keep their meaning.
                let lines = lines_of(session);
                assert_eq!(lines.len() as u64, quads);
                let is_known =
                    |line: &String| line.starts_with("<http://e.org/s/") || line.starts_with("_:b");
                assert!(lines.iter().all(is_known));
                reads += 1;
            }
            reads
        });
        let stopped = Stop(&stop);
        for _ in 0..6 {
            database.compact(&small(), |_| ControlFlow::Continue(())).unwrap();
        }
        drop(stopped);
        assert!(reader.join().unwrap() > 3);
        writers.into_iter().map(|writer| writer.join().unwrap()).collect::<Vec<_>>()
    });
    let mut world = World::new(database, seed);
    for (model, commits) in models {
        assert!(commits > 20, "{commits}");
        world.model.extend(model);
    }
    world.is_right();
    let (_, live) = terms(&world.database);
    world.compact();
    assert_eq!(terms(&world.database), (live, live));
    world.is_right();
}

/// A reader that began before the switch keeps its answers and its terms.
#[test]
fn readers_keep_what_they_see() {
    let (dir, database) = database();
    let mut world = World::new(database, test_seed(8));
    world.churn();
    let want = world.want();
    let mut old = world.database.session().unwrap();
    let subject = world.model.values().next().unwrap().0.clone();
    let id = old.resolve_one(subject.as_ref()).unwrap().unwrap();
    let reclaimed = world.compact();
    let TermsCompacted::Reclaimed { kept_bytes, .. } = reclaimed else { panic!("{reclaimed:?}") };
    assert!(kept_bytes > 0, "the reader keeps its trees");
    (0..10).for_each(|_| world.change());
    let new = world.database.session().unwrap();
    assert_ne!(old.state().dictionary(), new.state().dictionary());
    drop(new);
    assert_eq!(old.decode_one(id).unwrap(), subject);
    assert_eq!(lines_of(old.sibling()), want);
    drop(old);
    world.is_right();
    // The reader kept the room of its trees; the next compaction gives it back.
    world.compact();
    near_a_fresh_load(&world.database, &dir);
}

#[test]
fn an_interruption_leaves_it_as_it_was() {
    let (_dir, database) = database();
    let mut world = World::new(database, test_seed(13));
    world.churn();
    let before = terms(&world.database);
    for at in 0.. {
        world.database.database().store().compact().unwrap();
        let bytes = (
            world.database.database().store().bytes(),
            world.database.database().store().stripe_bytes().unwrap(),
        );
        let (mut steps, mut switched) = (0, false);
        let result = world.database.compact(&small(), |_| {
            steps += 1;
            switched |= terms(&world.database) != before;
            if steps > at { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        world.is_right();
        assert_eq!(
            world.database.database().memory().used(),
            world.database.database().pool_bytes(),
            "memory is given back"
        );
        match result {
            Err(GraphError::Stopped) if !switched => {
                assert_eq!(terms(&world.database), before);
                world.database.database().store().compact().unwrap();
                let after = (
                    world.database.database().store().bytes(),
                    world.database.database().store().stripe_bytes().unwrap(),
                );
                assert_eq!(after, bytes, "step {at}");
            }
            Err(GraphError::Stopped) => assert_eq!(terms(&world.database).0, before.1),
            Err(error) => panic!("{error}"),
            Ok(_) => return assert!(at >= 15, "{at}"),
        }
    }
}

/// Few dead terms are left where they are, unless the caller asks; without quads all go.
#[test]
fn few_dead_terms_are_left() {
    let (_dir, database) = database();
    let mut world = World::new(database, test_seed(17));
    let auto = CompactOptions { terms: CompactTerms::Auto, ..small() };
    let never = CompactOptions { terms: CompactTerms::Never, ..small() };
    let compact = |world: &World, options: &CompactOptions| {
        world.database.compact(options, |_| ControlFlow::Continue(())).unwrap().terms
    };
    assert_eq!(compact(&world, &auto), TermsCompacted::Left);
    world.range = 5000;
    let quads = world.quads(3000);
    world.insert(quads);
    world.delete(20);
    assert_eq!(compact(&world, &auto), TermsCompacted::Left);
    world.delete(3000);
    assert_eq!(compact(&world, &never), TermsCompacted::Left);
    assert!(matches!(compact(&world, &auto), TermsCompacted::Reclaimed { .. }));
    world.is_right();
    world.clear_all();
    assert!(matches!(compact(&world, &auto), TermsCompacted::Reclaimed { after: 0, .. }));
    world.is_right();
    (0..5).for_each(|_| world.change());
    world.is_right();
}

/// More languages and datatypes than codes: the rest are in the strings.
#[test]
fn annotations_without_codes_stay() {
    let (_dir, database) = database();
    let mut world = World::new(database, test_seed(19));
    for many in [0..3000, 3000..5000] {
        let typed = |n: usize| {
            let object = match n % 2 {
                0 => TermRef::typed(&format!("of a type {n}"), &format!("http://e.org/type/{n}")).to_owned(),
                _ => TermRef::typed(&format!("{n}.5"), &format!("http://e.org/money/{n}")).to_owned(),
            };
            (iri(format!("http://e.org/s/{}", n % 50)), iri("http://e.org/p".into()), object, None)
        };
        world.insert(many.map(typed).collect());
        world.delete(1000);
    }
    let (before, live) = terms(&world.database);
    assert!(before > live);
    world.compact();
    assert_eq!(terms(&world.database), (live, live));
    world.is_right();
}

/// Options for a database on a disk whose power can be cut.
fn on_disk(disk: &PowerDisk) -> OpenOptions {
    let disk = disk.clone();
    OpenOptions {
        pool_bytes: Some(64 * 8192),
        read_ahead: ReadAhead::none(),
        journal: JournalConfig {
            file_bytes: 64 << 10,
            checkpoint_bytes: 32 << 10,
            checkpoint_s: 1_000_000,
            ..JournalConfig::default()
        },
        seams: Seams {
            background: Background::Caller,
            files: Some(FileOpener::new(move |path, access| disk.open(path, access))),
            ..Seams::default()
        },
        ..options()
    }
}

/// A small database with dead terms, its disk, and the directory of its lock.
fn small_on_disk(seed: u64) -> (PowerDisk, TempDir, World) {
    let (disk, dir) = (PowerDisk::new(seed), tempfile::tempdir().unwrap());
    let database = GraphDatabase::create(dir.path(), &[], &on_disk(&disk)).unwrap();
    disk.sync_names();
    let mut world = World::new(database, seed);
    world.range = 40;
    for _ in 0..3 {
        let quads = world.quads(60);
        world.insert(quads);
        world.delete(40);
    }
    (disk, dir, world)
}

/// Cuts the power at each disk operation of a compaction, from a step on, until one completes;
/// returns the number of cuts.
fn cut_from(begins: impl Fn(CompactStep) -> bool + Sync, most: u64) -> u64 {
    let first = test_seed(23);
    for n in 0..most {
        let (disk, dir, mut world) = small_on_disk(first.wrapping_add(n));
        let (database, before) = (world.database.clone(), terms(&world.database));
        let mut is_cutting = false;
        let result = database.compact(&small(), |step| {
            if !is_cutting && begins(step) {
                // One more commit, which must not be lost.
                world.change();
                is_cutting = true;
                disk.cut_in(n);
            }
            ControlFlow::Continue(())
        });
        assert!(is_cutting, "it came that far");
        let is_off = disk.is_off();
        assert!(is_off || result.is_ok(), "{result:?}");
        let World { model, database: same, .. } = world;
        drop((database, same));
        disk.power_on();
        disk.cut_in(u64::MAX / 2);
        let database = GraphDatabase::open(dir.path(), &on_disk(&disk)).unwrap();
        let world = World { model, ..World::new(database, first) };
        world.is_right();
        let now = terms(&world.database).0;
        assert!(is_off || now <= before.0, "{now} terms of {before:?}");
        if !is_off {
            return n;
        }
    }
    panic!("it did not end within {most} steps");
}

/// Cuts the power at every write of the last changes, the switch and later steps.
#[test]
fn a_power_cut_at_every_write_of_the_switch() {
    let cuts = cut_from(|step| matches!(step, CompactStep::CatchingUp(_)), 2000);
    assert!(cuts >= 15, "{cuts}");
}

/// Cuts the power at every write of the commit of the new trees.
#[test]
fn a_power_cut_at_every_write_of_the_new_trees() {
    let cuts = cut_from(|step| matches!(step, CompactStep::Rewriting { step: "terms", .. }), 2000);
    assert!(cuts >= 25, "{cuts}");
}

/// On a full disk a compaction fails with an error and changes nothing.
#[test]
fn a_full_disk_leaves_it_as_it_was() {
    let (disk, _dir, mut world) = small_on_disk(29);
    let before = terms(&world.database);
    disk.set_capacity(disk.used() + (200 << 10));
    let error = world.database.compact(&small(), |_| ControlFlow::Continue(())).unwrap_err();
    assert!(matches!(error, GraphError::Store(StoreError::Full { .. })), "{error}");
    let auto = CompactOptions { terms: CompactTerms::Auto, ..small() };
    let done = world.database.compact(&auto, |_| ControlFlow::Continue(())).unwrap();
    assert!(matches!(done.terms, TermsCompacted::PassedOver(_)), "{done:?}");
    assert_eq!(terms(&world.database), before);
    world.is_right();
    disk.set_capacity(u64::MAX);
    world.compact();
    assert_eq!(terms(&world.database), (before.1, before.1));
    world.is_right();
}
