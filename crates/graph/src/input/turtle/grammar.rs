//! The order of tokens in Turtle and TriG, and the repair of texts that break it.
//!
//! Tokens go in, and a text comes out that a parser accepts. A malformed or misplaced term becomes
//! a *placeholder*: an IRI that names a fault. So the triples that contain it can be recognised,
//! and no others are lost. A missing term becomes a placeholder, too; unclosed brackets are closed
//! by the next full stop. If the text after an object neither ends the statement nor continues it,
//! the rest of the statement is skipped, because its subject is not known.
//!
//! Invariant: line feeds are passed through, so lines keep their numbers.

mod marks;

use std::collections::HashMap;

use super::faults::Faults;
use super::lexer::{Token, TokenKind, has_scheme, iri_text, is_reference};
use snowmelt_rdfxml::OddTerms;

/// The part of a document that tokens are in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum LevelKind {
    Document,
    /// `{…}`
    Graph,
    /// `[…]`
    Properties,
    /// `(…)`
    Collection,
    /// `<<…>>`
    Reified,
    /// `<<(…)>>`
    Term,
    /// `{|…|}`
    Annotation,
}

/// The tokens that may come next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Due {
    Subject,
    Verb,
    /// A verb, or the graph that the apparent subject names.
    VerbOrGraph,
    /// A verb, or the end: after `[`, after `;` and after a subject in brackets.
    FirstVerb,
    NextVerb,
    VerbOfBrackets,
    Object,
    /// `,`, `;` or the end.
    End,
    /// After `~`: the name of a reifier, or what follows an object.
    Reifier,
    /// The `]` of a blank node within a triple.
    BlankSubjectEnd,
    BlankObjectEnd,
    BlankReifierEnd,
    /// After GRAPH: its name, the `]` of its name, its `{`.
    GraphName,
    GraphNameEnd,
    GraphBegin,
}

#[derive(Clone, Copy, Debug)]
struct Level {
    kind: LevelKind,
    due: Due,
    /// Numbers of open levels of each kind, this one included, so that a stray bracket need not
    /// search all levels for its partner.
    open: [usize; 5],
    in_graph: bool,
}

/// The tokens that may follow a string.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Suffix {
    None,
    Possible,
    Datatype,
    /// After a string that became a placeholder.
    Dropped,
    DroppedDatatype,
}

/// A directive that is being read.
#[derive(Debug)]
struct Directive {
    /// It begins with `@` and ends with a full stop.
    has_stop: bool,
    step: DirectiveStep,
}

#[derive(PartialEq, Eq, Debug)]
enum DirectiveStep {
    Prefix,
    PrefixIri(String),
    BaseIri,
    Version,
    Stop,
}

/// Tokens that are skipped.
#[derive(Clone, Copy, Debug)]
enum Skip {
    /// To the end of the statement or of the enclosing brackets; the number of brackets open since.
    Statement(usize),
    /// To the end of brackets that a placeholder stands for.
    Brackets(usize),
}

/// The grammar of a document.
pub(super) struct Grammar {
    has_graphs: bool,
    has_base: bool,
    odd: OddTerms,
    /// The IRIs of prefixes, as written.
    prefixes: HashMap<String, String>,
    levels: Vec<Level>,
    suffix: Suffix,
    directive: Option<Directive>,
    skip: Option<Skip>,
    /// The repaired text.
    pub(super) out: Vec<u8>,
    /// Start of the part of it that may be taken back.
    mark: Option<usize>,
}

impl Grammar {
    pub(super) fn new(has_graphs: bool, has_base: bool, odd: OddTerms) -> Self {
        Grammar {
            has_graphs,
            has_base,
            odd,
            prefixes: HashMap::new(),
            levels: vec![Level {
                kind: LevelKind::Document,
                due: Due::Subject,
                open: [0; 5],
                in_graph: false,
            }],
            suffix: Suffix::None,
            directive: None,
            skip: None,
            out: Vec::new(),
            mark: None,
        }
    }

    /// Bytes of the text that will not be taken back.
    pub(super) fn ready(&self) -> usize {
        self.mark.unwrap_or(self.out.len())
    }

    /// Removes the bytes handed on from the text.
    pub(super) fn handed_on(&mut self, bytes: usize) {
        self.out.drain(..bytes);
        self.mark = self.mark.map(|mark| mark - bytes);
    }

    /// Number of open levels, that of the document included.
    pub(super) fn depth(&self) -> usize {
        self.levels.len()
    }

