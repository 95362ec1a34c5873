//! Sets of backups: any state of the set can be restored, whatever happened in between, and a part
//! that is damaged, missing or of another database is noticed.

#[path = "support/world.rs"]
mod world;

use std::collections::BTreeSet;
use std::fs;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use snowmelt_database::restore_backup;
use snowmelt_graph::GraphDatabase;
use snowmelt_store::{BackupSet, RestoreAt};
use tempfile::TempDir;
use world::*;

fn add(set: &Path, database: &Arc<GraphDatabase>) -> Option<u64> {
    let added = database.database().backup_to_set(set, |_| ControlFlow::Continue(())).unwrap();
    added.map(|(_, done)| done.pages)
}

fn restored(set: &Path, at: RestoreAt) -> Result<(TempDir, Arc<GraphDatabase>), String> {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("db");
    let done = restore_backup(set, at, &path, &[], &options(), |_| ControlFlow::Continue(()));
    done.map_err(|e| e.to_string())?;
    let database = GraphDatabase::open(&path, &options()).map_err(|e| e.to_string())?;
    Ok((dir, database))
}

/// Transactions of the backups, each with the quads that the database held then.
type States = Vec<(u64, BTreeSet<String>)>;

fn history(world: &mut World, set: &Path, rounds: usize) -> States {
    let mut states = States::new();
    for _ in 0..rounds {
        for _ in 0..world.random.below(6) {
            world.change();
        }
        match world.random.below(6) {
            0 => drop(world.compact()),
            1 => drop(world.database.database().store().checkpoint().unwrap()),
            2 => {
                let quads = world.quads(300);
                world.insert(quads);
            }
            _ => {}
        }
        let txn = world.database.database().newest();
        let is_new = states.last().is_none_or(|(last, _)| *last != txn);
        assert_eq!(add(set, &world.database).is_some(), is_new);
        if is_new {
            states.push((txn, world.want()));
        }
    }
    states
}

#[test]
fn every_state_comes_back() {
    over_seeds(6, |seed| {
        let (_dir, database) = database();
        let mut world = World::new(database, seed);
        let quads = world.quads(2000);
        world.insert(quads);
        let set = tempfile::tempdir().unwrap();
        let states = history(&mut world, set.path(), 8);
        let listed = BackupSet::read(set.path()).unwrap();
        let txns: Vec<u64> = listed.parts().iter().map(|part| part.txn).collect();
        assert_eq!(txns, states.iter().map(|(txn, _)| *txn).collect::<Vec<_>>());
        for (txn, want) in &states {
            let (_restored, database) = restored(set.path(), RestoreAt::Txn(*txn)).unwrap();
            assert!(lines(&database) == *want, "as of transaction {txn}");
            is_sound(&database);
            nothing_is_left(&database);
        }
        let (_restored, database) = restored(set.path(), RestoreAt::Newest).unwrap();
        assert!(lines(&database) == states.last().unwrap().1);
        // The restored database can be used on.
        let mut world = World { database, ..world };
        world.change();
        world.is_right();
        let early = restored(set.path(), RestoreAt::Txn(states[0].0 - 1)).err().unwrap();
        assert!(early.contains("no state as old"), "{early}");
    });
}

#[test]
fn what_did_not_change_is_not_copied() {
    let (_dir, database) = database();
    let mut world = World::new(database, 7);
    world.range = 20_000;
    let quads = world.quads(20_000);
    world.insert(quads);
    let set = tempfile::tempdir().unwrap();
    let whole = add(set.path(), &world.database).unwrap();
    let quads = world.quads(1);
    world.insert(quads);
    let changes = add(set.path(), &world.database).unwrap();
    assert!(whole > 100 && changes < 16, "{changes} pages after one quad, {whole} before");
    world.database.database().store().checkpoint().unwrap();
    assert_eq!(add(set.path(), &world.database), None, "a checkpoint changes nothing");
}

