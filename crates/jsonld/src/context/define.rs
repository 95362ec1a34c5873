//! Definitions of the terms of one local context (4.2).
//!
//! A definition may use other terms of the same context: a prefix, the term of a type. The
//! specification defines those first, by recursion; a chain of terms would make it as deep as
//! its author likes. Here the terms that one uses are told from its text alone, and terms are
//! defined from a list, the used ones before their users.

use std::rc::Rc;

use rustc_hash::FxHashMap;

use super::terms::{Container, ScopedContext, TermDef};
use super::{
    Adoption, Context, Origin, Process, boolean, direction_of, is_absolute, is_keyword, looks_like_keyword,
    prefix_and_suffix,
};
use crate::fault::Misuse;
use crate::json::{Json, Object, Value};

/// Members of a context that are no terms.
const SETTINGS: [&str; 8] =
    ["@base", "@direction", "@import", "@language", "@propagate", "@protected", "@version", "@vocab"];

/// Members of a definition.
const ENTRIES: [&str; 11] = [
    "@id",
    "@reverse",
    "@container",
    "@context",
    "@direction",
    "@index",
    "@language",
    "@nest",
    "@prefix",
    "@protected",
    "@type",
];

/// A context whose terms are being defined.
pub(super) struct Local<'p, 'a> {
    pub process: &'p Process<'a>,
    pub members: &'p Object,
    pub origin: Origin<'p>,
    pub how: Adoption,
    /// The value of `@protected`, for all of its terms.
    pub protects: bool,
}

/// How far a term is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Step {
    /// The terms it uses are being defined.
    Begun,
    Defined,
}