    /// Number of open triple terms.
    pub(super) fn triples(&self) -> usize {
        LevelKind::Term.place().map_or(0, |place| self.top().open[place])
    }

    fn level(&mut self) -> &mut Level {
        self.levels.last_mut().expect("the document's level stays")
    }

    fn top(&self) -> &Level {
        self.levels.last().expect("the document's level stays")
    }

    fn push(&mut self, kind: LevelKind, due: Due) {
        let Level { mut open, in_graph, .. } = *self.top();
        if let Some(place) = kind.place() {
            open[place] += 1;
        }
        self.levels.push(Level { kind, due, open, in_graph: in_graph || kind == LevelKind::Graph });
    }

    fn due(&self) -> Due {
        self.top().due
    }

    fn kind(&self) -> LevelKind {
        self.top().kind
    }

    fn expect(&mut self, due: Due) {
        self.level().due = due;
    }

    fn keep(&mut self, text: &[u8]) {
        self.out.extend_from_slice(text);
    }

    /// Replaces a token by a space and its line feeds, so that its neighbours stay apart.
    fn leave(&mut self, text: &[u8]) {
        self.keep(b" ");
        self.out.extend(text.iter().filter(|byte| **byte == b'\n'));
    }

    /// Writes a placeholder for a term that cannot be read.
    fn place(&mut self, faults: &mut Faults, why: &str) {
        let placeholder = faults.placeholder(why);
        self.out.extend_from_slice(b" ");
        self.out.extend_from_slice(placeholder.as_bytes());
        self.out.extend_from_slice(b" ");
    }

    /// Passes white space and comments through.
    pub(super) fn gap(&mut self, text: &[u8]) {
        self.keep(text);
    }

    /// Processes a token.
    pub(super) fn take(&mut self, mut token: Token, text: &[u8], faults: &mut Faults) {
        if token.fault.is_none() {
            token.fault = self.name_fault(token.kind, text);
        }
        if let Some(skip) = self.skip
            && self.skipped(skip, &token, text)
        {
            return;
        }
        if self.suffix != Suffix::None && self.took_suffix(&token, text, faults) {
            return;
        }
        if self.directive.is_some() && self.took_directive(&token, text, faults) {
            return;
        }
        if self.ended_blank(token.kind == TokenKind::Sign(b']'), text, faults) {
            return;
        }
        if self.due() == Due::Reifier && !is_name(token.kind) && token.kind != TokenKind::Sign(b'[') {
            self.expect(Due::End);
        }
        match token.kind {
            TokenKind::Mark(mark) => self.mark(mark, text, faults),
            TokenKind::Sign(b'.') => self.stop(text, faults),
            TokenKind::Sign(sign @ (b';' | b',')) => self.separator(sign, text, faults),
            TokenKind::Sign(sign @ (b'[' | b'(')) => self.open(sign, text, faults),
            TokenKind::Sign(sign @ (b']' | b')')) => self.close(sign, text, faults),
            TokenKind::Sign(b'{') => self.open_graph(text, faults),
            TokenKind::Sign(_) => self.close_graph(text, faults),
            _ => self.term(&token, text, faults),
        }
    }

    /// The fault of an IRI or prefixed name that cannot be resolved.
    fn name_fault(&self, kind: TokenKind, text: &[u8]) -> Option<String> {
        if kind == TokenKind::Iri && !self.has_base {
            let iri = iri_text(text)?;
            return (!has_scheme(&iri)).then(|| format!("<{iri}> is relative, and there is no base"));
        }
        if kind != TokenKind::Prefixed
            || matches!(&self.directive, Some(d) if d.step == DirectiveStep::Prefix)
        {
            return None;
        }
        let prefix = prefix_of(text);
        match self.prefixes.get(prefix) {
            None => Some(format!("the prefix {prefix}: has not been declared")),
            Some(start) if has_scheme(start) => self.made_fault(start, &text[prefix.len() + 1..]),
            Some(_) => None,
        }
    }

    /// The fault of a prefix and a local name that form no IRI.
    fn made_fault(&self, start: &str, local: &[u8]) -> Option<String> {
        let local = std::str::from_utf8(local).ok()?;
        let made = match local.contains('\\') {
            true => format!("{start}{}", local.replace('\\', "")),
            false => format!("{start}{local}"),
        };
        // the parser itself checks names that may become the host of an IRI
        let may_be_odd = || self.odd == OddTerms::Kept && has_path(start);
        let is_none = oxiri::Iri::parse(made.as_str()).is_err() && !may_be_odd();
        is_none.then(|| format!("<{made}> is no absolute IRI of RFC 3987"))
    }

