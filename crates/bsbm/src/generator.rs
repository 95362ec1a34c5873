//! The data set as N-Triples, streamed.
//!
//! Phases, in the order of the output, which is also that of the shared word streams:
//! 1. product types (with their ancestors stated on each product), features;
//! 2. producers, each with its products;
//! 3. vendors, each with its offers;
//! 4. reviewers, each with his reviews.
//!
//! Memory: the word lists, one block of text and the owners' runs; with an update set also that.

mod offers;
mod output;
mod products;
mod reviews;
mod text;
mod types;

use std::io::Write;

use crate::error::Error;
use crate::scale::{EntityCounts, Scale};
use crate::words::{WordLists, WordStream};
use output::Output;
pub use output::Written;
use text::{COUNTRY, END, END_DATE, END_IRI, END_PLAIN, Text};

use crate::draw::Country;
use crate::random::JavaRandom;

/// Settings of a generated data set.
#[derive(Clone, Debug)]
pub struct Config {
    /// Number of products: the scale factor. 2785 give a million triples, 284,826 a hundred
    /// million.
    pub products: u32,
    /// The words of all texts.
    pub words: WordLists,
    /// Keeps the last products, with their offers and reviews, for the update set: this many.
    pub update_transactions: Option<u32>,
}

/// Counts of a generated data set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Summary {
    /// The data set.
    pub data: Written,
    /// The update set; zero without one.
    pub updates: Written,
}

/// The generator of one data set.
#[derive(Clone, Debug)]
pub struct Generator {
    scale: Scale,
    words: WordLists,
    update_transactions: u32,
    counts: EntityCounts,
}

/// The word streams that all phases share.
struct Words {
    labels: WordStream,
    texts: WordStream,
    names: WordStream,
}

impl Generator {
    /// Checks the configuration and computes the structure of the data set.
    pub fn new(config: Config) -> Result<Self, Error> {
        let scale = Scale::new(config.products)?;
        let transactions = config.update_transactions.unwrap_or(0);
        if transactions > config.products {
            return Err(Error::Transactions { transactions, products: config.products });
        }
        let counts = scale.counts();
        Ok(Self { scale, words: config.words, update_transactions: transactions, counts })
    }

    /// Numbers of entities, update set included.
    pub fn counts(&self) -> EntityCounts {
        self.counts
    }

    /// Writes the data set, and the update set if there is one.
    ///
    /// Writes to `data` are a quarter of a megabyte each, so it needs no buffer. `progress` is
    /// called after each with the number of triples so far (update set included).
    pub fn write(
        &self,
        data: &mut dyn Write,
        updates: Option<&mut dyn Write>,
        mut progress: impl FnMut(u64),
    ) -> Result<Summary, Error> {
        if updates.is_some() != (self.update_transactions > 0) {
            return Err(Error::UpdateOutput);
        }
        let scale = &self.scale;
        let products = scale.products.total();
        let first_update = products + 1 - self.update_transactions;
        let mut out = Output::new(data, &mut progress, products, first_update);
        let mut words = Words {
            labels: WordStream::new(&self.words.titles, scale.seeds.labels),
            texts: WordStream::new(&self.words.titles, scale.seeds.texts),
            names: WordStream::new(&self.words.names, scale.seeds.names),
        };
        types::write_types(scale, &mut words, &mut out)?;
        types::write_features(scale, &mut words, &mut out)?;
        products::write(scale, &mut words, &mut out)?;
        offers::write(scale, &mut words, &mut out)?;
        reviews::write(scale, &mut words, &mut out)?;
        let (data, updates) = out.finish(updates)?;
        Ok(Summary { data, updates })
    }
}

impl Words {
    /// Label and comment of an entity: two triples.
    fn describe(&mut self, text: &mut Text, subject: &str, values: &mut JavaRandom, comment: (u32, u32)) {
        text.put(subject)
            .put(literal!(rdfs!("label")))
            .words(&mut self.labels, values.between(1, 3))
            .put(END_PLAIN);
        let count = values.between(comment.0, comment.1);
        text.put(subject).put(literal!(rdfs!("comment"))).words(&mut self.texts, count).put(END_PLAIN);
    }
}

/// Publisher and date, which close every entity: two triples.
fn provenance(text: &mut Text, subject: &str, publisher: &str, date_ms: i64) {
    text.put(subject).put(link!(dc!("publisher"))).put(publisher).put(END);
    text.put(subject).put(literal!(dc!("date"))).day(date_ms).put(END_DATE);
}

/// The country of an entity: one triple.
fn country(text: &mut Text, subject: &str, country: Country) {
    text.put(subject).put(COUNTRY).put(country.code).put(END_IRI);
}

/// An IRI in a string that is kept for the lines it opens.
fn iri(place: &mut String, put: impl FnOnce(&mut Text) -> &mut Text) {
    let mut text = Text { bytes: std::mem::take(place).into_bytes() };
    text.bytes.clear();
    put(&mut text);
    *place = String::from_utf8(text.bytes).expect("IRIs are ASCII");
}
