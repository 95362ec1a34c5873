//! Use cases: which queries, in which order, with which parameters.
//!
//! A mix is the unit of the benchmark: its queries always come in the same order, only the
//! parameters differ. Q6 of Explore (words in labels) is not in the mix of version 3 and not
//! here.

use std::collections::BTreeMap;
use std::fmt;
use std::io::BufRead;
use std::str::FromStr;
use std::sync::LazyLock;

use crate::error::Error;
use crate::parameters::Parameters;
use crate::scale::Scale;
use crate::template::{QueryKind, Template};

/// The seed of the original driver.
pub const DEFAULT_SEED: i64 = 808_080;

/// A set of queries and their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum UseCase {
    /// A customer looks for products: 25 small queries.
    Explore,
    /// Analysis of the whole data set: 15 large queries.
    BusinessIntelligence,
    /// Five updates, then the Explore mix with numbers two higher.
    ExploreAndUpdate,
}

/// Templates and mix of a use case.
struct Templates {
    templates: BTreeMap<u32, Template>,
    mix: Vec<u32>,
}

macro_rules! query_texts {
    ($dir:literal: $($number:literal $file:literal),*) => {
        Templates::parse(
            include_str!(concat!("../queries/", $dir, "/parameters.txt")),
            include_str!(concat!("../queries/", $dir, "/mix.txt")),
            &[$(($number, include_str!(concat!("../queries/", $dir, "/", $file)))),*],
        )
    };
}

static EXPLORE: LazyLock<Templates> = LazyLock::new(|| {
    query_texts!("explore": 1 "q01.rq", 2 "q02.rq", 3 "q03.rq", 4 "q04.rq", 5 "q05.rq", 7 "q07.rq",
        8 "q08.rq", 9 "q09.rq", 10 "q10.rq", 11 "q11.rq", 12 "q12.rq")
});
static BUSINESS_INTELLIGENCE: LazyLock<Templates> = LazyLock::new(|| {
    query_texts!("bi": 1 "q01.rq", 2 "q02.rq", 3 "q03.rq", 4 "q04.rq", 5 "q05.rq", 6 "q06.rq", 7 "q07.rq",
        8 "q08.rq")
});
static EXPLORE_AND_UPDATE: LazyLock<Templates> = LazyLock::new(|| {
    let updates = query_texts!("update": 1 "q01.rq", 2 "q02.rq");
    updates.followed_by(&EXPLORE)
});

impl Templates {
    fn parse(parameters: &str, mix: &str, texts: &[(u32, &str)]) -> Self {
        let lines = parameters.lines().filter(|line| !line.starts_with('#'));
        let templates = lines.map(|line| Template::parse(line, texts));
        let templates: BTreeMap<_, _> = templates.map(|template| (template.number, template)).collect();
        let mix = mix.split_whitespace().map(|number| number.parse().expect("a mix holds numbers"));
        Self { templates, mix: mix.collect() }
    }

    /// Both mixes as one; the numbers of the second are shifted past those of the first.
    fn followed_by(mut self, second: &Self) -> Self {
        let shift = self.templates.keys().last().copied().unwrap_or(0);
        for template in second.templates.values() {
            let mut template = template.clone();
            template.number += shift;
            self.templates.insert(template.number, template);
        }
        self.mix.extend(second.mix.iter().map(|number| number + shift));
        self
    }
}

impl UseCase {
    fn templates(self) -> &'static Templates {
        match self {
            Self::Explore => &EXPLORE,
            Self::BusinessIntelligence => &BUSINESS_INTELLIGENCE,
            Self::ExploreAndUpdate => &EXPLORE_AND_UPDATE,
        }
    }

    /// The query numbers of one mix, in order.
    pub fn mix(self) -> &'static [u32] {
        &self.templates().mix
    }

    /// Numbers and kinds of the distinct queries, by number.
    pub fn queries(self) -> impl Iterator<Item = (u32, QueryKind)> {
        self.templates().templates.values().map(|template| (template.number, template.kind))
    }

    /// The kind of a query, if the use case has one of that number.
    pub fn kind(self, number: u32) -> Option<QueryKind> {
        self.templates().templates.get(&number).map(|template| template.kind)
    }
}

impl fmt::Display for UseCase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Explore => "explore",
            Self::BusinessIntelligence => "bi",
            Self::ExploreAndUpdate => "explore-and-update",
        })
    }
}

impl FromStr for UseCase {
    type Err = Error;

    /// `explore`, `bi` or `explore-and-update`.
    fn from_str(name: &str) -> Result<Self, Error> {
        [Self::Explore, Self::BusinessIntelligence, Self::ExploreAndUpdate]
            .into_iter()
            .find(|use_case| use_case.to_string() == name)
            .ok_or_else(|| Error::UseCase { name: name.to_owned() })
    }
}

/// A query ready to run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Query {
    /// Its number in the use case.
    pub number: u32,
    /// Its question.
    pub kind: QueryKind,
    /// Its SPARQL text.
    pub text: String,
}

/// The queries of one mix, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mix {
    /// Number of the mix in its workload, from 1.
    pub number: u64,
    /// Its queries.
    pub queries: Vec<Query>,
}

/// An endless stream of mixes, the same for the same products, seed and use case.
///
/// The original driver draws its warm-up mixes from the same stream, before the measured ones.
#[derive(Clone, Debug)]
pub struct Workload {
    use_case: UseCase,
    parameters: Parameters,
    mixes: u64,
}

impl Workload {
    /// A workload for a data set of `products` products. For the use case with updates see
    /// [`with_updates`](Self::with_updates); without them its inserts are empty.
    pub fn new(products: u32, seed: i64, use_case: UseCase) -> Result<Self, Error> {
        Self::with_updates(products, seed, use_case, Vec::new())
    }

    /// A workload whose inserts take these transactions in turn, and are empty when they are
    /// used up.
    pub fn with_updates(
        products: u32,
        seed: i64,
        use_case: UseCase,
        transactions: Vec<String>,
    ) -> Result<Self, Error> {
        let parameters = Parameters::new(Scale::new(products)?, seed, transactions);
        Ok(Self { use_case, parameters, mixes: 0 })
    }

    /// The next mix.
    pub fn next_mix(&mut self) -> Mix {
        let Templates { templates, mix } = self.use_case.templates();
        let queries = mix.iter().map(|number| {
            let template = &templates[number];
            let text = template.fill(&self.parameters.draw(template));
            Query { number: *number, kind: template.kind, text }
        });
        self.mixes += 1;
        Mix { queries: queries.collect(), number: self.mixes }
    }
}

impl Iterator for Workload {
    type Item = Mix;

    fn next(&mut self) -> Option<Mix> {
        Some(self.next_mix())
    }
}

/// Cuts an update set, as the generator writes it, into the triples of its transactions.
pub fn read_update_transactions(updates: impl BufRead) -> Result<Vec<String>, Error> {
    let (mut transactions, mut current) = (Vec::new(), String::new());
    for line in updates.lines() {
        let line = line.map_err(|source| Error::ReadUpdates { transactions: transactions.len(), source })?;
        if line == "#__SEP__" {
            current.truncate(current.trim_end().len());
            transactions.push(std::mem::take(&mut current));
        } else {
            current.push_str(&line);
            current.push('\n');
        }
    }
    if current.trim().is_empty() {
        Ok(transactions)
    } else {
        Err(Error::CutUpdates { transactions: transactions.len() })
    }
}