    /// Processes a term, which may be misplaced.
    fn term(&mut self, token: &Token, text: &[u8], faults: &mut Faults) {
        use TokenKind as T;
        let due = self.due();
        if due == Due::Subject && self.kind() == LevelKind::Document && self.begins_special(token, text) {
            return;
        }
        let fits = match due {
            Due::Subject | Due::GraphName | Due::Reifier => is_name(token.kind),
            Due::Object => is_name(token.kind) || [T::Text, T::Number, T::Truth].contains(&token.kind),
            Due::End | Due::GraphNameEnd | Due::GraphBegin => {
                return self.pass_over(text, faults, "this does not belong here; , or ; or . should");
            }
            _ => [T::Iri, T::Prefixed, T::Type].contains(&token.kind),
        };
        let role = match due {
            Due::Subject => "a subject",
            Due::GraphName => "the name of a graph",
            Due::Object => "an object",
            Due::Reifier => "a reifier",
            _ => "a predicate",
        };
        self.expect(match due {
            Due::Subject if self.kind() == LevelKind::Document => Due::VerbOrGraph,
            Due::Subject => Due::Verb,
            Due::GraphName => Due::GraphBegin,
            Due::Object if self.kind() == LevelKind::Collection => Due::Object,
            Due::Object | Due::Reifier => Due::End,
            _ => Due::Object,
        });
        let is_kept = fits && token.fault.is_none();
        match &token.fault {
            _ if is_kept => self.keep(text),
            Some(why) if fits => self.replace(text, faults, why),
            _ => self.replace(text, faults, &format!("{} is not {role}", shown(text))),
        }
        if token.kind == T::Text {
            self.suffix = if is_kept { Suffix::Possible } else { Suffix::Dropped };
        }
    }

    fn replace(&mut self, text: &[u8], faults: &mut Faults, why: &str) {
        self.place(faults, why);
        self.leave(text);
    }

    /// Whether a token begins a directive or a graph.
    fn begins_special(&mut self, token: &Token, text: &[u8]) -> bool {
        let is_keyword = |word: &[u8]| token.kind == TokenKind::Keyword && text.eq_ignore_ascii_case(word);
        let is_tag = |word: &[u8]| token.kind == TokenKind::Tag && text == word;
        let step = if is_keyword(b"prefix") || is_tag(b"@prefix") {
            DirectiveStep::Prefix
        } else if is_keyword(b"base") || is_tag(b"@base") {
            DirectiveStep::BaseIri
        } else if is_keyword(b"version") || is_tag(b"@version") {
            DirectiveStep::Version
        } else if self.has_graphs && is_keyword(b"graph") {
            self.mark = Some(self.out.len());
            self.keep(text);
            self.expect(Due::GraphName);
            return true;
        } else {
            return false;
        };
        self.mark = Some(self.out.len());
        self.keep(text);
        self.directive = Some(Directive { has_stop: token.kind == TokenKind::Tag, step });
        true
    }

    /// Whether a token is part of the current directive, or its end.
    fn took_directive(&mut self, token: &Token, text: &[u8], faults: &mut Faults) -> bool {
        let Some(Directive { has_stop, step }) = self.directive.take() else { return false };
        let next = match (step, token.kind) {
            (DirectiveStep::Prefix, TokenKind::Prefixed)
                if prefix_of(text).len() + 1 == text.len() && token.fault.is_none() =>
            {
                self.keep(text);
                DirectiveStep::PrefixIri(prefix_of(text).to_owned())
            }
            (step @ (DirectiveStep::PrefixIri(_) | DirectiveStep::BaseIri), TokenKind::Iri) => {
                let unread = || iri_text(text).is_none_or(|iri| !is_reference(&iri));
                let no_iri = || unread().then(|| format!("{} is no IRI", shown(text)));
                match token.fault.clone().or_else(no_iri) {
                    // reported even if no triple uses it
                    Some(why) => {
                        faults.loose(&why);
                        self.replace(text, faults, &why);
                    }
                    None => self.keep(text),
                }
                let is_kept = self.out.ends_with(text);
                match step {
                    DirectiveStep::PrefixIri(name) => {
                        let iri = if is_kept { iri_text(text) } else { None };
                        self.prefixes.insert(name, iri.unwrap_or_default());
                    }
                    _ => self.has_base = true,
                }
                DirectiveStep::Stop
            }
            (DirectiveStep::Version, TokenKind::Text) if token.fault.is_none() && !is_long(text) => {
                self.keep(text);
                DirectiveStep::Stop
            }
            (DirectiveStep::Stop, TokenKind::Sign(b'.')) => {
                self.keep(text);
                self.mark = None;
                return true;
            }
            (DirectiveStep::Stop, _) => {
                faults.loose("a full stop should end the directive");
                self.keep(b".");
                self.mark = None;
                return false;
            }
            _ => {
                self.take_back();
                faults.loose("a directive is malformed");
                if has_stop {
                    self.skip = Some(Skip::Statement(0));
                    return self.skipped(Skip::Statement(0), token, text) || {
                        self.leave(text);
                        true
                    };
                }
                return false;
            }
        };
        if next == DirectiveStep::Stop && !has_stop {
            self.mark = None;
        } else {
            self.directive = Some(Directive { has_stop, step: next });
        }
        true
    }

