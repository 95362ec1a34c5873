//! Contexts in force, and how one follows from another (sections 4.1, 4.2 and 5.2).

mod define;
mod terms;

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;

use snowmelt_base::iri;

use crate::contexts::Contexts;
use crate::fault::{Fault, Misuse, Place, REMOTE_CONTEXT, ReadError, line_and_column};
use crate::json::{self, Json, Object, Value};
pub(crate) use terms::{Container, ScopedContext, TermDef};
use terms::{InUse, Terms};

/// Addresses of contexts that one may lead to.
const MOST_REMOTE: usize = 32;

/// Bytes of definitions that are in use at one time, besides four for each of the document.
const MOST_DEFINED: usize = 16 << 20;

/// Bytes of IRIs in expanded nodes at one time, besides eight for each of the document: a few
/// letters may stand for a long one, each time they come.
const MOST_EXPANDED: usize = 8 << 20;

/// Results that are kept of scoped contexts.
const MOST_KEPT: usize = 4096;

const KEYWORDS: [&str; 23] = [
    "@base",
    "@container",
    "@context",
    "@default",
    "@direction",
    "@graph",
    "@id",
    "@import",
    "@included",
    "@index",
    "@json",
    "@language",
    "@list",
    "@nest",
    "@none",
    "@prefix",
    "@propagate",
    "@protected",
    "@reverse",
    "@set",
    "@type",
    "@value",
    "@vocab",
];

pub(crate) fn is_keyword(text: &str) -> bool {
    KEYWORDS.contains(&text) || text == "@version"
}

/// `@` and letters: kept for later versions, and ignored.
pub(crate) fn looks_like_keyword(text: &str) -> bool {
    text.strip_prefix('@')
        .is_some_and(|rest| !rest.is_empty() && rest.bytes().all(|b| b.is_ascii_alphabetic()))
}

/// The parts of a text with a colon behind its first character.
pub(crate) fn prefix_and_suffix(text: &str) -> Option<(&str, &str)> {
    let colon = text.char_indices().skip(1).find(|(_, c)| *c == ':')?.0;
    Some((&text[..colon], &text[colon + 1..]))
}

/// Whether a text has a scheme: enough of an IRI for a context.
pub(crate) fn is_absolute(text: &str) -> bool {
    iri::scheme(text).is_some()
}

/// A base direction of text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TextDirection {
    LeftToRight,
    RightToLeft,
}

impl TextDirection {
    pub fn named(name: &str) -> Option<Self> {
        match name {
            "ltr" => Some(Self::LeftToRight),
            "rtl" => Some(Self::RightToLeft),
            _ => None,
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::LeftToRight => "ltr",
            Self::RightToLeft => "rtl",
        }
    }
}

/// A context in force.
#[derive(Clone, Debug, Default)]
pub(crate) struct Context {
    base: Option<Rc<str>>,
    vocab: Option<Rc<str>>,
    pub language: Option<Rc<str>>,
    pub direction: Option<TextDirection>,
    terms: Terms,
    /// The context to go back to for nodes within a node.
    pub previous: Option<Rc<Context>>,
}

impl Context {
    pub fn initial(base: Option<String>) -> Rc<Self> {
        Rc::new(Self { base: base.map(Into::into), ..Self::default() })
    }

    pub fn term(&self, name: &str) -> Option<&Rc<TermDef>> {
        self.terms.get(name)
    }

    pub fn container(&self, name: &str) -> Container {
        self.term(name).map_or(Container::default(), |term| term.container)
    }

    /// The IRI or keyword that a name of the document means as a property or type.
    pub fn vocabulary(&self, name: &str) -> Option<String> {
        self.expand(name, Relative::Vocabulary)
    }

