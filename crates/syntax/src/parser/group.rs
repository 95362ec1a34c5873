//! Groups, and what stands in them.

use super::triples::{Part, Predicates};
use super::{Aggregating, Parsed, Parser, Scope};
use crate::error::ErrorCode;
use crate::lexer::{Kind, Sign, Span};
use crate::tree::{Expr, GraphPattern, Slot, TriplePattern, Var, Visitor, walk_pattern};

/// A group while it is parsed.
#[derive(Default)]
pub(super) struct Group {
    pub pattern: GraphPattern,
    /// its filters together
    pub filter: Option<Expr>,
    pub scope: Scope,
    /// a triple cannot follow without a dot
    needs_dot: bool,
}

impl Group {
    /// The pattern with its filters.
    pub fn filtered(self) -> (GraphPattern, Scope) {
        let pattern = match self.filter {
            Some(condition) => GraphPattern::Filter { condition, inner: Box::new(self.pattern) },
            None => self.pattern,
        };
        (pattern, self.scope)
    }

    fn join(&mut self, pattern: GraphPattern, scope: Scope) {
        self.pattern = std::mem::take(&mut self.pattern).joined(pattern);
        self.sees(scope);
    }

    fn sees(&mut self, mut scope: Scope) {
        if scope.len() > self.scope.len() {
            std::mem::swap(&mut scope, &mut self.scope);
        }
        self.scope.extend(scope);
    }

    fn take(&mut self) -> Box<GraphPattern> {
        Box::new(std::mem::take(&mut self.pattern))
    }
}