    /// Takes back the part from the mark on, except for its line feeds.
    fn take_back(&mut self) {
        if let Some(mark) = self.mark.take() {
            let taken = self.out.split_off(mark);
            self.leave(&taken);
        }
    }

    /// Whether a token is the suffix of a string.
    fn took_suffix(&mut self, token: &Token, text: &[u8], faults: &mut Faults) -> bool {
        let is_name = matches!(token.kind, TokenKind::Iri | TokenKind::Prefixed);
        match (std::mem::replace(&mut self.suffix, Suffix::None), token.kind) {
            (Suffix::Possible, TokenKind::Tag) => match &token.fault {
                None => self.keep(text),
                Some(why) => {
                    self.keep(b"^^");
                    self.replace(text, faults, why);
                }
            },
            (Suffix::Possible, TokenKind::Hats) => {
                self.keep(text);
                self.suffix = Suffix::Datatype;
            }
            (Suffix::Datatype, TokenKind::Sign(_)) => {
                self.place(faults, "a datatype is missing");
                return false;
            }
            (Suffix::Datatype, _) => match &token.fault {
                None if is_name => self.keep(text),
                Some(why) if is_name => self.replace(text, faults, why),
                _ => self.replace(text, faults, &format!("{} is not a datatype", shown(text))),
            },
            (Suffix::Dropped, TokenKind::Tag) => self.leave(text),
            (Suffix::Dropped, TokenKind::Hats) => {
                self.leave(text);
                self.suffix = Suffix::DroppedDatatype;
            }
            (Suffix::DroppedDatatype, _) if is_name => self.leave(text),
            _ => return false,
        }
        true
    }

    /// Begins to skip tokens that do not belong to a statement.
    fn pass_over(&mut self, text: &[u8], faults: &mut Faults, why: &str) {
        if matches!(self.due(), Due::GraphName | Due::GraphNameEnd | Due::GraphBegin) {
            self.take_back();
            self.expect(Due::Subject);
        }
        faults.loose(why);
        self.leave(text);
        self.skip = Some(Skip::Statement(0));
    }

    /// Whether a token is skipped; if not, the skipping has ended.
    fn skipped(&mut self, skip: Skip, token: &Token, text: &[u8]) -> bool {
        let sign = match token.kind {
            TokenKind::Sign(sign) => sign,
            TokenKind::Mark(mark) => return self.skipped_mark(skip, mark, text),
            _ => {
                self.leave(text);
                return true;
            }
        };
        let in_brackets = matches!(self.kind(), LevelKind::Properties | LevelKind::Collection);
        let next = match (skip, sign) {
            (_, b'.') => None,
            (_, b'}') if self.top().in_graph => None,
            (Skip::Statement(depth), b'[' | b'(') => Some(Skip::Statement(depth + 1)),
            (Skip::Brackets(depth), b'[' | b'(') => Some(Skip::Brackets(depth + 1)),
            (Skip::Statement(0), b']' | b')') if in_brackets => None,
            (Skip::Statement(depth), b']' | b')') => Some(Skip::Statement(depth.saturating_sub(1))),
            (Skip::Brackets(1), b']' | b')') => {
                self.skip = None;
                self.leave(text);
                return true;
            }
            (Skip::Brackets(depth), b']' | b')') => Some(Skip::Brackets(depth - 1)),
            (skip, _) => Some(skip),
        };
        self.skip = next;
        if next.is_some() {
            self.leave(text);
        } else if self.due() == Due::Subject && sign == b'.' {
            // the end of a statement that was skipped whole
            self.leave(text);
            return true;
        }
        next.is_some()
    }