impl<'p> Local<'p, '_> {
    pub fn define_all(&self, result: &mut Context) -> Result<(), Misuse> {
        let mut steps: FxHashMap<&str, Step> = FxHashMap::default();
        let mut open: Vec<&'p str> = Vec::new();
        for (name, _) in self.members.iter().filter(|(name, _)| !SETTINGS.contains(name)) {
            open.push(name);
            while let Some(&term) = open.last() {
                match steps.insert(term, Step::Begun) {
                    None => self.open_used(term, &steps, &mut open)?,
                    Some(Step::Begun) => {
                        self.process.stopped()?;
                        self.define(term, result)?;
                        steps.insert(term, Step::Defined);
                        open.pop();
                    }
                    Some(Step::Defined) => {
                        steps.insert(term, Step::Defined);
                        open.pop();
                    }
                }
            }
        }
        result.terms.settle();
        Ok(())
    }

    /// Adds the terms that a term uses and that are not defined yet.
    fn open_used(
        &self,
        term: &'p str,
        steps: &FxHashMap<&str, Step>,
        open: &mut Vec<&'p str>,
    ) -> Result<(), Misuse> {
        let value = self.members.get(term).expect("a term of this context");
        let mut needs = |used: &'p str, is_in_its_value: bool| match steps.get(used) {
            Some(Step::Defined) => Ok(()),
            // its own name may hold the prefix of a term that needs it
            Some(Step::Begun) if !is_in_its_value => Ok(()),
            Some(Step::Begun) => {
                Err(value.fault("cyclic IRI mapping", format!("the definition of {term} leads to itself")))
            }
            None => {
                open.push(used);
                Ok(())
            }
        };
        if let Some(prefix) = self.used_prefix(term) {
            needs(prefix, false)?;
        }
        for text in used_texts(term, value) {
            if let Some((used, _)) = self.members.get_with_name(text).filter(|_| !is_special(text)) {
                needs(used, true)?;
            }
            if let Some(prefix) = self.used_prefix(text) {
                needs(prefix, true)?;
            }
        }
        Ok(())
    }

    /// The prefix of a compact IRI, if it is a term of this context.
    fn used_prefix(&self, text: &str) -> Option<&'p str> {
        let (prefix, suffix) = prefix_and_suffix(text)?;
        if prefix == "_" || suffix.starts_with("//") || is_special(prefix) {
            return None;
        }
        self.members.get_with_name(prefix).map(|(name, _)| name)
    }

    /// Defines a term whose used terms are defined.
    fn define(&self, term: &str, result: &mut Context) -> Result<(), Misuse> {
        let value = self.members.get(term).expect("a term of this context");
        let invalid = |message: &str| value.fault("invalid term definition", format!("{term}: {message}"));
        if term.is_empty() {
            return Err(invalid("a term is not empty"));
        }
        if term == "@type" {
            self.check_type_keyword(value)?;
        } else if is_keyword(term) {
            return Err(
                value.fault("keyword redefinition", format!("{term} is a keyword and cannot be defined"))
            );
        } else if looks_like_keyword(term) {
            return Ok(());
        }
        let previous = result.term(term).cloned();
        result.terms.set(term, None);
        let empty = Object::default();
        let (members, id) = match &value.value {
            Value::Null | Value::String(_) => (&empty, Some(value)),
            Value::Object(members) => (members, members.get("@id")),
            _ => return Err(invalid("a definition is an IRI, an object or null")),
        };
        let mut definition = TermDef { is_protected: self.protects, ..TermDef::default() };
        if let Some(protected) = members.get("@protected") {
            definition.is_protected = boolean(protected, "invalid @protected value")?;
        }
        if let Some(datatype) = members.get("@type") {
            definition.datatype = Some(self.datatype(datatype, result)?);
        }
        if let Some(reverse) = members.get("@reverse") {
            if !self.reverse(reverse, members, result, &mut definition)? {
                return Ok(());
            }
            return self.finish(term, value, definition, previous, result);
        }
        let is_simple = matches!(value.value, Value::String(_));
        if !self.iri(term, value, id, is_simple, result, &mut definition)? {
            return Ok(());
        }
        if members.has("@context") {
            // the context is copied for it: only layers are copied fast
            result.terms.settle();
        }
        self.entries(term, members, result, &mut definition)?;
        self.finish(term, value, definition, previous, result)
    }

    /// `@type` may be given a container of a set, and protection, and no more.
    fn check_type_keyword(&self, value: &Json) -> Result<(), Misuse> {
        let is_allowed = value.as_object().is_some_and(|members| {
            members.iter().len() > 0
                && members.iter().all(|(name, value)| match name {
                    "@container" => value.as_str() == Some("@set"),
                    "@protected" => true,
                    _ => false,
                })
        });
        let message = "@type can only have a @container of @set, and @protected";
        if is_allowed { Ok(()) } else { Err(value.fault("keyword redefinition", message)) }
    }

    fn datatype(&self, datatype: &Json, result: &Context) -> Result<Rc<str>, Misuse> {
        let invalid = |message: String| datatype.fault("invalid type mapping", message);
        let text = datatype.as_str().ok_or_else(|| invalid("a type is an IRI".to_owned()))?;
        let iri = result.vocabulary(text).unwrap_or_default();
        let is_allowed = match iri.strip_prefix('@') {
            Some(_) => matches!(&*iri, "@id" | "@vocab" | "@json" | "@none"),
            None => is_absolute(&iri),
        };
        if is_allowed { Ok(iri.into()) } else { Err(invalid(format!("{text} is no type: it means no IRI"))) }
    }

    /// False if the term is ignored.
    fn reverse(
        &self,
        reverse: &Json,
        members: &Object,
        result: &Context,
        definition: &mut TermDef,
    ) -> Result<bool, Misuse> {
        if let Some(other) = members.get("@id").or(members.get("@nest")) {
            let message = "a term with @reverse has neither @id nor @nest";
            return Err(other.fault("invalid reverse property", message));
        }
        let invalid = |message: String| reverse.fault("invalid IRI mapping", message);
        let text = reverse.as_str().ok_or_else(|| invalid("the value of @reverse is an IRI".to_owned()))?;
        if looks_like_keyword(text) && !is_keyword(text) {
            return Ok(false);
        }
        let iri = result.vocabulary(text).filter(|iri| is_absolute(iri) || iri.starts_with("_:"));
        definition.iri = Some(iri.ok_or_else(|| invalid(format!("{text} means no IRI")))?.into());
        definition.is_reverse = true;
        if let Some(container) = members.get("@container").filter(|c| !c.is_null()) {
            definition.container = Container::parse(container)
                .filter(|c| *c == Container::SET || *c == Container::INDEX)
                .ok_or_else(|| {
                    container.fault("invalid reverse property", "its container is @set, @index or null")
                })?;
        }
        Ok(true)
    }

    /// The IRI that a term means; false if the term is ignored.
    fn iri(
        &self,
        term: &str,
        value: &Json,
        id: Option<&Json>,
        is_simple: bool,
        result: &Context,
        definition: &mut TermDef,
    ) -> Result<bool, Misuse> {
        let invalid = |place: &Json, message: String| place.fault("invalid IRI mapping", message);
        if let Some(id) = id.filter(|id| id.as_str() != Some(term)) {
            if id.is_null() {
                return Ok(true);
            }
            let text = id
                .as_str()
                .ok_or_else(|| invalid(id, format!("{term}: the value of @id is an IRI or null")))?;
            if looks_like_keyword(text) && !is_keyword(text) {
                return Ok(false);
            }
            let iri = result.vocabulary(text).unwrap_or_default();
            if iri == "@context" {
                return Err(id.fault("invalid keyword alias", "@context has no other name"));
            }
            if !is_keyword(&iri) && !is_absolute(&iri) && !iri.starts_with("_:") {
                return Err(invalid(id, format!("{term}: {text} means no IRI")));
            }
            let has_inner_colon =
                term.char_indices().any(|(at, c)| c == ':' && at > 0 && at + 1 < term.len());
            if has_inner_colon || term.contains('/') {
                let own = result.vocabulary(term);
                if own.as_deref() != Some(&iri) {
                    return Err(invalid(
                        id,
                        format!("{term} looks like an IRI and is defined as another: {iri}"),
                    ));
                }
            }
            let ends_as_prefix = iri.ends_with([':', '/', '?', '#', '[', ']', '@']) || iri.starts_with("_:");
            definition.is_prefix = is_simple && !term.contains([':', '/']) && ends_as_prefix;
            definition.iri = Some(iri.into());
            return Ok(true);
        }
        let iri = if let Some((prefix, suffix)) = prefix_and_suffix(term) {
            // any term may be the prefix of a term
            match result.term(prefix).and_then(|prefix| prefix.iri.as_deref()) {
                Some(iri) if prefix != "_" && !suffix.starts_with("//") => Some(format!("{iri}{suffix}")),
                _ => Some(term.to_owned()),
            }
        } else if term.contains('/') {
            result.vocabulary(term).filter(|iri| is_absolute(iri))
        } else if term == "@type" {
            Some("@type".to_owned())
        } else {
            result.vocab.as_ref().map(|vocab| format!("{vocab}{term}"))
        };
        let missing =
            || invalid(value, format!("{term} has no @id, and there is no @vocab to build one from"));
        definition.iri = Some(iri.ok_or_else(missing)?.into());
        Ok(true)
    }

    fn entries(
        &self,
        term: &str,
        members: &Object,
        result: &Context,
        definition: &mut TermDef,
    ) -> Result<(), Misuse> {
        let invalid = |place: &Json, message: &str| {
            place.fault("invalid term definition", format!("{term}: {message}"))
        };
        if let Some(container) = members.get("@container") {
            self.container(term, container, definition)?;
        }
        if let Some(index) = members.get("@index") {
            let text = index.as_str().filter(|_| definition.container.has(Container::INDEX));
            let iri = text.and_then(|text| result.vocabulary(text)).filter(|iri| is_absolute(iri));
            if iri.is_none() {
                return Err(invalid(index, "@index is a property, in a container of @index"));
            }
            definition.index = text.map(Into::into);
        }
        if let Some(context) = members.get("@context") {
            definition.context = Some(self.scoped(context, result)?);
        }
        if let Some(language) = members.get("@language").filter(|_| !members.has("@type")) {
            if language.as_str().is_none() && !language.is_null() {
                return Err(language.fault("invalid language mapping", "a language is a tag or null"));
            }
            definition.language = Some(language.as_str().map(Into::into));
        }
        if let Some(direction) = members.get("@direction").filter(|_| !members.has("@type")) {
            definition.direction = Some(direction_of(direction)?);
        }
        if let Some(nest) = members.get("@nest") {
            let name = nest.as_str().filter(|name| *name == "@nest" || !is_keyword(name));
            let name =
                name.ok_or_else(|| nest.fault("invalid @nest value", "@nest is @nest or a term of it"))?;
            definition.nest = Some(name.into());
        }
        if let Some(prefix) = members.get("@prefix") {
            if term.contains([':', '/']) {
                return Err(invalid(prefix, "a prefix has neither colon nor slash"));
            }
            definition.is_prefix = boolean(prefix, "invalid @prefix value")?;
            if definition.is_prefix && definition.iri.as_deref().is_some_and(is_keyword) {
                return Err(invalid(prefix, "a keyword is no prefix"));
            }
        }
        match members.iter().find(|(name, _)| !ENTRIES.contains(name)) {
            Some((name, entry)) => Err(invalid(entry, &format!("{name} means nothing in a definition"))),
            None => Ok(()),
        }
    }

    fn container(&self, term: &str, container: &Json, definition: &mut TermDef) -> Result<(), Misuse> {
        definition.container = Container::parse(container).ok_or_else(|| {
            let message =
                format!("{term}: a container is @list, @set, @index, @id, @type, @language or @graph");
            container.fault("invalid container mapping", message)
        })?;
        if definition.container.has(Container::TYPE) {
            let datatype = definition.datatype.get_or_insert_with(|| "@id".into());
            if !matches!(&**datatype, "@id" | "@vocab") {
                let message = format!("{term}: in a container of @type the type is @id or @vocab");
                return Err(container.fault("invalid type mapping", message));
            }
        }
        Ok(())
    }

    /// A scoped context. It is processed once here, so that a fault in it is reported at once.
    fn scoped(&self, context: &Json, result: &Context) -> Result<ScopedContext, Misuse> {
        let how = Adoption { overrides_protected: true, validates_scoped: false, propagates: true };
        // the terms of this context are not all defined: they do not matter for that
        let active = Rc::new(result.clone());
        if let Err(Misuse::Fault { place, code, message }) =
            self.process.process(&active, context, self.origin, how)
        {
            return Err(place.fault("invalid scoped context", format!("{code}: {message}")));
        }
        Ok(ScopedContext { local: Rc::new(context.clone()), url: self.origin.url.map(Into::into) })
    }

    /// A protected term keeps its definition.
    fn finish(
        &self,
        term: &str,
        value: &Json,
        mut definition: TermDef,
        previous: Option<Rc<TermDef>>,
        result: &mut Context,
    ) -> Result<(), Misuse> {
        self.process.hold(&mut definition, term, value)?;
        if let Some(previous) = previous.filter(|p| p.is_protected && !self.how.overrides_protected) {
            definition.is_protected = true;
            if definition != *previous {
                let message = format!("{term} is protected and cannot be defined anew");
                return Err(value.fault("protected term redefinition", message));
            }
        }
        if definition.is_prefix
            && let Some(iri) = &definition.iri
        {
            self.process.note_prefix(term, iri);
        }
        result.terms.set(term, Some(Rc::new(definition)));
        Ok(())
    }
}

fn is_special(text: &str) -> bool {
    is_keyword(text) || looks_like_keyword(text)
}

/// The texts of a definition that may be terms.
fn used_texts<'j>(term: &'j str, value: &'j Json) -> impl Iterator<Item = &'j str> {
    let members = value.as_object();
    let of = move |name: &str| members.and_then(|members| members.get(name)).and_then(Json::as_str);
    // a term that is defined as itself uses no other
    let id = value.as_str().or_else(|| of("@id")).filter(|id| *id != term);
    [id, of("@type"), of("@reverse"), of("@index")].into_iter().flatten()
}
