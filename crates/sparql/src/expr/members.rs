//! `IN` a long list of constants: the list as a set of values.
//!
//! 1. A row whose id is that of a member is in the list, and for most kinds of ids a row with
//!    another one is not: one look into a set of ids answers.
//! 2. Other rows have values, stored or computed: their hashes lead to the few members that may be
//!    equal ([`sought`]).
//! 3. Where none is equal, the answer is an error if one comparison would be one: by the kinds of
//!    the members, and for moments of which only one has a time zone by comparing them.
//!
//! The rest of the list, variables and triple terms, is compared one by one.

use hashbrown::HashTable;
use rustc_hash::FxHashSet;
use snowmelt_graph::{TermId, TermKind, from_boolean};

use super::kernel::{FALSE, TRUE};
use super::node::ExprNode;
use crate::algebra::consts::GroundTerm;
use crate::value::{TermStore, Value, equals, filed, sought};

/// A list shorter than this is compared one by one.
const LEAST_MEMBERS: usize = 8;

/// A list.
#[derive(Debug)]
pub(crate) struct Members {
    set: ValueSet,
    /// members that are no constants, or triple terms
    pub(super) rest: Vec<ExprNode>,
}

impl Members {
    /// The list as a set where that is worth it, else as it was; with the terms of those members
    /// that are constants.
    pub fn new<'e>(
        terms: impl Iterator<Item = Option<&'e GroundTerm>>,
        nodes: Vec<ExprNode>,
    ) -> std::result::Result<Self, Vec<ExprNode>> {
        if nodes.len() < LEAST_MEMBERS {
            return Err(nodes);
        }
        let (mut set, mut rest) = (ValueSet::default(), Vec::new());
        for (term, node) in terms.zip(nodes) {
            match (term, node) {
                (Some(GroundTerm::Iri(iri)), ExprNode::Const(id)) => {
                    set.insert(id, Value::Iri(iri.as_str().into()));
                }
                (Some(GroundTerm::Literal(literal)), ExprNode::Const(id)) => {
                    set.insert(id, Value::of_term(literal.as_ref().into()));
                }
                (_, other) => rest.push(other),
            }
        }
        Ok(Self { set, rest })
    }

    /// A plain string, which a computed value is compared with.
    pub fn one(term: Option<&GroundTerm>, node: &ExprNode) -> Option<Self> {
        let (Some(GroundTerm::Literal(literal)), ExprNode::Const(id)) = (term, node) else { return None };
        let value = Value::of_term(literal.as_ref().into());
        if !matches!(value, Value::String(_)) {
            return None;
        }
        let mut set = ValueSet::default();
        set.insert(*id, value);
        Some(Self { set, rest: Vec::new() })
    }

    /// The answer that an id alone gives.
    pub(super) fn find(&self, id: TermId, store: &dyn TermStore) -> Option<TermId> {
        self.set.find(id, store)
    }

    /// The answer for a value: true, false, or UNDEF for the error.
    pub(super) fn find_value(&self, value: &Value<'_>) -> TermId {
        self.set.find_value(value)
    }
}

/// Constants, to be asked whether one of them equals a term.
#[derive(Debug, Default)]
struct ValueSet {
    /// of members that equal themselves
    ids: FxHashSet<TermId>,
    values: Vec<Value<'static>>,
    /// places of values by each of their hashes
    places: HashTable<(u64, u32)>,
    /// members of unknown value: comparing a literal with one is an error
    has_unknown: bool,
    /// members that have a value: comparing one of unknown value with them is an error
    has_known: bool,
    has_tagged: bool,
    /// numbers that are no inline integers
    has_odd_numbers: bool,
    /// places of moments without a time zone, and with one
    moments: [Vec<u32>; 2],
}

impl ValueSet {
    fn insert(&mut self, id: TermId, value: Value<'_>) {
        let value = value.into_owned();
        if equals(&value, &value) == Some(true) {
            self.ids.insert(id);
        }
        let place = u32::try_from(self.values.len()).expect("a list has fewer than 2^32 members");
        for hash in filed(&value).as_slice() {
            self.places.insert_unique(*hash, (*hash, place), |place| place.0);
        }
        match &value {
            Value::Iri(_) | Value::Blank(_) | Value::Triple(_) => {}
            Value::LangString(..) => self.has_tagged = true,
            Value::Other { .. } => self.has_unknown = true,
            _ => self.has_known = true,
        }
        self.has_odd_numbers |= value.is_numeric() && id.kind() != TermKind::Integer;
        if let Value::Temporal(moment) = &value
            && let Some(has_zone) = moment.has_time_zone()
        {
            self.moments[usize::from(has_zone)].push(place);
        }
        self.values.push(value);
    }

    /// The answer that an id alone gives.
    fn find(&self, id: TermId, store: &dyn TermStore) -> Option<TermId> {
        if self.ids.contains(&id) {
            return Some(TRUE);
        }
        let absent_string = if self.has_unknown { TermId::UNDEF } else { FALSE };
        match id.kind() {
            TermKind::Special => Some(TermId::UNDEF),
            TermKind::Iri | TermKind::Blank => Some(FALSE),
            // triple terms are not of the set
            TermKind::Triple => Some(FALSE),
            TermKind::String | TermKind::ShortString => Some(absent_string),
            TermKind::Integer if !self.has_odd_numbers => Some(absent_string),
            // tags that differ in case are equal
            TermKind::Literal | TermKind::Text if !self.has_tagged && store.lang_of(id).is_some() => {
                Some(FALSE)
            }
            TermKind::Text if store.datatype_of(id) == Some(crate::value::iri::STRING) => Some(absent_string),
            _ => None,
        }
    }

