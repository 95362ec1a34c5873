//! Producers and their products.

use super::output::Output;
use super::text::{END, END_INTEGER, END_IRI, END_STRING, Text};
use super::{Words, country, iri, provenance};
use crate::calendar::day_ms;
use crate::draw::{Bell, Dates, Weighted, coin, countries};
use crate::error::Error;
use crate::random::JavaRandom;
use crate::scale::Scale;
use crate::seeds;

const NUMERIC: [&str; 6] = [
    literal!(bsbm!("productPropertyNumeric1")),
    literal!(bsbm!("productPropertyNumeric2")),
    literal!(bsbm!("productPropertyNumeric3")),
    literal!(bsbm!("productPropertyNumeric4")),
    literal!(bsbm!("productPropertyNumeric5")),
    literal!(bsbm!("productPropertyNumeric6")),
];
const TEXTUAL: [&str; 6] = [
    literal!(bsbm!("productPropertyTextual1")),
    literal!(bsbm!("productPropertyTextual2")),
    literal!(bsbm!("productPropertyTextual3")),
    literal!(bsbm!("productPropertyTextual4")),
    literal!(bsbm!("productPropertyTextual5")),
    literal!(bsbm!("productPropertyTextual6")),
];
const OF_TYPE: &str = concat!(" <", rdf!("type"), "> ");

pub(super) fn write(scale: &Scale, words: &mut Words, out: &mut Output) -> Result<(), Error> {
    let [dates, values, countries_seed, _, producers] = scale.seeds.producers;
    let mut dates = Dates::new(dates, day_ms(2000, 8, 20), day_ms(2005, 7, 23));
    let mut values = JavaRandom::new(values);
    let mut countries = countries(countries_seed);
    let mut producers = JavaRandom::new(producers);
    let (mut producer_iri, mut subject) = (String::new(), String::new());
    for producer in 1..=scale.products.owners() {
        iri(&mut producer_iri, |text| text.owned("Producer", producer, "Producer", producer));
        let text = &mut out.text;
        text.put(&producer_iri).put(class!(bsbm!("Producer")));
        words.describe(text, &producer_iri, &mut values, (20, 50));
        text.put(&producer_iri).put(link!(foaf!("homepage")));
        text.put("<http://www.Producer").number(producer).put(".com/> .\n");
        country(text, &producer_iri, countries.draw());
        provenance(text, &producer_iri, &producer_iri, dates.draw());
        out.end(7)?;

        let mut streams = ProductStreams::new(scale, &mut producers);
        for product in scale.products.owned_by(producer) {
            let start = out.text.bytes.len();
            iri(&mut subject, |text| text.owned("Producer", producer, "Product", product));
            let triples = streams.product(scale, words, &mut out.text, &subject, &producer_iri);
            out.end_about(product, start, triples)?;
        }
    }
    Ok(())
}

/// The random streams of one producer's products.
struct ProductStreams {
    dates: Dates,
    values: JavaRandom,
    leaf: Bell,
    numeric: Bell,
    kind: Weighted<OptionalProperties>,
    quarter: Weighted<bool>,
    half: Weighted<bool>,
}

/// Which of the properties 4 to 6 a product may have.
#[derive(Clone, Copy)]
enum OptionalProperties {
    FourAndFive,
    SomeOfFourAndFive,
    SomeOfFiveAndSix,
}

impl ProductStreams {
    fn new(scale: &Scale, producers: &mut JavaRandom) -> Self {
        let [dates, values, leaf, numeric, kind, quarter, half] = seeds::draw(producers);
        let kinds = [
            (40.0, OptionalProperties::FourAndFive),
            (20.0, OptionalProperties::SomeOfFourAndFive),
            (40.0, OptionalProperties::SomeOfFiveAndSix),
        ];
        Self {
            dates: Dates::new(dates, day_ms(2000, 10, 20), day_ms(2007, 1, 23)),
            values: JavaRandom::new(values),
            leaf: Bell::new(leaf, 0.0, scale.types.leaves().len() as u32, 2.0),
            numeric: Bell::new(numeric, 0.0, 2_000, 2.0),
            kind: Weighted::new(kind, &kinds),
            quarter: coin(quarter, (75.0, false)),
            half: coin(half, (50.0, false)),
        }
    }

    /// Writes one product; returns its number of triples.
    fn product(
        &mut self,
        scale: &Scale,
        words: &mut Words,
        text: &mut Text,
        subject: &str,
        producer: &str,
    ) -> u32 {
        let types = &scale.types;
        text.put(subject).put(class!(bsbm!("Product")));
        words.describe(text, subject, &mut self.values, (50, 150));
        let leaf = types.leaves().start + self.leaf.draw() - 1;
        for number in types.lineage(leaf) {
            text.put(subject).put(OF_TYPE).instance("ProductType", number).put(END);
        }
        text.put(subject).put(link!(bsbm!("producer"))).put(producer).put(END);
        let mut triples = 7 + types.depth();

        // Which properties there are is drawn first: the values have streams of their own.
        let (numeric, textual) = self.properties();
        for predicate in present(&NUMERIC, numeric) {
            text.put(subject).put(predicate).number(self.numeric.draw()).put(END_INTEGER);
            triples += 1;
        }
        for predicate in present(&TEXTUAL, textual) {
            let count = self.values.between(3, 15);
            text.put(subject).put(predicate).words(&mut words.texts, count).put(END_STRING);
            triples += 1;
        }
        for number in types.lineage(leaf) {
            for feature in types.features(number) {
                if self.quarter.draw() {
                    text.put(subject).put(FEATURE).number(feature).put(END_IRI);
                    triples += 1;
                }
            }
        }
        provenance(text, subject, producer, self.dates.draw());
        triples
    }

    /// The numeric and textual properties of a product.
    fn properties(&mut self) -> ([bool; 6], [bool; 6]) {
        let kind = self.kind.draw();
        let four = match kind {
            OptionalProperties::FourAndFive => [true, true],
            OptionalProperties::SomeOfFourAndFive => [self.half.draw(), self.half.draw()],
            OptionalProperties::SomeOfFiveAndSix => [false, false],
        };
        let five = match kind {
            OptionalProperties::FourAndFive => [true, true],
            _ => [self.quarter.draw(), self.quarter.draw()],
        };
        let six = match kind {
            OptionalProperties::SomeOfFiveAndSix => [self.half.draw(), self.half.draw()],
            _ => [false, false],
        };
        let properties = |i: usize| [true, true, true, four[i], five[i], six[i]];
        (properties(0), properties(1))
    }
}

const FEATURE: &str = concat!(" <", bsbm!("productFeature"), "> <", inst!("ProductFeature"));

fn present<'a>(predicates: &'a [&'a str; 6], flags: [bool; 6]) -> impl Iterator<Item = &'a str> {
    predicates.iter().zip(flags).filter(|(_, flag)| *flag).map(|(predicate, _)| *predicate)
}
