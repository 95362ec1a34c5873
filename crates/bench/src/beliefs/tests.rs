use std::path::PathBuf;
use std::sync::LazyLock;
use std::sync::atomic::AtomicBool;

use snowmelt_bsbm::WordLists;
use snowmelt_graph::load::LoadOptions;

use super::changing::{Changing, Stretch};
use super::picture;
use snowmelt_io::{CostModel, CostSource};
use snowmelt_workload::beliefs::{FINE_FOR_S, FINE_S, Look};
use snowmelt_workload::dataset::generate_and_load;

/// So many that the device is the limit: of fewer, much is in memory, and little is learned.
const PRODUCTS: u32 = 500;
const SECONDS: f64 = 12.0;

fn looks() -> &'static (Vec<Look>, Vec<Stretch>) {
    static LOOKS: LazyLock<(Vec<Look>, Vec<Stretch>)> = LazyLock::new(|| {
        let dir = tempfile::tempdir().unwrap();
        let db: PathBuf = dir.path().join("db");
        let stop = AtomicBool::new(false);
        let options = LoadOptions { threads: 2, ..LoadOptions::default() };
        generate_and_load(PRODUCTS, WordLists::synthetic(), &db, &options, &(), &stop).unwrap();
        let phases = Changing::halved_gp3(SECONDS);
        let run = Changing {
            db: &db,
            products: PRODUCTS,
            clients: 16,
            frames: 64,
            phases: &phases,
            seconds: SECONDS,
            stop: &stop,
        };
        (run.run().unwrap(), phases)
    });
    &LOOKS
}

/// The larger of two by the smaller.
fn apart(a: f64, b: f64) -> f64 {
    (a / b).max(b / a)
}

#[test]
fn the_prior_is_seen_and_the_caps_within_a_second() {
    let (looks, phases) = looks();
    let at = |at_s: f64| looks.iter().find(|look| look.at_s > at_s - 1e-3).unwrap().devices[0].clone();
    let prior = at(0.0);
    assert_eq!(prior.believed.requests_from, CostSource::Set, "{prior:?}");
    assert!((prior.requests_per_s, prior.bytes_per_s) == (0.0, 0.0), "nothing was moved yet: {prior:?}");
    assert_eq!(prior.believed.requests_per_s, 1e9 / CostModel::ssd().ns_per_request as f64);
    // At first its bucket lets more through than its cap.
    let early = at(0.1);
    assert_eq!(early.believed.requests_from, CostSource::Learned, "{early:?}");
    assert!(apart(early.believed.requests_per_s, phases[0].volume.iops) < 4.0, "{early:?}");
    let known = at(1.0);
    assert!(apart(known.believed.requests_per_s, phases[0].volume.iops) < 1.25, "{known:?}");
}

#[test]
fn caps_that_are_halved_and_come_back_show_within_two_seconds() {
    let (looks, phases) = looks();
    for (i, phase) in phases.iter().enumerate() {
        let end_s = phases.get(i + 1).map_or(SECONDS, |next| next.from_s);
        let during: Vec<&Look> =
            looks.iter().filter(|look| look.at_s > phase.from_s + 2.0 && look.at_s <= end_s).collect();
        assert!(during.len() >= 15, "{} looks", during.len());
        for look in during {
            let device = &look.devices[0];
            let times = apart(device.believed.requests_per_s, phase.volume.iops);
            assert!(times < 1.25, "{:.2} s: {times:.2} times the truth: {device:?}", look.at_s);
        }
    }
}

#[test]
fn the_first_second_is_looked_at_more_often() {
    let (looks, _) = looks();
    let fine = looks.iter().filter(|look| look.at_s <= FINE_FOR_S + 1e-6).count();
    assert_eq!(fine, (FINE_FOR_S / FINE_S).round() as usize + 1);
    assert!(looks.windows(2).all(|pair| pair[0].at_s < pair[1].at_s));
    assert!((looks.last().unwrap().at_s - SECONDS).abs() < 0.2);
}

#[test]
fn the_picture_has_each_figure_and_no_number_that_is_none() {
    let (looks, phases) = looks();
    let svg = picture::draw(looks, "a < b", phases);
    assert_eq!(svg.matches("class=\"line believed\" points").count(), 3);
    assert_eq!(svg.matches("class=\"line moved\" points").count(), 2);
    assert!(svg.contains("a &lt; b") && !svg.contains("NaN") && !svg.contains("inf"));
    let unknown = picture::draw(&looks[..3], "", &[]);
    assert!(!unknown.contains("what the volume allows") && !unknown.contains("NaN"));
    assert!(!picture::draw(&[], "", &[]).contains("NaN"));
}