    /// IRI expansion (5.2), when everything in the local context is defined; `None` for null.
    pub fn expand(&self, text: &str, relative: Relative) -> Option<String> {
        if is_keyword(text) {
            return Some(text.to_owned());
        }
        if looks_like_keyword(text) {
            return None;
        }
        let to_vocabulary = matches!(relative, Relative::Vocabulary | Relative::Both);
        if let Some(term) = self.term(text) {
            match &term.iri {
                Some(iri) if is_keyword(iri) => return Some(iri.to_string()),
                iri if to_vocabulary => return iri.as_deref().map(str::to_owned),
                _ => {}
            }
        }
        if let Some((prefix, suffix)) = prefix_and_suffix(text) {
            if prefix == "_" || suffix.starts_with("//") {
                return Some(text.to_owned());
            }
            if let Some(term) = self.term(prefix)
                && term.is_prefix
                && let Some(iri) = &term.iri
            {
                return Some(format!("{iri}{suffix}"));
            }
            if is_absolute(text) {
                return Some(text.to_owned());
            }
        }
        if to_vocabulary && let Some(vocab) = &self.vocab {
            return Some(format!("{vocab}{text}"));
        }
        match relative {
            Relative::Base | Relative::Both => Some(self.resolved(text)),
            Relative::Vocabulary => Some(text.to_owned()),
        }
    }

    /// Against the base; as it is where there is none, or nothing comes of both.
    fn resolved(&self, text: &str) -> String {
        let against = |base| resolve(Some(base), text).ok();
        self.base.as_deref().and_then(against).unwrap_or_else(|| text.to_owned())
    }
}

/// The IRI that a reference means, or why it means none.
fn resolve(base: Option<&str>, reference: &str) -> Result<String, String> {
    let iri = match base {
        Some(base) => iri::resolve(base, reference).ok_or("its path would begin with two slashes")?,
        None => reference.to_owned(),
    };
    oxiri::Iri::parse(iri).map(oxiri::Iri::into_inner).map_err(|error| error.to_string())
}

/// Against which IRI a relative one is resolved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Relative {
    /// The base: a value of `@id`.
    Base,
    /// The vocabulary: a property.
    Vocabulary,
    /// Both: a value of `@type`.
    Both,
}

/// How a local context is taken over.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Adoption {
    /// Protected terms may be defined anew.
    pub overrides_protected: bool,
    /// The context stays in force for nodes within the node.
    pub propagates: bool,
    /// Contexts scoped to its terms are looked at.
    pub validates_scoped: bool,
}

impl Default for Adoption {
    fn default() -> Self {
        Self { overrides_protected: false, propagates: true, validates_scoped: true }
    }
}

/// Results of contexts that are adopted again and again, by the addresses of both; they are kept
/// with what they were made of, so that no address is used twice.
type Kept = HashMap<(*const Context, *const Json, bool), (Rc<Context>, Rc<Json>, Rc<Context>)>;

/// Makes contexts.
pub(crate) struct Process<'a> {
    contexts: &'a Contexts,
    base: Option<Rc<str>>,
    stop: &'a dyn Fn() -> bool,
    /// texts that were read, by the number of their places: the document's, then contexts
    texts: RefCell<Vec<(String, Vec<u8>)>>,
    loaded: RefCell<HashMap<String, Rc<Json>>>,
    kept: RefCell<Kept>,
    in_use: InUse,
    most_in_use: usize,
    /// bytes of IRIs in what is expanded of the element under way
    expanded: Cell<usize>,
    most_expanded: usize,
    /// prefixes that were defined, and their bytes
    prefixes: RefCell<Vec<(String, String)>>,
    prefix_bytes: Cell<usize>,
}

/// Where a local context comes from.
#[derive(Clone, Copy)]
struct Origin<'a> {
    /// Against what the addresses in it are resolved.
    url: Option<&'a str>,
    /// The addresses that led to it.
    remote: &'a [String],
}

impl<'a> Process<'a> {
    pub fn new(
        contexts: &'a Contexts,
        base: Option<&str>,
        text: Vec<u8>,
        stop: &'a dyn Fn() -> bool,
    ) -> Self {
        Self {
            contexts,
            base: base.map(Into::into),
            stop,
            most_in_use: MOST_DEFINED.saturating_add(text.len().saturating_mul(4)),
            expanded: Cell::new(0),
            most_expanded: MOST_EXPANDED.saturating_add(text.len().saturating_mul(8)),
            in_use: InUse::default(),
            texts: RefCell::new(vec![(String::new(), text)]),
            loaded: RefCell::default(),
            kept: RefCell::default(),
            prefixes: RefCell::default(),
            prefix_bytes: Cell::new(0),
        }
    }

