//! How long the loader's encoder takes per literal: `cargo run --release -p snowmelt-benches
//! --example encode`.

use std::hint::black_box;
use std::time::Instant;

use snowmelt_graph::dict::code::Codes;
use snowmelt_graph::dict::{GraphFormat, Place, place};
use snowmelt_graph::{TermRef, XSD_STRING};

const XSD: &str = "http://www.w3.org/2001/XMLSchema#";

fn main() {
    let usd = "http://www4.wiwiss.fu-berlin.de/bizer/bsbm/v01/vocabulary/USD";
    let xsd = |name: &str| format!("{XSD}{name}");
    let (integer, date, date_time) = (xsd("integer"), xsd("date"), xsd("dateTime"));
    let review = "pessimists speechlessness used bruisers overstatement mutated enthusiasms ".repeat(10);
    let offer = "http://www4.wiwiss.fu-berlin.de/bizer/bsbm/v01/instances/dataFromVendor1/Offer239";
    for (what, term) in [
        ("integer", TermRef::typed("1234", &integer)),
        ("USD", TermRef::typed("7641.13", usd)),
        ("date", TermRef::typed("2008-06-20", &date)),
        ("dateTime", TermRef::typed("2008-06-20T00:00:00", &date_time)),
        ("label", TermRef::typed("boxed closefitting benzoates", XSD_STRING)),
        ("review", TermRef::tagged(&review, "en")),
        ("IRI", TermRef::Iri(offer)),
    ] {
        let mut codes = Codes::new();
        let mut scratch = Vec::new();
        let rounds = 2_000_000u64;
        let begin = Instant::now();
        let mut sum = 0u64;
        for _ in 0..rounds {
            sum = sum.wrapping_add(
                match place(&black_box(term), GraphFormat::default(), &mut codes, &mut scratch) {
                    Place::Inline(id) => id.0,
                    Place::Entry(entry) => entry.hash(),
                    _ => 0,
                },
            );
        }
        black_box(sum);
        println!("{what:10} {:6.1} ns", begin.elapsed().as_secs_f64() * 1e9 / rounds as f64);
    }
}
