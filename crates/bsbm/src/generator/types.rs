//! Product types and product features.

use super::output::Output;
use super::text::{END, END_PLAIN};
use super::{Words, iri, provenance};
use crate::calendar::day_ms;
use crate::draw::Dates;
use crate::error::Error;
use crate::random::JavaRandom;
use crate::scale::Scale;

const INSTITUTION: &str = concat!("<", inst!("StandardizationInstitution1"), ">");
const FROM: i64 = day_ms(2000, 6, 20);
const TO: i64 = day_ms(2000, 7, 23);
const COMMENT_WORDS: (u32, u32) = (20, 50);

pub(super) fn write_types(scale: &Scale, words: &mut Words, out: &mut Output) -> Result<(), Error> {
    let mut dates = Dates::new(scale.seeds.types[0], FROM, TO);
    let mut values = JavaRandom::new(scale.seeds.types[1]);
    let mut subject = String::new();
    for number in 1..=scale.types.count() {
        iri(&mut subject, |text| text.instance("ProductType", number));
        let text = &mut out.text;
        text.put(&subject).put(class!(bsbm!("ProductType")));
        let parent = scale.types.parent(number);
        if let Some(parent) = parent {
            words.describe(text, &subject, &mut values, COMMENT_WORDS);
            text.put(&subject).put(link!(rdfs!("subClassOf"))).instance("ProductType", parent).put(END);
        } else {
            text.put(&subject).put(literal!(rdfs!("label"))).put("Thing").put(END_PLAIN);
            let comment = "The Product Type of all Products";
            text.put(&subject).put(literal!(rdfs!("comment"))).put(comment).put(END_PLAIN);
        }
        provenance(text, &subject, INSTITUTION, dates.draw());
        out.end(if parent.is_some() { 6 } else { 5 })?;
    }
    Ok(())
}

pub(super) fn write_features(scale: &Scale, words: &mut Words, out: &mut Output) -> Result<(), Error> {
    let mut values = JavaRandom::new(scale.seeds.features[0]);
    let mut dates = Dates::new(scale.seeds.features[1], FROM, TO);
    let mut subject = String::new();
    for owner in 2..=scale.types.count() {
        let (fewest, most) = scale.types.feature_bounds(owner);
        let count = values.between(fewest, most);
        assert_eq!(count as usize, scale.types.features(owner).len(), "the plan drew the same stream");
        for number in scale.types.features(owner) {
            iri(&mut subject, |text| text.instance("ProductFeature", number));
            let text = &mut out.text;
            text.put(&subject).put(class!(bsbm!("ProductFeature")));
            words.describe(text, &subject, &mut values, COMMENT_WORDS);
            provenance(text, &subject, INSTITUTION, dates.draw());
            out.end(5)?;
        }
    }
    Ok(())
}
