//! The text of a query, and what is found out about it, each at most once.

use std::cell::OnceCell;

use crate::bounds::TextLimits;
use crate::bounds::text_limits::Measure;
use crate::error::QueryError;
use crate::text::described::ParsedApart;
use crate::text::weight::Weight;

pub(super) struct QueryText<'a> {
    pub text: &'a str,
    apart: OnceCell<ParsedApart<'a>>,
    measure: OnceCell<Measure>,
    weight: OnceCell<Weight>,
}

impl<'a> QueryText<'a> {
    pub fn new(text: &'a str) -> Self {
        Self { text, apart: OnceCell::new(), measure: OnceCell::new(), weight: OnceCell::new() }
    }

    /// The text without what is better parsed apart.
    pub fn apart(&self) -> &ParsedApart<'a> {
        self.apart.get_or_init(|| ParsedApart::split(self.text))
    }

    /// The depth of that text.
    ///
    /// # Errors
    /// It goes beyond the limits, which are the same each time.
    pub fn measure(&self, limits: &TextLimits) -> Result<Measure, QueryError> {
        if let Some(measure) = self.measure.get() {
            return Ok(*measure);
        }
        let measure = limits.measure(&self.apart().text)?;
        Ok(*self.measure.get_or_init(|| measure))
    }

    /// The memory that the whole text will take.
    pub fn weight(&self) -> Weight {
        *self.weight.get_or_init(|| Weight::from_text(self.text))
    }
}
