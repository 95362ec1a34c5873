//! Classes of term ids: ranges whose terms have one kind and, of literals, one language and
//! datatype.

use std::ops::RangeInclusive;

use crate::database::state::GraphState;
use crate::dict::code::IN_STRING;
use crate::term::layout::{BODY_BITS, DERIVED, FIRST_REGISTERED};
use crate::term::{NUMBER_BITS, PLAIN, TermId, TermKind};

/// Ids of stored terms of one kind and, of literals, one language and datatype.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct IdClass {
    /// The ids.
    pub ids: RangeInclusive<u64>,
    /// The kind of the terms.
    pub kind: TermKind,
    /// Whether the ids tell the language and datatype. Otherwise these are in the strings of the
    /// dictionary, and differ.
    pub is_carried: bool,
}

impl GraphState {
    /// The classes that ids of stored terms fall into, ascending.
    pub fn id_classes(&self) -> Vec<IdClass> {
        let kinds = TermKind::ALL.into_iter();
        kinds
            .filter(|kind| !matches!(kind, TermKind::Special | TermKind::Local))
            .flat_map(|kind| self.of_kind(kind))
            .collect()
    }

    fn of_kind(&self, kind: TermKind) -> Vec<IdClass> {
        let codes: Vec<u64> = match kind {
            TermKind::Decimal => {
                let registered = u64::from(FIRST_REGISTERED);
                (0..=DERIVED.len() as u64)
                    .chain(registered..registered + self.codes.decimal_datatypes() as u64)
                    .collect()
            }
            kind if kind.has_code() => {
                [IN_STRING, PLAIN].into_iter().chain(self.codes.annotation_codes()).map(u64::from).collect()
            }
            kind => {
                let ids = TermId::new(kind, 0).0..=TermId::new(kind, kind.most_payload()).0;
                return vec![IdClass { ids, kind, is_carried: true }];
            }
        };
        let bits = if kind == TermKind::Decimal { BODY_BITS } else { NUMBER_BITS };
        let class = |code: u64| {
            let ids = TermId::new(kind, code << bits).0..=TermId::new(kind, ((code + 1) << bits) - 1).0;
            IdClass { ids, kind, is_carried: !kind.has_code() || code != u64::from(IN_STRING) }
        };
        codes.into_iter().map(class).collect()
    }
}
