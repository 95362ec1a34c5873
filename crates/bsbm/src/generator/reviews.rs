//! Reviewers and their reviews, site by site.

use sha1::{Digest, Sha1};

use super::offers::date_time;
use super::output::Output;
use super::text::{END, END_INTEGER, END_PLAIN, Text};
use super::{Words, country, iri, provenance};
use crate::calendar::{DAY_MS, TODAY, day_ms};
use crate::draw::{Bell, Country, Dates, Weighted, coin, countries};
use crate::error::Error;
use crate::random::JavaRandom;
use crate::scale::{Scale, reviews_of_next};

const RATINGS: [&str; 4] = [
    literal!(bsbm!("rating1")),
    literal!(bsbm!("rating2")),
    literal!(bsbm!("rating3")),
    literal!(bsbm!("rating4")),
];

pub(super) fn write(scale: &Scale, words: &mut Words, out: &mut Output) -> Result<(), Error> {
    let mut streams = ReviewStreams::new(scale);
    let mut counts = scale.review_counts();
    let mut number = 0;
    let (mut site_iri, mut reviewer_iri, mut subject) = (String::new(), String::new(), String::new());
    for site in 1..=scale.reviews.owners() {
        iri(&mut site_iri, |text| text.owned("RatingSite", site, "RatingSite", site));
        let (mut next, last) = scale.reviews.owned_by(site).into_inner();
        while next <= last {
            number += 1;
            iri(&mut reviewer_iri, |text| text.owned("RatingSite", site, "Reviewer", number));
            let country = streams.reviewer(words, &mut out.text, &reviewer_iri, &site_iri);
            out.end(6)?;

            let count = reviews_of_next(&mut counts, last + 1 - next);
            for review in next..next + count {
                let start = out.text.bytes.len();
                let product = streams.product.draw();
                iri(&mut subject, |text| text.owned("RatingSite", site, "Review", review));
                let text = &mut out.text;
                text.put(&subject).put(class!(rev!("Review")));
                text.put(&subject).put(link!(bsbm!("reviewFor")));
                text.owned("Producer", scale.products.owner(product), "Product", product).put(END);
                text.put(&subject).put(link!(rev!("reviewer"))).put(&reviewer_iri).put(END);
                let triples = streams.opinion(words, text, &subject, country, &site_iri);
                out.end_about(product, start, 3 + triples)?;
            }
            next += count;
        }
    }
    Ok(())
}

/// The random streams of this phase.
struct ReviewStreams {
    /// Dates of reviewers, and of the publication of reviews.
    published: Dates,
    values: JavaRandom,
    countries: Weighted<Country>,
    written: Dates,
    rated: Weighted<bool>,
    product: Bell,
}

impl ReviewStreams {
    fn new(scale: &Scale) -> Self {
        let seeds = &scale.seeds.reviewers;
        Self {
            published: Dates::new(seeds[0], TODAY, day_ms(2008, 9, 23)),
            values: JavaRandom::new(seeds[1]),
            countries: countries(seeds[2]),
            written: Dates::new(seeds[3], TODAY - 365 * DAY_MS, TODAY),
            rated: coin(seeds[4], (70.0, true)),
            product: Bell::new(seeds[5], 2.0, scale.products.total(), 4.0),
        }
    }

    /// Writes a reviewer (6 triples); returns his country.
    fn reviewer(&mut self, words: &mut Words, text: &mut Text, subject: &str, site: &str) -> Country {
        let of_reviewer = self.countries.draw();
        text.put(subject).put(class!(foaf!("Person")));
        text.put(subject).put(literal!(foaf!("name"))).words(&mut words.names, 1).put(END_PLAIN);
        text.put(subject).put(literal!(foaf!("mbox_sha1sum")));
        mailbox_hash(text, self.values.int());
        text.put(END_PLAIN);
        country(text, subject, of_reviewer);
        provenance(text, subject, site, self.published.draw());
        of_reviewer
    }

    /// Writes what a review says and when; returns the number of triples.
    fn opinion(
        &mut self,
        words: &mut Words,
        text: &mut Text,
        subject: &str,
        country: Country,
        site: &str,
    ) -> u32 {
        let date = self.written.draw();
        date_time(text, subject, literal!(bsbm!("reviewDate")), date);
        let count = self.values.between(4, 15);
        text.put(subject).put(literal!(dc!("title"))).words(&mut words.texts, count).put(END_PLAIN);
        let count = self.values.between(50, 200);
        text.put(subject).put(literal!(rev!("text"))).words(&mut words.texts, count);
        text.put("\"@").put(country.language).put(END);
        let mut triples = 5;
        for predicate in RATINGS {
            if self.rated.draw() {
                text.put(subject).put(predicate).number(self.values.between(1, 10)).put(END_INTEGER);
                triples += 1;
            }
        }
        provenance(text, subject, site, self.published.draw_in(date, TODAY));
        triples
    }
}

/// SHA-1 of four bytes, in hexadecimal without the leading zero of each byte.
fn mailbox_hash(text: &mut Text, mailbox: i32) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    for byte in Sha1::digest(mailbox.to_le_bytes()) {
        if byte >= 16 {
            text.bytes.push(DIGITS[usize::from(byte >> 4)]);
        }
        text.bytes.push(DIGITS[usize::from(byte & 15)]);
    }
}