    /// Puts in placeholders for the missing terms of a statement.
    fn fill(&mut self, faults: &mut Faults) {
        match self.due() {
            Due::Subject if self.kind().is_triple() => {
                let placeholder = faults.placeholder("a triple is empty");
                let three = format!(" {placeholder} {placeholder} {placeholder} ");
                self.out.extend_from_slice(three.as_bytes());
            }
            Due::Verb | Due::VerbOrGraph | Due::FirstVerb => {
                let placeholder = faults.placeholder("a predicate and an object are missing");
                self.out.extend_from_slice(format!(" {placeholder} {placeholder} ").as_bytes());
            }
            Due::Object if self.kind() != LevelKind::Collection => self.place(faults, "an object is missing"),
            _ => return,
        }
        self.expect(Due::End);
    }

    /// Closes brackets that a statement leaves open.
    fn close_brackets(&mut self, faults: &mut Faults) {
        while let Some(end) = self.kind().end() {
            faults.loose(&format!("a {} is missing", String::from_utf8_lossy(end)));
            self.end_brackets(faults);
        }
    }

    /// The end of the innermost brackets.
    fn end_brackets(&mut self, faults: &mut Faults) {
        self.ended_blank(false, b"", faults);
        let (kind, due) = (self.kind(), self.due());
        if kind != LevelKind::Collection && due != Due::FirstVerb {
            self.fill(faults);
        }
        self.keep(b" ");
        self.keep(kind.end().unwrap_or_default());
        self.levels.pop();
        if self.due() == Due::Subject {
            let is_document = self.kind() == LevelKind::Document;
            self.expect(match (kind, due) {
                (LevelKind::Properties, Due::FirstVerb) if is_document => Due::VerbOrGraph,
                (LevelKind::Properties, Due::FirstVerb) | (LevelKind::Collection, _) => Due::Verb,
                (LevelKind::Reified, _) if self.kind() == LevelKind::Reified => Due::Verb,
                _ => Due::VerbOfBrackets,
            });
        } else if self.kind() != LevelKind::Collection {
            self.expect(Due::End);
        }
    }

    /// `.`
    fn stop(&mut self, text: &[u8], faults: &mut Faults) {
        self.close_brackets(faults);
        match self.due() {
            Due::Subject => {
                faults.loose("a full stop ends nothing here");
                return self.leave(text);
            }
            Due::GraphName | Due::GraphNameEnd | Due::GraphBegin => {
                faults.loose("GRAPH has a name and braces");
                self.take_back();
                self.leave(text);
                return self.expect(Due::Subject);
            }
            _ => self.fill(faults),
        }
        self.keep(text);
        self.expect(Due::Subject);
    }

    /// `;` and `,`
    fn separator(&mut self, sign: u8, text: &[u8], faults: &mut Faults) {
        let (kind, due) = (self.kind(), self.due());
        if kind == LevelKind::Collection
            || kind.is_triple()
            || matches!(due, Due::GraphName | Due::GraphNameEnd | Due::GraphBegin)
        {
            let why = format!("{} does not belong here", char::from(sign));
            return self.pass_over(text, faults, &why);
        }
        if due == Due::Subject {
            faults.loose(&format!("{} ends nothing here", char::from(sign)));
            return self.leave(text);
        }
        if matches!(due, Due::NextVerb | Due::VerbOfBrackets) && sign == b',' || due == Due::VerbOfBrackets {
            self.expect(Due::Verb);
        }
        self.fill(faults);
        self.keep(text);
        self.expect(if sign == b';' { Due::NextVerb } else { Due::Object });
    }