#[test]
fn a_set_is_of_one_database() {
    let ((_a, first), (_b, second)) = (database(), database());
    let mut world = World::new(first, 1);
    let quads = world.quads(50);
    world.insert(quads);
    let set = tempfile::tempdir().unwrap();
    add(set.path(), &world.database).unwrap();
    let refused =
        second.database().backup_to_set(set.path(), |_| ControlFlow::Continue(())).unwrap_err().to_string();
    assert!(refused.contains("another database"), "{refused}");
    // A restored database cannot continue the set, either.
    let (_dir, restored) = restored(set.path(), RestoreAt::Newest).unwrap();
    assert!(restored.database().backup_to_set(set.path(), |_| ControlFlow::Continue(())).is_err());
}

#[test]
fn damage_is_noticed_wherever_it_is() {
    let (_dir, database) = database();
    let mut world = World::new(database, 3);
    let quads = world.quads(1500);
    world.insert(quads);
    let set = tempfile::tempdir().unwrap();
    history(&mut world, set.path(), 4);
    let want = world.want();
    let parts = BackupSet::read(set.path()).unwrap().parts().to_vec();
    assert!(parts.len() > 2);
    let is_noticed = |what: &str| match restored(set.path(), RestoreAt::Newest) {
        Err(_) => {}
        // The page is also in a newer part.
        Ok((_dir, database)) => assert!(lines(&database) == want, "{what}"),
    };
    for part in &parts[1..] {
        let path = set.path().join(&part.name);
        let sound = fs::read(&path).unwrap();
        let mut noticed = 0;
        for at in (0..120).chain((8192..sound.len()).step_by(811)) {
            let mut bytes = sound.clone();
            bytes[at] ^= 0x10;
            fs::write(&path, &bytes).unwrap();
            is_noticed(&format!("{} byte {at}", part.name));
            noticed += usize::from(restored(set.path(), RestoreAt::Txn(part.txn)).is_err());
        }
        assert!(noticed > 96, "{}: {noticed}", part.name);
        fs::write(&path, &sound[..sound.len() - 1]).unwrap();
        assert!(restored(set.path(), RestoreAt::Txn(part.txn)).is_err(), "cut");
        fs::write(&path, &sound).unwrap();
    }
    let middle = set.path().join(&parts[1].name);
    let away = set.path().join("away");
    fs::rename(&middle, &away).unwrap();
    let missing = restored(set.path(), RestoreAt::Newest).err().unwrap();
    assert!(missing.contains(&parts[1].name) && missing.contains("missing"), "{missing}");
    fs::rename(&away, &middle).unwrap();
    assert!(lines(&restored(set.path(), RestoreAt::Newest).unwrap().1) == want);
}

#[test]
fn an_unfinished_part_is_passed_over() {
    let (_dir, database) = database();
    let mut world = World::new(database, 5);
    let quads = world.quads(50);
    world.insert(quads);
    let set = tempfile::tempdir().unwrap();
    let stopped = world.database.database().backup_to_set(set.path(), |_| ControlFlow::Break(()));
    assert!(matches!(stopped, Err(e) if e.to_string().contains("stopped")));
    assert!(BackupSet::read(set.path()).unwrap().parts().is_empty());
    add(set.path(), &world.database).unwrap();
    let quads = world.quads(50);
    world.insert(quads);
    // An interrupted backup leaves pages, but no head.
    fs::write(set.path().join("0002-changes.new"), vec![0; 30_000]).unwrap();
    let stopped = world.database.database().backup_to_set(set.path(), |_| ControlFlow::Break(()));
    assert!(stopped.is_err());
    let added =
        world.database.database().backup_to_set(set.path(), |_| ControlFlow::Continue(())).unwrap().unwrap();
    assert_eq!(added.0.name, "0002-changes");
    assert!(!set.path().join("0002-changes.new").exists());
    let (_dir, restored) = restored(set.path(), RestoreAt::Newest).unwrap();
    assert!(lines(&restored) == world.want());
    let refused = restore_backup(
        &set.path().join("nowhere"),
        RestoreAt::Newest,
        &set.path().join("x"),
        &[],
        &options(),
        |_| ControlFlow::Continue(()),
    );
    assert!(matches!(refused, Err(e) if e.to_string().contains("no state")));
}
