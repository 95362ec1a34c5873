//! Disks of invented facts and of a tree of files.

use super::super::finding::Level;
use super::super::kernel::planted;
use super::*;

fn well() -> DiskFacts {
    DiskFacts {
        number: 0,
        path: "/srv/db/data".into(),
        bytes: Some(8 << 30),
        mount: Some(MountPoint {
            place: "/srv".into(),
            kind: "ext4".to_owned(),
            source: "/dev/sda1".to_owned(),
            options: vec!["rw".to_owned(), "relatime".to_owned()],
            device: "8:1".to_owned(),
        }),
        block: Some(BlockFacts {
            name: "sda".to_owned(),
            turns: false,
            scheduler: "none".to_owned(),
            requests: 256,
            read_ahead_kib: 128,
        }),
        direct: Some(true),
        profile: kept(false),
        learned: LearnedBefore::default(),
        hint: None,
        read: Some(Duration::from_micros(130)),
    }
}

fn kept(is_older: bool) -> KeptProfile {
    KeptProfile::Kept { cost: CostModel::ssd(), direct: true, doubts: Vec::new(), is_older }
}

fn bad(facts: &DiskFacts) -> Vec<Finding> {
    judge(facts, "db").into_iter().filter(|finding| finding.level != Level::Ok).collect()
}

fn mount(facts: &mut DiskFacts) -> &mut MountPoint {
    facts.mount.as_mut().expect("it is on one")
}

fn block_of(facts: &mut DiskFacts) -> &mut BlockFacts {
    facts.block.as_mut().expect("it has one")
}

#[test]
fn a_good_disk_has_no_findings() {
    assert_eq!(bad(&well()), []);
    let in_place = DiskFacts { mount: None, read: None, ..well() };
    assert_eq!(bad(&in_place), [], "a block device");
    let small = DiskFacts { bytes: Some(1 << 20), profile: KeptProfile::Absent, ..well() };
    assert_eq!(bad(&small), [], "a probe would refuse it");
    let doubts = vec!["the file is small".to_owned()];
    let profile = KeptProfile::Kept { cost: CostModel::ssd(), direct: true, doubts, is_older: false };
    assert_eq!(bad(&DiskFacts { profile, ..well() }), [], "the next probe would have the same doubt");
}

/// A model that was learned of a volume of 3,000 requests and 125 MiB per second.
fn learned(is_latest: bool) -> LearnedBefore {
    let cost = CostModel::capped(1_100_000, 3_000.0, 131_072_000.0);
    let model = Some(KeptModel::new(cost, [0.9, 0.4], 40, snowmelt_io::DiskIdentity::default()));
    LearnedBefore { model, is_latest, doubt: None }
}

#[test]
fn no_probe_is_advised_where_the_disk_was_learned() {
    let unprobed = DiskFacts { profile: KeptProfile::Absent, learned: learned(true), ..well() };
    let about_profile = |facts: &DiskFacts| {
        let all = judge(facts, "db");
        all.into_iter().find(|finding| finding.about.ends_with("profile")).expect("there is one")
    };
    let told = about_profile(&unprobed);
    assert_eq!(told.level, Level::Ok, "{told:?}");
    for part in ["3000 requests/s (90 % sure)", "125 MiB/s (40 % sure)", "1100 µs"] {
        assert!(told.measured.contains(part), "{part}: {}", told.measured);
    }
    // A probe that has measured something else does not count any more, and is told.
    let probed = about_profile(&DiskFacts { learned: learned(true), ..well() });
    assert_eq!(probed.level, Level::Ok, "{probed:?}");
    assert!(probed.measured.contains("the last probe differs: requests"), "{}", probed.measured);
    let older = about_profile(&DiskFacts { learned: learned(false), ..well() });
    assert!(older.measured.contains("120 µs") && !older.measured.contains("learned"), "{}", older.measured);
    let hint = Prior {
        cost: CostModel::capped(1_000_000, 3_000.0, 1e8),
        source: snowmelt_io::CostSource::Hint,
        why: "its name: \"EBS\"".to_owned(),
    };
    let unknown = DiskFacts { profile: KeptProfile::Absent, hint: Some(hint), ..well() };
    assert!(about_profile(&unknown).measured.contains("1000 µs, its name: \"EBS\""), "{unknown:?}");
    let doubt = Some("it is of another machine".to_owned());
    let other = LearnedBefore { doubt, ..LearnedBefore::default() };
    let told = about_profile(&DiskFacts { profile: KeptProfile::Absent, learned: other, ..well() });
    assert_eq!(told.level, Level::Advice);
    assert!(told.measured.contains("another machine"), "{}", told.measured);
}