impl Parser<'_> {
    /// A group with its filters.
    pub(super) fn group_pattern(&mut self) -> Parsed<(GraphPattern, Scope)> {
        Ok(self.group()?.filtered())
    }

    /// `{ … }`
    pub(super) fn group(&mut self) -> Parsed<Group> {
        self.nested(|parser| {
            parser.sign(Sign::OpenBrace)?;
            let (uses, aggregating) =
                (parser.uses.take(), std::mem::replace(&mut parser.aggregating, Aggregating::Never));
            parser.labels.next_pattern();
            let group = match parser.cursor.sees_word("SELECT") {
                true => parser.sub_select(),
                false => parser.group_parts(),
            };
            let group = group?;
            parser.sign(Sign::CloseBrace)?;
            parser.labels.next_pattern();
            (parser.uses, parser.aggregating) = (uses, aggregating);
            Ok(group)
        })
    }

    fn sub_select(&mut self) -> Parsed<Group> {
        let (pattern, vars) = self.select()?;
        Ok(Group { pattern, scope: vars.into_iter().collect(), ..Group::default() })
    }

    fn group_parts(&mut self) -> Parsed<Group> {
        let mut group = Group::default();
        let (open, groupings) = (self.cursor.open.len(), self.groupings.len());
        loop {
            if matches!(self.cursor.kind(), Kind::End | Kind::Sign(Sign::CloseBrace)) {
                self.note_parts();
                return Ok(group);
            }
            let start = self.cursor.span().start;
            if let Err(error) = self.group_part(&mut group) {
                self.recover(error, open, start)?;
                self.groupings.truncate(groupings);
                (self.uses, self.aggregating) = (None, Aggregating::Never);
                group.needs_dot = false;
            }
        }
    }

    /// Triples, or one of the other parts of a group.
    fn group_part(&mut self, group: &mut Group) -> Parsed<()> {
        if self.begins_triples() {
            if group.needs_dot {
                self.cursor.expect(".");
                return self.unexpected();
            }
            return self.triples_block(group);
        }
        if self.cursor.kind() == Kind::Word {
            self.keyword_part(group)?;
        } else if self.cursor.sees(Sign::OpenBrace) {
            self.union(group)?;
            self.labels.next_pattern();
        } else {
            self.note_parts();
            return self.unexpected();
        }
        self.cursor.takes(Sign::Dot);
        group.needs_dot = false;
        Ok(())
    }

    /// Notes the parts that a group may have.
    fn note_parts(&mut self) {
        for part in ["{", "}", "OPTIONAL", "FILTER", "BIND", "VALUES", "MINUS", "GRAPH", "SERVICE", "LATERAL"]
        {
            self.cursor.expect(part);
        }
    }

    fn triples_block(&mut self, group: &mut Group) -> Parsed<()> {
        let mut parts = Vec::new();
        let mut has_dot = true;
        while has_dot && self.begins_triples() {
            self.same_subject(Predicates::Paths, &mut parts)?;
            has_dot = self.cursor.takes(Sign::Dot);
        }
        group.needs_dot = !has_dot;
        let mut block = GraphPattern::default();
        let mut triples: Vec<TriplePattern> = Vec::new();
        let mut seen = SeenVars(Scope::default());
        for part in parts {
            match part {
                Part::Triple(triple) => triples.push(triple),
                Part::Path { subject, path, object } => {
                    block = block.joined(GraphPattern::Bgp(std::mem::take(&mut triples)));
                    block = block.joined(GraphPattern::Path { subject, path, object });
                }
            }
        }
        block = block.joined(GraphPattern::Bgp(triples));
        seen.pattern(&block);
        group.join(block, seen.0);
        Ok(())
    }

    fn keyword_part(&mut self, group: &mut Group) -> Parsed<()> {
        if self.cursor.takes_word("FILTER") {
            self.branch()?;
            let filter = self.constraint()?;
            group.filter = Some(match group.filter.take() {
                None => filter,
                Some(Expr::And(mut parts)) => {
                    parts.push(filter);
                    Expr::And(parts)
                }
                Some(before) => Expr::And(vec![before, filter]),
            });
            return Ok(());
        }
        let span = self.cursor.span();
        if self.cursor.takes_word("OPTIONAL") {
            self.link()?;
            let optional = self.group()?;
            let right = Box::new(optional.pattern);
            group.pattern = GraphPattern::LeftJoin { left: group.take(), right, condition: optional.filter };
            group.sees(optional.scope);
        } else if self.cursor.takes_word("BIND") {
            self.bind(group)?;
        } else if self.cursor.takes_word("VALUES") {
            let values = self.values()?;
            let scope = values.vars.iter().copied().collect();
            group.join(GraphPattern::Values(values), scope);
        } else if self.cursor.takes_word("GRAPH") {
            let name = self.var_or_iri()?;
            let (inner, mut scope) = self.group_pattern()?;
            scope.extend(var_of(&name));
            group.join(GraphPattern::Graph { name, inner: Box::new(inner) }, scope);
        } else if self.cursor.takes_word("MINUS") {
            self.link()?;
            let right = Box::new(self.group_pattern()?.0);
            group.pattern = GraphPattern::Minus { left: group.take(), right };
        } else if self.cursor.takes_word("SERVICE") {
            self.first.service.get_or_insert(span);
            let is_silent = self.cursor.takes_word("SILENT");
            let name = self.var_or_iri()?;
            let (inner, scope) = self.group_pattern()?;
            group.join(GraphPattern::Service { name, inner: Box::new(inner), is_silent }, scope);
        } else if self.cursor.takes_word("LATERAL") {
            self.lateral(group, span)?;
        } else {
            self.note_parts();
            return self.unexpected();
        }
        self.labels.next_pattern();
        Ok(())
    }

    fn union(&mut self, group: &mut Group) -> Parsed<()> {
        let (first, mut scope) = self.group_pattern()?;
        let mut parts = vec![first];
        while self.cursor.takes_word("UNION") {
            self.branch()?;
            let (part, seen) = self.group_pattern()?;
            parts.push(part);
            scope.extend(seen);
        }
        let only = if parts.len() == 1 { parts.pop() } else { None };
        group.join(only.unwrap_or(GraphPattern::Union(parts)), scope);
        Ok(())
    }

    fn bind(&mut self, group: &mut Group) -> Parsed<()> {
        let (expr, var, span) = self.nested(|parser| {
            parser.sign(Sign::OpenParen)?;
            let expr = parser.expr()?;
            parser.word("AS")?;
            let span = parser.cursor.span();
            let var = parser.wanted_var()?;
            parser.sign(Sign::CloseParen)?;
            Ok((expr, var, span))
        })?;
        if group.scope.contains(&var) {
            return self.has_value(var, span, "BIND");
        }
        group.pattern = std::mem::take(&mut group.pattern).extended(var, expr);
        group.scope.insert(var);
        Ok(())
    }

    /// A variable that gets a value has one already.
    pub(super) fn has_value<T>(&mut self, var: Var, span: Span, by: &str) -> Parsed<T> {
        let name = self.names.name(var).unwrap_or_default().to_owned();
        let message = format!("{by} gives ?{name} a value, which it may have before");
        self.hinted(span, ErrorCode::Scope, message, Some("take another name".to_owned()))
    }

    fn lateral(&mut self, group: &mut Group, span: Span) -> Parsed<()> {
        self.first.lateral.get_or_insert(span);
        self.link()?;
        let (right, scope) = self.group_pattern()?;
        let mut defined = Defined(Scope::default());
        defined.pattern(&right);
        if let Some(var) = defined.0.iter().find(|var| group.scope.contains(*var)) {
            return self.has_value(*var, span, "the group of LATERAL");
        }
        group.pattern = GraphPattern::Lateral { left: group.take(), right: Box::new(right) };
        group.sees(scope);
        Ok(())
    }

    /// An expression as FILTER and HAVING take it, without more brackets.
    pub(super) fn constraint(&mut self) -> Parsed<Expr> {
        match self.cursor.kind() {
            Kind::Sign(Sign::OpenParen) => self.bracketed(),
            Kind::Iri | Kind::Name => self.function_call(),
            Kind::Word => match self.built_in()? {
                Some(call) => Ok(call),
                None => self.no_expr(),
            },
            _ => {
                self.cursor.expect("(");
                self.cursor.expect("a function");
                self.unexpected()
            }
        }
    }
}

fn var_of(slot: &Slot) -> Option<Var> {
    if let Slot::Var(var) = slot { Some(*var) } else { None }
}

/// Variables of triples and the ends of paths.
struct SeenVars(Scope);

impl Visitor for SeenVars {
    fn var(&mut self, var: Var) {
        self.0.insert(var);
    }
}

/// Variables that BIND, AS or VALUES give a value, as seen from outside.
struct Defined(Scope);

impl Visitor for Defined {
    fn pattern(&mut self, pattern: &GraphPattern) {
        match pattern {
            GraphPattern::Extend { inner, values } => {
                self.0.extend(values.iter().map(|(var, _)| *var));
                self.pattern(inner);
            }
            GraphPattern::Values(values) => self.0.extend(&values.vars),
            GraphPattern::Group { inner, vars, aggregates } => {
                self.0.extend(aggregates.iter().map(|(var, _)| *var));
                self.hidden(inner, vars);
            }
            GraphPattern::Project { inner, vars, .. } => self.hidden(inner, vars),
            _ => walk_pattern(self, pattern),
        }
    }

    fn expr(&mut self, _: &Expr) {}
}

impl Defined {
    /// Variables of a pattern of which only some are seen.
    fn hidden(&mut self, inner: &GraphPattern, seen: &[Var]) {
        let mut defined = Defined(Scope::default());
        defined.pattern(inner);
        self.0.extend(seen.iter().filter(|var| defined.0.contains(*var)));
    }
}
