//! Statistics that estimate against a simple model: after loads, random changes, making them anew,
//! compaction and repair. Databases without them stay as they are.

#[path = "support/world.rs"]
mod world;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use snowmelt_graph::load::{LoadOptions, Source, load, load_into};
use snowmelt_graph::{Columns, DumpFormat, GraphDatabase, GraphStatistics, Index};
use world::*;

/// Rows by value, of each first column of an index.
fn degrees(database: &Arc<GraphDatabase>, index: Index) -> BTreeMap<u64, BTreeMap<u64, u64>> {
    let mut all: BTreeMap<u64, BTreeMap<u64, u64>> = BTreeMap::new();
    let mut session = database.session().unwrap();
    let mut rows = Columns::new(index.arity());
    let mut scan = session.scan(index, &[], None);
    while scan.next(&mut session, &mut rows, 1000).unwrap() {}
    for (first, second) in rows.cols[0].iter().zip(&rows.cols[1]) {
        *all.entry(*first).or_default().entry(*second).or_default() += 1;
    }
    all
}

/// Checks that statistics are those of the quads.
fn are_right(database: &Arc<GraphDatabase>, statistics: &GraphStatistics) {
    for (index, counted) in [(Index::Psog, statistics.subjects()), (Index::Posg, statistics.objects())] {
        let model = degrees(database, index);
        assert_eq!(
            counted.iter().map(|of| of.0).collect::<Vec<_>>(),
            model.keys().copied().collect::<Vec<_>>()
        );
        for (predicate, values) in model {
            let of = counted.get(predicate).unwrap();
            assert_eq!(of.values, values.len() as u64);
            assert_eq!(of.rows, values.values().sum::<u64>());
            assert_eq!(of.most, *values.values().max().unwrap());
            assert_eq!(of.squares, values.values().map(|rows| rows * rows).sum::<u64>());
            assert_eq!(of.classes.iter().sum::<u64>(), of.values);
            for (class, many) in of.classes.iter().enumerate() {
                let within = values.values().filter(|rows| rows.ilog2() as usize == class);
                assert_eq!(*many, within.count() as u64, "class {class} of {index:?}");
            }
        }
    }
    let mut sets: BTreeMap<Vec<u64>, u64> = BTreeMap::new();
    for predicates in degrees(database, Index::Sp).into_values() {
        *sets.entry(predicates.into_keys().collect()).or_default() += 1;
    }
    let counted: BTreeMap<Vec<u64>, u64> =
        statistics.sets().iter().map(|(set, subjects)| (set.to_vec(), subjects)).collect();
    assert_eq!(counted, sets);
    assert_eq!(statistics.sets().rest().subjects, 0);
}

fn of(database: &Arc<GraphDatabase>) -> Arc<GraphStatistics> {
    database.state().unwrap().statistics().clone()
}

#[test]
fn statistics_are_those_of_the_quads() {
    over_seeds(3, |seed| {
        let (dir, database) = database();
        let mut world = World::new(database, seed);
        world.churn();
        // made of changes alone, a database has none
        assert!(of(&world.database).is_empty());
        assert!(world.database.renew_statistics(&|| true).unwrap());
        are_right(&world.database, &of(&world.database));
        assert_eq!(of(&world.database).age(), 0);

        let before = world.database.state().unwrap().changed();
        (0..20).for_each(|_| world.change());
        let changed = world.database.state().unwrap().changed() - before;
        assert_eq!(of(&world.database).age(), changed);
        // they stay those of before
        let made = world.database.make_statistics(&|| true).unwrap().unwrap();
        are_right(&world.database, &made);
        assert_eq!(world.database.make_statistics(&|| false).unwrap(), None);

        // a compaction counts them anew, under new numbers
        world.compact();
        are_right(&world.database, &of(&world.database));
        world.is_right();
        let World { database, .. } = world;
        let known = of(&database);
        drop(database);
        let database = GraphDatabase::open(&dir.path().join("db"), &options()).unwrap();
        assert_eq!(of(&database), known);
        are_right(&database, &of(&database));
    });
}

#[test]
fn a_load_counts_them() {
    let (_dir, database) = database();
    let mut world = World::new(database, 7);
    world.churn();
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("all.nq");
    let mut file = std::fs::File::create(&path).unwrap();
    world.database.dump(DumpFormat::NQuads, &mut file).unwrap();
    for threads in [1, 3] {
        let db = dir.path().join(format!("db-{threads}"));
        let options = LoadOptions { store: options(), threads, ..LoadOptions::default() };
        load(&db, vec![Source::File(path.clone())], &options, &(), &AtomicBool::new(false)).unwrap();
        let database = GraphDatabase::open(&db, &options.store).unwrap();
        are_right(&database, &of(&database));
        assert_eq!(of(&database).age(), 0);
        // quads that are added to it make them older, or are counted, too
        let more = dir.path().join("more.nq");
        let lines: String = (0..300).map(|i| format!("<e:more{i}> <e:p> \"{i}\" .\n")).collect();
        std::fs::write(&more, lines).unwrap();
        load_into(&database, vec![Source::File(more)], &options, &(), &AtomicBool::new(false)).unwrap();
        let after = of(&database);
        if after.age() == 0 {
            are_right(&database, &after);
        } else {
            assert_eq!(after.age(), 300);
        }
        // an emptied database has none
        let mut txn = database.begin().unwrap();
        txn.clear(snowmelt_graph::Graphs::All, &AtomicBool::new(false)).unwrap();
        txn.commit().unwrap();
        assert!(of(&database).is_empty());
    }
}

#[test]
fn old_statistics_are_noticed() {
    let (dir, database) = database();
    let mut world = World::new(database, 3);
    let is_old = |world: &World| world.database.state().unwrap().has_old_statistics();
    let quads = world.quads(9000);
    world.insert(quads);
    assert!(!is_old(&world), "few quads");
    while world.database.state().unwrap().changed() <= 10_000 {
        world.change();
        let quads = world.quads(2000);
        world.insert(quads);
    }
    assert!(is_old(&world));
    assert!(world.database.renew_statistics(&|| true).unwrap());
    assert!(!is_old(&world));
    let World { database, .. } = world;
    drop(database);
    let database = GraphDatabase::open(&dir.path().join("db"), &options()).unwrap();
    are_right(&database, &of(&database));
}

#[test]
fn rows_are_found_by_their_places() {
    over_seeds(3, |seed| {
        let (_dir, database) = database();
        let mut world = World::new(database, seed);
        world.churn();
        let mut session = world.database.session().unwrap();
        for index in Index::ALL {
            let mut rows = Columns::new(index.arity());
            let mut scan = session.scan(index, &[], None);
            while scan.next(&mut session, &mut rows, 1000).unwrap() {}
            let all: Vec<Vec<u64>> =
                (0..rows.rows).map(|row| rows.cols.iter().map(|col| col[row]).collect()).collect();
            let places: Vec<u64> = (0..all.len() as u64 + 2).collect();
            assert_eq!(session.rows_at(index, &[], &places).unwrap(), all);
            let first = snowmelt_graph::TermId(all[all.len() / 2][0]);
            let under: Vec<Vec<u64>> = all.iter().filter(|row| row[0] == first.0).cloned().collect();
            assert_eq!(session.rows_at(index, &[first], &places).unwrap(), under);
        }
    });
}
