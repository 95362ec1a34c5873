//! How many entities a data set of a given number of products has, and who owns which.
//!
//! Products belong to producers, offers to vendors, reviews to rating sites, each owner having
//! one unbroken run of numbers. So the data set is known, up to its texts, from the number of
//! products alone.

use std::ops::RangeInclusive;

use serde::Serialize;

use crate::draw::GroupSize;
use crate::error::Error;
use crate::seeds::Seeds;
use crate::types::Types;

/// The most products a data set may have: 20 offers each must be numbered with 31 bits.
pub const MAX_PRODUCTS: u32 = i32::MAX as u32 / OFFERS_PER_PRODUCT;
const OFFERS_PER_PRODUCT: u32 = 20;
const REVIEWS_PER_PRODUCT: u32 = 10;

/// Numbers of entities of a data set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[allow(missing_docs)]
pub struct EntityCounts {
    pub product_types: u32,
    pub product_features: u32,
    pub producers: u32,
    pub products: u32,
    pub vendors: u32,
    pub offers: u32,
    pub rating_sites: u32,
    pub reviewers: u32,
    pub reviews: u32,
}

impl EntityCounts {
    /// The counts for a number of products.
    pub fn new(products: u32) -> Result<Self, Error> {
        Scale::new(products).map(|scale| scale.counts())
    }
}

/// Runs of consecutive numbers from 1, one for each owner.
#[derive(Clone, Debug)]
pub(crate) struct Runs {
    last: Vec<u32>,
}

impl Runs {
    /// Draws run lengths until they cover `total`; the last run is cut.
    fn draw(total: u32, mut sizes: GroupSize) -> Self {
        let (mut last, mut covered) = (Vec::new(), 0);
        while covered < total {
            covered += (sizes.draw() + 1).min(total - covered);
            last.push(covered);
        }
        Self { last }
    }

    pub(crate) fn owners(&self) -> u32 {
        self.last.len() as u32
    }

    /// All that is owned.
    pub(crate) fn total(&self) -> u32 {
        self.last[self.last.len() - 1]
    }

    /// The numbers that belong to an owner.
    pub(crate) fn owned_by(&self, owner: u32) -> RangeInclusive<u32> {
        let before = if owner == 1 { 0 } else { self.last[owner as usize - 2] };
        before + 1..=self.last[owner as usize - 1]
    }

    /// The owner of a number.
    #[inline]
    pub(crate) fn owner(&self, number: u32) -> u32 {
        self.last.partition_point(|&last| last < number) as u32 + 1
    }
}

/// The structure of a data set.
#[derive(Clone, Debug)]
pub(crate) struct Scale {
    pub seeds: Seeds,
    pub types: Types,
    /// Products by producer.
    pub products: Runs,
    /// Offers by vendor.
    pub offers: Runs,
    /// Reviews by rating site.
    pub reviews: Runs,
}

impl Scale {
    pub(crate) fn new(products: u32) -> Result<Self, Error> {
        if !(1..=MAX_PRODUCTS).contains(&products) {
            return Err(Error::Products { products, most: MAX_PRODUCTS });
        }
        let seeds = Seeds::new();
        Ok(Self {
            types: Types::new(products, &seeds),
            products: Runs::draw(products, GroupSize::new(seeds.producers[3], 50.0)),
            offers: Runs::draw(products * OFFERS_PER_PRODUCT, GroupSize::new(seeds.vendors[3], 2_000.0)),
            reviews: Runs::draw(products * REVIEWS_PER_PRODUCT, GroupSize::new(seeds.reviewers[6], 10_000.0)),
            seeds,
        })
    }

    /// How many reviews each reviewer writes: the stream behind [`reviews_of_next`].
    pub(crate) fn review_counts(&self) -> GroupSize {
        GroupSize::new(self.seeds.reviewers[7], 20.0)
    }

    pub(crate) fn counts(&self) -> EntityCounts {
        EntityCounts {
            product_types: self.types.count(),
            product_features: self.types.feature_count(),
            producers: self.products.owners(),
            products: self.products.total(),
            vendors: self.offers.owners(),
            offers: self.offers.total(),
            rating_sites: self.reviews.owners(),
            reviewers: self.count_reviewers(),
            reviews: self.reviews.total(),
        }
    }

    fn count_reviewers(&self) -> u32 {
        let (mut counts, mut reviewers) = (self.review_counts(), 0);
        for site in 1..=self.reviews.owners() {
            let mut left = self.reviews.owned_by(site).count() as u32;
            while left > 0 {
                left -= reviews_of_next(&mut counts, left);
                reviewers += 1;
            }
        }
        reviewers
    }
}

/// Reviews of a site's next reviewer, who may have none, when `left` are to be written there.
pub(crate) fn reviews_of_next(counts: &mut GroupSize, left: u32) -> u32 {
    counts.draw().min(left)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Counts of the original generator: types, features, producers, vendors, sites, reviewers.
    #[test]
    fn counts_of_known_sizes() {
        for (products, expected) in [
            (100, [21, 999, 3, 1, 1, 50]),
            (1000, [151, 4_745, 22, 12, 1, 503]),
            (2785, [151, 4_745, 60, 29, 4, 1_417]),
            (10_000, [329, 10_519, 206, 99, 11, 5_102]),
            (28_480, [585, 19_054, 578, 290, 28, 14_530]),
        ] {
            let c = EntityCounts::new(products).unwrap();
            let got =
                [c.product_types, c.product_features, c.producers, c.vendors, c.rating_sites, c.reviewers];
            assert_eq!(got, expected, "{products} products");
            assert_eq!((c.products, c.offers, c.reviews), (products, products * 20, products * 10));
        }
    }

    #[test]
    fn counts_of_published_sizes() {
        let c = EntityCounts::new(284_826).unwrap();
        assert_eq!(
            [c.product_types, c.product_features, c.producers, c.vendors, c.reviewers],
            [2_011, 47_884, 5_618, 2_896, 146_093]
        );
        let c = EntityCounts::new(570_000).unwrap();
        assert_eq!(
            [c.product_types, c.product_features, c.producers, c.vendors, c.reviewers],
            [3_949, 94_259, 11_240, 5_758, 292_095]
        );
    }

    #[test]
    fn every_number_has_the_owner_whose_run_it_is_in() {
        let scale = Scale::new(1000).unwrap();
        for owner in 1..=scale.products.owners() {
            for number in scale.products.owned_by(owner) {
                assert_eq!(scale.products.owner(number), owner);
            }
        }
    }

    #[test]
    fn refuses_impossible_sizes() {
        assert!(matches!(EntityCounts::new(0), Err(Error::Products { products: 0, .. })));
        assert!(EntityCounts::new(MAX_PRODUCTS + 1).is_err());
        assert!(EntityCounts::new(1).is_ok());
    }
}