    /// Notes a prefix, if its name is new and few were noted before.
    fn note_prefix(&self, name: &str, iri: &str) {
        /// Most prefixes, and bytes of them.
        const MOST: usize = 64;
        const MOST_BYTES: usize = 16 << 10;
        let bytes = self.prefix_bytes.get() + name.len() + iri.len();
        let mut prefixes = self.prefixes.borrow_mut();
        if prefixes.len() < MOST && bytes <= MOST_BYTES && !prefixes.iter().any(|(known, _)| known == name) {
            self.prefix_bytes.set(bytes);
            prefixes.push((name.to_owned(), iri.to_owned()));
        }
    }

    /// The prefixes that were noted.
    pub fn prefixes(&self) -> Vec<(String, String)> {
        self.prefixes.take()
    }

    /// The document as a tree.
    pub fn document(&self) -> Result<Json, Misuse> {
        json::parse(&self.texts.borrow()[0].1, 0, self.stop)
    }

    /// Counts the bytes of an IRI, or of the like, in an expanded node.
    pub fn keeps(&self, bytes: usize, place: &Json) -> Result<(), Misuse> {
        self.expanded.set(self.expanded.get() + bytes);
        if self.expanded.get() <= self.most_expanded {
            return Ok(());
        }
        let message = format!("the names in the document stand for more than {} bytes", self.most_expanded);
        Err(place.fault("limit", message))
    }

    /// The nodes expanded so far are gone.
    pub fn keeps_nothing(&self) {
        self.expanded.set(0);
    }

    /// Counts the bytes of a definition.
    fn hold(&self, definition: &mut TermDef, term: &str, place: &Json) -> Result<(), Misuse> {
        let iri = definition.iri.as_deref().map_or(0, str::len);
        let datatype = definition.datatype.as_deref().map_or(0, str::len);
        let bytes = size_of::<TermDef>() + term.len() + iri + datatype;
        if self.in_use.bytes() + bytes > self.most_in_use {
            self.kept.borrow_mut().clear();
        }
        if self.in_use.bytes() + bytes > self.most_in_use {
            let message = format!("the terms in force stand for more than {} bytes", self.most_in_use);
            return Err(place.fault("limit", message));
        }
        definition.held = Some(self.in_use.hold(bytes));
        Ok(())
    }

    /// Whether the caller wants the reading to end.
    pub fn stopped(&self) -> Result<(), Misuse> {
        if (self.stop)() { Err(Misuse::Stopped) } else { Ok(()) }
    }

    /// An error for the caller, with line and column; `stopped` is the caller's own.
    pub fn error<E>(&self, misuse: Misuse, stopped: impl FnOnce() -> Option<E>) -> ReadError<E> {
        let (place, code, message) = match misuse {
            Misuse::Fault { place, code, message } => (place, code, message),
            Misuse::Stopped => match stopped() {
                Some(error) => return ReadError::Caller(error),
                None => (Place::default(), "limit", "the reading was ended".to_owned()),
            },
        };
        let texts = self.texts.borrow();
        let (address, text) = &texts[place.text as usize];
        let (line, column) = line_and_column(text, place.offset);
        let context = (place.text > 0).then(|| address.clone());
        Fault { line, column, code, context, message }.into()
    }

    /// The context of an address, over another one.
    pub fn named(&self, active: &Rc<Context>, address: &str) -> Result<Rc<Context>, Misuse> {
        let local = Json { place: Place::default(), value: Value::String(address.into()) };
        self.adopt(active, &local, self.base.as_deref(), Adoption::default())
    }

    /// A local context of the document, over another one.
    pub fn adopt(
        &self,
        active: &Rc<Context>,
        local: &Json,
        url: Option<&str>,
        how: Adoption,
    ) -> Result<Rc<Context>, Misuse> {
        self.process(active, local, Origin { url, remote: &[] }, how)
    }

    /// A context scoped to a term: worked out once for each context it is adopted by.
    pub fn adopt_scoped(
        &self,
        active: &Rc<Context>,
        scoped: &ScopedContext,
        how: Adoption,
    ) -> Result<Rc<Context>, Misuse> {
        let key = (Rc::as_ptr(active), Rc::as_ptr(&scoped.local), how.propagates);
        if let Some((.., known)) = self.kept.borrow().get(&key) {
            return Ok(Rc::clone(known));
        }
        let made = self.adopt(active, &scoped.local, scoped.url.as_deref(), how)?;
        let mut kept = self.kept.borrow_mut();
        if kept.len() >= MOST_KEPT {
            kept.clear();
        }
        kept.insert(key, (Rc::clone(active), Rc::clone(&scoped.local), Rc::clone(&made)));
        Ok(made)
    }