    /// `[` and `(`
    fn open(&mut self, sign: u8, text: &[u8], faults: &mut Faults) {
        match self.due() {
            Due::Subject | Due::Object | Due::Reifier
                if sign == b'[' && (self.kind().is_triple() || self.due() == Due::Reifier) =>
            {
                self.open_blank(text);
            }
            Due::Subject | Due::Object if !self.kind().is_triple() => {
                if self.due() == Due::Object && self.kind() != LevelKind::Collection {
                    self.expect(Due::End);
                }
                self.keep(text);
                match sign {
                    b'[' => self.push(LevelKind::Properties, Due::FirstVerb),
                    _ => self.push(LevelKind::Collection, Due::Object),
                }
            }
            Due::GraphName if sign == b'[' => {
                self.keep(text);
                self.expect(Due::GraphNameEnd);
            }
            Due::End | Due::GraphName | Due::GraphNameEnd | Due::GraphBegin => {
                self.pass_over(text, faults, "this does not belong here; , or ; or . should");
                self.skip = Some(Skip::Statement(1));
            }
            due @ (Due::Subject | Due::Object) => {
                self.replace(text, faults, "brackets may not be within a triple");
                self.expect(if due == Due::Subject { Due::Verb } else { Due::End });
                self.skip = Some(Skip::Brackets(1));
            }
            _ => {
                self.replace(text, faults, "brackets are not a predicate");
                self.expect(Due::Object);
                self.skip = Some(Skip::Brackets(1));
            }
        }
    }

    /// `]` and `)`, outside of names of graphs
    fn close(&mut self, sign: u8, text: &[u8], faults: &mut Faults) {
        if self.due() == Due::GraphNameEnd && sign == b']' {
            self.keep(text);
            return self.expect(Due::GraphBegin);
        }
        let kind = if sign == b']' { LevelKind::Properties } else { LevelKind::Collection };
        self.close_level(kind, text, faults);
    }

    /// The end of a level, and of those within it.
    fn close_level(&mut self, kind: LevelKind, text: &[u8], faults: &mut Faults) {
        if kind.place().is_none_or(|place| self.top().open[place] == 0) {
            faults.loose(&format!("{} closes nothing here", shown(text)));
            return self.leave(text);
        }
        while self.kind() != kind {
            let missing = self.kind().end().unwrap_or_default();
            faults.loose(&format!("a {} is missing", String::from_utf8_lossy(missing)));
            self.end_brackets(faults);
        }
        self.end_brackets(faults);
    }

    /// `{`
    fn open_graph(&mut self, text: &[u8], faults: &mut Faults) {
        let may_begin = matches!(self.due(), Due::Subject | Due::VerbOrGraph | Due::GraphBegin);
        if !self.has_graphs || self.kind() != LevelKind::Document || !may_begin {
            return self.pass_over(text, faults, "{ begins no graph here");
        }
        self.mark = None;
        self.keep(text);
        self.expect(Due::Subject);
        self.push(LevelKind::Graph, Due::Subject);
    }

    /// `}`
    fn close_graph(&mut self, text: &[u8], faults: &mut Faults) {
        if !self.top().in_graph {
            faults.loose("} ends no graph here");
            return self.leave(text);
        }
        self.close_brackets(faults);
        self.fill(faults);
        self.keep(text);
        self.levels.pop();
    }

    /// The end of the document.
    pub(super) fn end(&mut self, faults: &mut Faults) {
        // a comment may come last
        self.keep(b"\n");
        self.skip = None;
        if self.suffix == Suffix::Datatype {
            self.place(faults, "a datatype is missing");
        }
        self.suffix = Suffix::None;
        self.ended_blank(false, b"", faults);
        let is_open = self.mark.is_some() || self.levels.len() > 1 || self.due() != Due::Subject;
        if is_open {
            faults.loose("the document ends within a statement, directive or graph");
        }
        if self.mark.is_some() {
            self.take_back();
            self.directive = None;
            self.expect(Due::Subject);
        }
        self.close_brackets(faults);
        self.fill(faults);
        if self.kind() == LevelKind::Graph {
            self.keep(b" }");
            self.levels.pop();
        } else if self.due() != Due::Subject {
            self.keep(b" .");
        }
        self.keep(b"\n");
    }
}

/// Whether a token is an IRI or a blank node.
fn is_name(kind: TokenKind) -> bool {
    matches!(kind, TokenKind::Iri | TokenKind::Prefixed | TokenKind::Blank)
}

/// Whether a string has three quotes around it.
fn is_long(text: &[u8]) -> bool {
    text.len() >= 6 && text[1] == text[0] && text[2] == text[0]
}

fn shown(text: &[u8]) -> String {
    String::from_utf8_lossy(&text[..text.len().min(100)]).into_owned()
}

/// The prefix of a name.
fn prefix_of(text: &[u8]) -> &str {
    let end = memchr::memchr(b':', text).unwrap_or(text.len());
    std::str::from_utf8(&text[..end]).unwrap_or_default()
}

fn has_path(iri: &str) -> bool {
    oxiri::Iri::parse(iri).is_ok_and(|iri| !iri.path().is_empty())
}
