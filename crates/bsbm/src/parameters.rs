//! The values of query parameters.
//!
//! All are drawn from three streams that a seed gives, in the order of the queries. What the
//! original looks up in files of its generator (types, features, owners) follows here from the
//! number of products.

use std::collections::VecDeque;

use crate::calendar::{DAY_MS, day_ms, day_text};
use crate::draw::{Country, Weighted, countries};
use crate::random::JavaRandom;
use crate::scale::{Runs, Scale};
use crate::template::{Class, Template};

/// The state of all parameters.
#[derive(Clone, Debug)]
pub(crate) struct Parameters {
    scale: Scale,
    values: JavaRandom,
    countries: Weighted<Country>,
    levels: JavaRandom,
    updates: VecDeque<String>,
}

impl Parameters {
    pub(crate) fn new(scale: Scale, seed: i64, updates: Vec<String>) -> Self {
        let mut seeds = JavaRandom::new(seed);
        Self {
            scale,
            values: JavaRandom::new(seeds.long()),
            countries: countries(seeds.long()),
            levels: JavaRandom::new(seeds.long()),
            updates: updates.into(),
        }
    }

    /// One value for each parameter of a template.
    pub(crate) fn draw(&mut self, template: &Template) -> Vec<String> {
        let mut drawn = Drawn::default();
        let mut texts: Vec<String> = Vec::new();
        for &class in &template.classes {
            texts.push(self.draw_one(class, &mut drawn));
        }
        let mut pool = Vec::new();
        for (text, &class) in texts.iter_mut().zip(&template.classes) {
            if class == Class::ProductFeature {
                if pool.is_empty() {
                    pool = self.features(drawn.product_type.expect("features come with a product type"));
                }
                *text = instance("ProductFeature", self.draw_feature(&mut pool));
            }
        }
        texts
    }

    /// A value; features are left empty for later.
    fn draw_one(&mut self, class: Class, drawn: &mut Drawn) -> String {
        match class {
            Class::ProductType => {
                let leaves = self.scale.types.leaves();
                let number = leaves.start + self.values.below(leaves.len() as u32);
                drawn.product_type = Some(number);
                instance("ProductType", number)
            }
            Class::ProductTypeOfLevel { top_level } => {
                let level = self.levels.between(top_level, self.scale.types.depth());
                let types = self.scale.types.level(level);
                instance("ProductType", self.values.between(types.start, types.end - 1))
            }
            Class::ProductFeature => String::new(),
            Class::NumericValue => self.values.between(1, 500).to_string(),
            Class::Product => draw_owned(&mut self.values, &self.scale.products, "Producer", "Product"),
            Class::Offer => draw_owned(&mut self.values, &self.scale.offers, "Vendor", "Offer"),
            Class::Review => draw_owned(&mut self.values, &self.scale.reviews, "RatingSite", "Review"),
            Class::Producer => {
                let number = self.values.between(1, self.scale.products.owners());
                owned("Producer", number, "Producer", number)
            }
            Class::Country => {
                format!("<http://downlode.org/rdf/iso-3166/countries#{}>", self.countries.draw().code)
            }
            Class::CurrentDate => concat!("\"2008-06-20T00:00:00\"^^<", xsd!("dateTime"), ">").to_owned(),
            Class::ConsecutiveMonth(k) => {
                let first = *drawn.first_day.get_or_insert_with(|| i64::from(self.values.between(0, 309)));
                let day = day_text(day_ms(2007, 6, 20) + (first + 28 * k) * DAY_MS);
                String::from_utf8_lossy(day).into_owned()
            }
            // After the last transaction the original goes on with empty ones.
            Class::UpdateTransaction => self.updates.pop_front().unwrap_or_default(),
        }
    }

    /// The features of a type and of its ancestors.
    fn features(&self, product_type: u32) -> Vec<u32> {
        let types = &self.scale.types;
        types.lineage(product_type).flat_map(|number| types.features(number)).collect()
    }

    /// Draws a feature. The original means to take it out of the pool, but takes out the
    /// feature whose number is the drawn place. So a feature may come twice; the same queries
    /// need the same mistake.
    fn draw_feature(&mut self, pool: &mut Vec<u32>) -> u32 {
        let place = self.values.below(pool.len() as u32);
        let feature = pool[place as usize];
        pool.retain(|&number| number != place);
        feature
    }
}

/// Data that the parameters of one query share.
#[derive(Default)]
struct Drawn {
    product_type: Option<u32>,
    first_day: Option<i64>,
}

fn instance(kind: &str, number: u32) -> String {
    format!(concat!("<", inst!("{}{}"), ">"), kind, number)
}

fn owned(owner_kind: &str, owner: u32, kind: &str, number: u32) -> String {
    format!(concat!("<", inst!("dataFrom{}{}/{}{}"), ">"), owner_kind, owner, kind, number)
}

fn draw_owned(values: &mut JavaRandom, runs: &Runs, owner_kind: &str, kind: &str) -> String {
    let number = values.between(1, runs.total());
    owned(owner_kind, runs.owner(number), kind, number)
}