    /// Context processing (4.1.2).
    fn process(
        &self,
        active: &Rc<Context>,
        local: &Json,
        origin: Origin<'_>,
        mut how: Adoption,
    ) -> Result<Rc<Context>, Misuse> {
        let mut result = (**active).clone();
        if let Some(propagate) = local.as_object().and_then(|local| local.get("@propagate")) {
            how.propagates = boolean(propagate, "invalid @propagate value")?;
        }
        let previous = |result: &mut Context| {
            if !how.propagates && result.previous.is_none() {
                result.previous = Some(Rc::clone(active));
            }
        };
        previous(&mut result);
        for context in local.elements() {
            self.stopped()?;
            match &context.value {
                Value::Null => {
                    if !how.overrides_protected && result.terms.has_protected() {
                        let message = "null would drop protected terms";
                        return Err(context.fault("invalid context nullification", message));
                    }
                    let base = self.base.clone();
                    let before =
                        Rc::new(std::mem::replace(&mut result, Context { base, ..Context::default() }));
                    if !how.propagates {
                        result.previous = Some(before);
                    }
                }
                Value::String(address) => {
                    result = (*self.process_remote(Rc::new(result), context, address, origin, how)?).clone();
                }
                Value::Object(members) => self.process_members(&mut result, members, origin, how)?,
                _ => {
                    let message = "a context is an address, an object, null, or an array of these";
                    return Err(context.fault("invalid local context", message));
                }
            }
        }
        Ok(Rc::new(result))
    }

    fn process_remote(
        &self,
        result: Rc<Context>,
        context: &Json,
        address: &str,
        origin: Origin<'_>,
        how: Adoption,
    ) -> Result<Rc<Context>, Misuse> {
        let address = address_of(origin.url, address, context)?;
        if !how.validates_scoped && origin.remote.contains(&address) {
            return Ok(result);
        }
        if origin.remote.len() >= MOST_REMOTE {
            let message = format!("more than {MOST_REMOTE} contexts lead from one to the next");
            return Err(context.fault("context overflow", message));
        }
        let loaded = self.load(&address, context)?;
        let remote: Vec<String> = origin.remote.iter().cloned().chain([address.clone()]).collect();
        let origin = Origin { url: Some(&address), remote: &remote };
        let how = Adoption { overrides_protected: false, propagates: true, ..how };
        self.process(&result, inner_context(&loaded, context, &address)?, origin, how)
    }

    /// A context of an address, as a tree.
    fn load(&self, address: &str, context: &Json) -> Result<Rc<Json>, Misuse> {
        if let Some(loaded) = self.loaded.borrow().get(address) {
            return Ok(Rc::clone(loaded));
        }
        let failed = |message: String| context.fault(REMOTE_CONTEXT, message);
        let text = match self.contexts.text(address) {
            Ok(Some(text)) => text,
            Ok(None) => {
                return Err(failed(format!(
                    "the context {address} is not known here, and contexts are never fetched; save it and name \
                     its file"
                )));
            }
            Err(error) => return Err(failed(format!("the file of the context {address}: {error}"))),
        };
        let number = {
            let mut texts = self.texts.borrow_mut();
            texts.push((address.to_owned(), text));
            texts.len() - 1
        };
        let tree = json::parse(&self.texts.borrow()[number].1, number as u32, self.stop)?;
        let tree = Rc::new(tree);
        self.loaded.borrow_mut().insert(address.to_owned(), Rc::clone(&tree));
        Ok(tree)
    }

    fn process_members(
        &self,
        result: &mut Context,
        members: &Object,
        origin: Origin<'_>,
        how: Adoption,
    ) -> Result<(), Misuse> {
        if let Some(version) = members.get("@version") {
            let is_1_1 = matches!(&version.value, Value::Number(n) if n.parse() == Ok(1.1));
            if !is_1_1 {
                return Err(version.fault("invalid @version value", "the version is 1.1, a number"));
            }
        }
        let imported = match members.get("@import") {
            Some(import) => Some(self.import(import, members, origin)?),
            None => None,
        };
        let members = imported.as_ref().unwrap_or(members);
        if let Some(propagate) = members.get("@propagate") {
            boolean(propagate, "invalid @propagate value")?;
        }
        if origin.remote.is_empty()
            && let Some(base) = members.get("@base")
        {
            result.base = self.base_of(result, base)?;
        }
        self.defaults(result, members)?;
        let protects = match members.get("@protected") {
            Some(protected) => boolean(protected, "invalid @protected value")?,
            None => false,
        };
        let local = define::Local { process: self, members, origin, how, protects };
        local.define_all(result)
    }