#[test]
fn each_fault_of_a_disk_is_one_finding() {
    type Spoil = fn(&mut DiskFacts);
    let faults: [(&str, Level, Spoil, &str); 18] = [
        ("file system", Level::Problem, |f| mount(f).kind = "tmpfs".into(), "snowmelt backup"),
        ("file system", Level::Problem, |f| mount(f).options.push("nobarrier".into()), "barrier=1 /srv"),
        ("file system", Level::Advice, |f| mount(f).options.push("ro".into()), "remount,rw /srv"),
        ("file system", Level::Advice, |f| mount(f).kind = "nfs4".into(), "local disk"),
        ("file system", Level::Advice, |f| mount(f).kind = "fuse.sshfs".into(), "of the kernel"),
        ("file system", Level::Advice, |f| mount(f).kind = "overlay".into(), "volume"),
        ("file system", Level::Advice, |f| mount(f).kind = "btrfs".into(), "chattr +C"),
        ("file system", Level::Advice, |f| mount(f).kind = "zfs".into(), "recordsize=16k"),
        ("file system", Level::Advice, |f| mount(f).options.push("data=journal".into()), "data=ordered"),
        (
            "queue",
            Level::Advice,
            |f| block_of(f).scheduler = "bfq".into(),
            "echo none > /sys/class/block/sda/queue",
        ),
        (
            "queue",
            Level::Advice,
            |f| block_of(f).requests = 16,
            "echo 64 > /sys/class/block/sda/queue/nr_requests",
        ),
        ("O_DIRECT", Level::Advice, |f| f.direct = Some(false), "xfs"),
        ("profile", Level::Advice, |f| f.profile = KeptProfile::Absent, "snowmelt probe db"),
        (
            "profile",
            Level::Advice,
            |f| f.profile = KeptProfile::Unreadable("cut".into()),
            "snowmelt probe db",
        ),
        ("profile", Level::Advice, |f| f.profile = kept(true), "snowmelt probe db"),
        ("profile", Level::Advice, |f| f.read = Some(Duration::from_micros(9000)), "snowmelt probe db"),
        ("profile", Level::Advice, |f| f.read = Some(Duration::from_micros(20)), "snowmelt probe db"),
        (
            "profile",
            Level::Advice,
            |f| {
                f.profile = KeptProfile::Kept {
                    cost: CostModel::ssd(),
                    direct: false,
                    doubts: Vec::new(),
                    is_older: false,
                }
            },
            "snowmelt probe db",
        ),
    ];
    for (about, level, spoil, change) in faults {
        let mut facts = well();
        spoil(&mut facts);
        let found = bad(&facts);
        assert_eq!(found.len(), 1, "{about}: {found:?}");
        assert_eq!((found[0].about.as_str(), found[0].level), (&*format!("stripe 0: {about}"), level));
        assert!(found[0].change.contains(change), "{:?}", found[0]);
    }
    let mut cached = DiskFacts { direct: Some(false), ..well() };
    block_of(&mut cached).read_ahead_kib = 4096;
    assert!(bad(&cached).iter().any(|finding| finding.change.contains("read_ahead_kb")));
    let mut memory = DiskFacts { direct: Some(false), ..well() };
    mount(&mut memory).kind = "tmpfs".to_owned();
    assert_eq!(bad(&memory).len(), 1, "that memory is not read directly follows");
}

#[test]
fn settings_of_a_partition_are_those_of_its_disk() {
    let (dir, kernel) = planted(&[
        ("sys/devices/sda/queue/rotational", "1"),
        ("sys/devices/sda/queue/scheduler", "none [mq-deadline] bfq"),
        ("sys/devices/sda/queue/nr_requests", "64"),
        ("sys/devices/sda/queue/read_ahead_kb", "128"),
        ("sys/devices/sda/sda1/uevent", "MAJOR=8\nMINOR=1\nDEVNAME=sda1\nDEVTYPE=partition"),
        ("sys/dev/block/none", ""),
    ]);
    let link = |id: &str, to: &str| {
        std::os::unix::fs::symlink(dir.path().join(to), dir.path().join("sys/dev/block").join(id))
            .expect("made");
    };
    link("8:1", "sys/devices/sda/sda1");
    let expected = BlockFacts {
        name: "sda1".to_owned(),
        turns: true,
        scheduler: "mq-deadline".to_owned(),
        requests: 64,
        read_ahead_kib: 128,
    };
    assert_eq!(block(&kernel, "8:1"), Some(expected));
    assert_eq!(block(&kernel, "8:2"), None);
}

#[test]
fn a_profile_is_compared_with_its_stripe() {
    let dir = tempfile::tempdir().expect("a folder");
    let (stripe, kept) = (dir.path().join("data"), dir.path().join("data.profile.json"));
    assert_eq!(profile(&kept, &stripe), KeptProfile::Absent);
    std::fs::write(&kept, "no profile").expect("written");
    assert!(matches!(profile(&kept, &stripe), KeptProfile::Unreadable(_)));
    let probed = Profile {
        path: stripe.clone(),
        file: stripe.clone(),
        len_bytes: 1,
        engine: "uring".to_owned(),
        direct: true,
        random: Vec::new(),
        sequential: Vec::new(),
        cost: CostModel::nvme(),
        reads: snowmelt_io::ProbedReads::default(),
        doubts: Vec::new(),
    };
    probed.save(&kept).expect("written");
    std::thread::sleep(Duration::from_millis(20));
    std::fs::write(&stripe, "data").expect("written");
    let is_older = |kept: &Path| match profile(kept, &stripe) {
        KeptProfile::Kept { is_older, .. } => is_older,
        other => panic!("{other:?}"),
    };
    // Not every file system keeps the time at which a file was made.
    let has_times = std::fs::metadata(&stripe).and_then(|meta| meta.created()).is_ok();
    assert_eq!(is_older(&kept), has_times);
    std::thread::sleep(Duration::from_millis(20));
    probed.save(&kept).expect("written");
    assert!(!is_older(&kept));
}