    fn find_value(&self, value: &Value<'_>) -> TermId {
        for hash in sought(value).as_slice() {
            let is_equal = |(filed, place): &(u64, u32)| {
                filed == hash && equals(value, &self.values[*place as usize]) == Some(true)
            };
            if self.places.find(*hash, is_equal).is_some() {
                return TRUE;
            }
        }
        if self.may_err(value) { TermId::UNDEF } else { from_boolean(false) }
    }

    /// Whether a comparison of a value that equals no member with one of them is an error.
    fn may_err(&self, value: &Value<'_>) -> bool {
        match value {
            Value::Iri(_) | Value::Blank(_) | Value::Triple(_) | Value::LangString(..) => false,
            Value::Other { .. } => self.has_unknown || self.has_known,
            Value::Temporal(moment) if !self.has_unknown => {
                let Some(has_zone) = moment.has_time_zone() else { return false };
                let unlike = &self.moments[usize::from(!has_zone)];
                unlike.iter().any(|place| equals(value, &self.values[*place as usize]).is_none())
            }
            _ => self.has_unknown,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::{NoStore, parse_literal};

    fn literal(lexical: &str, datatype: &str) -> Value<'static> {
        let datatype = match datatype.strip_prefix("x:") {
            Some(_) => datatype.to_owned(),
            None => format!("{}{datatype}", crate::value::iri::XSD),
        };
        parse_literal(lexical, None, &datatype).into_owned()
    }

    fn of_all_kinds() -> Vec<Value<'static>> {
        let mut all: Vec<Value<'static>> = [
            ("5", "integer"),
            ("5.0", "decimal"),
            ("0.1", "float"),
            ("0.1", "double"),
            ("NaN", "double"),
            ("16777217", "integer"),
            ("16777216", "float"),
            ("a", "string"),
            ("true", "boolean"),
            ("2008-06-20", "date"),
            ("2008-06-20Z", "date"),
            ("2008-06-25Z", "date"),
            ("P1D", "duration"),
            ("PT24H", "dayTimeDuration"),
            ("x", "integer"),
            ("x", "x:t"),
            ("y", "x:t"),
        ]
        .map(|(lexical, datatype)| literal(lexical, datatype))
        .into();
        all.extend(["en", "EN", "en--ltr"].map(|tag| Value::LangString("a".into(), tag.into())));
        all.extend([Value::Iri("a".into()), Value::Iri("b".into()), Value::Blank("a".into())]);
        all
    }

    /// The standard's IN: a comparison with each member.
    fn one_by_one(value: &Value<'_>, members: &[Value<'_>]) -> TermId {
        let each: Vec<Option<bool>> = members.iter().map(|member| equals(value, member)).collect();
        match () {
            () if each.contains(&Some(true)) => TRUE,
            () if each.contains(&None) => TermId::UNDEF,
            () => FALSE,
        }
    }

    #[test]
    fn a_set_answers_as_its_members_do_one_by_one() {
        let all = of_all_kinds();
        let mut random = 7;
        let mut seen = FxHashSet::default();
        for _ in 0..2000 {
            snowmelt_base::random::lcg(&mut random);
            let members: Vec<Value<'static>> =
                (0..all.len()).filter(|i| (random >> (2 * i)) & 3 == 0).map(|i| all[i].clone()).collect();
            let mut set = ValueSet::default();
            for (i, member) in members.iter().enumerate() {
                set.insert(TermId::new(TermKind::Local, i as u64), member.clone());
            }
            for value in &all {
                let expected = one_by_one(value, &members);
                seen.insert(expected);
                assert_eq!(set.find_value(value), expected, "{value:?} in {members:?}");
            }
        }
        assert_eq!(seen.len(), 3, "some are in, some not, some err");
    }

    /// An id says without its value the same as the value.
    #[test]
    fn ids_answer_as_values_do() {
        let all = of_all_kinds();
        let inline = |value: &Value<'_>| {
            let text = value.text();
            value.datatype().and_then(|of| TermId::inline(&snowmelt_graph::TermRef::typed(&text, of)))
        };
        let known: Vec<(TermId, &Value<'_>)> = all
            .iter()
            .filter_map(|v| Some((inline(v).filter(|_| !matches!(v, Value::LangString(..)))?, v)))
            .collect();
        assert!(known.len() > 6);
        for unlike in &all {
            for (_, member) in &known {
                let mut set = ValueSet::default();
                for (i, value) in [unlike, *member].into_iter().enumerate() {
                    let id = inline(value).unwrap_or(TermId::new(TermKind::Local, i as u64));
                    set.insert(id, value.clone());
                }
                for (id, value) in &known {
                    if let Some(answer) = set.find(*id, &NoStore) {
                        assert_eq!(answer, set.find_value(value), "{value:?} in {unlike:?}, {member:?}");
                    }
                }
            }
        }
    }
}