    fn import(&self, import: &Json, members: &Object, origin: Origin<'_>) -> Result<Object, Misuse> {
        let address = import.as_str().ok_or_else(|| {
            import.fault("invalid @import value", "the value of @import is the address of a context")
        })?;
        let address = address_of(origin.url, address, import)?;
        let loaded = self.load(&address, import)?;
        let inner = inner_context(&loaded, import, &address)?;
        let inner = inner.as_object().ok_or_else(|| {
            import.fault("invalid remote context", format!("the context of {address} is no object"))
        })?;
        if let Some(again) = inner.get("@import") {
            return Err(again.fault("invalid context entry", "a context that is imported imports no other"));
        }
        Ok(inner.merged(members))
    }

    fn base_of(&self, result: &Context, base: &Json) -> Result<Option<Rc<str>>, Misuse> {
        if base.is_null() {
            return Ok(None);
        }
        let invalid = |message: String| base.fault("invalid base IRI", message);
        let text = base.as_str().ok_or_else(|| invalid("the value of @base is an IRI or null".to_owned()))?;
        let iri = match result.base.as_deref() {
            None if !is_absolute(text) => {
                return Err(invalid(format!(
                    "{text} is relative, and there is no base to resolve it against"
                )));
            }
            Some(_) if text.is_empty() => return Ok(result.base.clone()),
            against => resolve(against, text),
        };
        iri.map(|iri| Some(iri.into())).map_err(|why| invalid(format!("{text} is no IRI: {why}")))
    }

    /// `@vocab`, `@language`, `@direction`.
    fn defaults(&self, result: &mut Context, members: &Object) -> Result<(), Misuse> {
        if let Some(vocab) = members.get("@vocab") {
            result.vocab = match vocab.as_str() {
                _ if vocab.is_null() => None,
                Some(text) => match result.expand(text, Relative::Both) {
                    Some(iri) if !is_keyword(&iri) => Some(iri.into()),
                    _ => return Err(vocab.fault("invalid vocab mapping", format!("{text} is no IRI"))),
                },
                None => {
                    return Err(vocab.fault("invalid vocab mapping", "the value of @vocab is an IRI or null"));
                }
            };
        }
        if let Some(language) = members.get("@language") {
            result.language = match language.as_str() {
                _ if language.is_null() => None,
                Some(tag) => Some(tag.into()),
                None => {
                    let message = "the value of @language is a language tag or null";
                    return Err(language.fault("invalid default language", message));
                }
            };
        }
        if let Some(direction) = members.get("@direction") {
            result.direction = direction_of(direction)?;
        }
        Ok(())
    }
}

/// A direction, or null.
pub(crate) fn direction_of(direction: &Json) -> Result<Option<TextDirection>, Misuse> {
    if direction.is_null() {
        return Ok(None);
    }
    let named = direction.as_str().and_then(TextDirection::named);
    let invalid = || direction.fault("invalid base direction", "a direction is \"ltr\", \"rtl\" or null");
    named.map(Some).ok_or_else(invalid)
}

fn boolean(value: &Json, code: &'static str) -> Result<bool, Misuse> {
    match value.value {
        Value::Bool(value) => Ok(value),
        _ => Err(value.fault(code, "the value is true or false")),
    }
}

/// The address that a context is named by.
fn address_of(base: Option<&str>, address: &str, place: &Json) -> Result<String, Misuse> {
    let failed =
        |why| place.fault("loading document failed", format!("{address} is no address of a context: {why}"));
    resolve(base, address).map_err(failed)
}

/// The context within the document of a context.
fn inner_context<'j>(loaded: &'j Json, context: &Json, address: &str) -> Result<&'j Json, Misuse> {
    loaded.as_object().and_then(|members| members.get("@context")).ok_or_else(|| {
        context.fault("invalid remote context", format!("{address} is no object with an @context"))
    })
}
