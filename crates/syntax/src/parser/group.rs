//! Groups, and what stands in them.

use super::triples::Part;
use super::{Aggregating, Parsed, Parser, Scope};
use crate::error::ErrorCode;
use crate::lexer::{Kind, Sign, Span};
use crate::tree::{Expr, GraphPattern, Node, Slot, Var};

/// Keywords that begin a part of a group.
pub(super) const PARTS: [&str; 8] =
    ["OPTIONAL", "FILTER", "BIND", "VALUES", "MINUS", "GRAPH", "SERVICE", "LATERAL"];

/// A group while it is parsed.
#[derive(Default)]
pub(super) struct Group {
    pattern: GraphPattern,
    /// its filters together
    filter: Option<Expr>,
    scope: Scope,
}

impl Group {
    /// The pattern with its filters.
    fn filtered(self) -> (GraphPattern, Scope) {
        let pattern = match self.filter {
            Some(condition) => GraphPattern::Filter { condition, inner: Box::new(self.pattern) },
            None => self.pattern,
        };
        (pattern, self.scope)
    }

    fn join(&mut self, pattern: GraphPattern, scope: Scope) {
        self.pattern = std::mem::take(&mut self.pattern).joined(pattern);
        self.scope.join(scope);
    }

    fn take(&mut self) -> Box<GraphPattern> {
        Box::new(std::mem::take(&mut self.pattern))
    }
}

/// The variables of a pattern that has triples and paths alone.
pub(super) fn scope_of(pattern: &GraphPattern) -> Scope {
    let mut scope = Scope::default();
    Node::Pattern(pattern).walk(&mut |node| {
        if let Node::Var(var) = node {
            scope.vars.insert(var);
        }
        true
    });
    scope
}

impl Parser<'_> {
    /// A group with its filters.
    pub(super) fn group_pattern(&mut self) -> Parsed<(GraphPattern, Scope)> {
        Ok(self.group()?.filtered())
    }

    /// `{ … }`. Uses of variables and aggregates in it are its own.
    fn group(&mut self) -> Parsed<Group> {
        self.nested(|parser| {
            parser.sign(Sign::OpenBrace)?;
            parser.unit.measure.groups += 1;
            let uses = parser.unit.uses.take();
            let aggregating = std::mem::take(&mut parser.unit.aggregating);
            parser.labels.next_pattern();
            let group = match parser.cursor.sees_word("SELECT") {
                true => parser.sub_select().map(|(pattern, scope)| Group { pattern, filter: None, scope })?,
                false => parser.group_parts()?,
            };
            parser.sign(Sign::CloseBrace)?;
            parser.labels.next_pattern();
            (parser.unit.uses, parser.unit.aggregating) = (uses, aggregating);
            Ok(group)
        })
    }

    fn group_parts(&mut self) -> Parsed<Group> {
        let mut group = Group::default();
        let (open, groupings) = (self.cursor.open.len(), self.unit.groupings.len());
        while !self.cursor.sees(Sign::CloseBrace) && self.cursor.kind() != Kind::End {
            let start = self.cursor.span().start;
            if let Err(error) = self.group_part(&mut group) {
                self.recover(error, open, start)?;
                self.unit.groupings.truncate(groupings);
                (self.unit.uses, self.unit.aggregating) = (None, Aggregating::Never);
            }
        }
        Ok(group)
    }

    /// Triples, or one of the other parts of a group.
    fn group_part(&mut self, group: &mut Group) -> Parsed<()> {
        let triples = self.triples()?;
        if !triples.is_empty() {
            let block = block_of(triples);
            let scope = scope_of(&block);
            group.join(block, scope);
            return Ok(());
        }
        if self.cursor.sees(Sign::OpenBrace) {
            self.union(group)?;
            self.labels.next_pattern();
        } else {
            self.keyword_part(group)?;
        }
        self.cursor.takes(Sign::Dot);
        Ok(())
    }

    fn keyword_part(&mut self, group: &mut Group) -> Parsed<()> {
        let span = self.cursor.span();
        let word = self.cursor.takes_one(&PARTS);
        match self.wanted(word, "}")? {
            "FILTER" => {
                self.branch()?;
                let filter = self.constraint()?;
                group.filter = Some(match group.filter.take() {
                    Some(before) => before.and(filter),
                    None => filter,
                });
                return Ok(());
            }
            "OPTIONAL" => {
                self.link()?;
                let optional = self.group()?;
                let (left, right) = (group.take(), Box::new(optional.pattern));
                group.pattern = GraphPattern::LeftJoin { left, right, condition: optional.filter };
                group.scope.join(optional.scope);
            }
            "BIND" => self.bind(group)?,
            "VALUES" => {
                self.branch()?;
                let (values, mut scope) = (self.values()?, Scope::default());
                values.vars.iter().for_each(|var| scope.define(*var));
                group.join(GraphPattern::Values(values), scope);
            }
            "GRAPH" => {
                self.branch()?;
                let name = self.var_or_iri()?;
                let (inner, mut scope) = self.group_pattern()?;
                if let Slot::Var(var) = name {
                    scope.vars.insert(var);
                }
                group.join(GraphPattern::Graph { name, inner: Box::new(inner) }, scope);
            }
            "MINUS" => {
                self.link()?;
                let right = Box::new(self.group_pattern()?.0);
                group.pattern = GraphPattern::Minus { left: group.take(), right };
            }
            "SERVICE" => {
                self.branch()?;
                self.first_use(|first| &mut first.service, span);
                let is_silent = self.cursor.takes_word("SILENT");
                let name = self.var_or_iri()?;
                let (inner, scope) = self.group_pattern()?;
                group.join(GraphPattern::Service { name, inner: Box::new(inner), is_silent }, scope);
            }
            _ => self.lateral(group, span)?,
        }
        self.labels.next_pattern();
        Ok(())
    }

    fn union(&mut self, group: &mut Group) -> Parsed<()> {
        let (first, mut scope) = self.group_pattern()?;
        if !self.cursor.sees_word("UNION") {
            self.branch()?;
            group.join(first, scope);
            return Ok(());
        }
        let mut parts = vec![first];
        while self.cursor.takes_word("UNION") {
            self.branch()?;
            let (part, seen) = self.group_pattern()?;
            parts.push(part);
            scope.join(seen);
        }
        group.join(GraphPattern::Union(parts), scope);
        Ok(())
    }

    fn bind(&mut self, group: &mut Group) -> Parsed<()> {
        self.link()?;
        let (expr, name) = self.named_expr(true)?;
        let (var, span) = self.wanted(name, "AS")?;
        if group.scope.vars.contains(&var) {
            return self.has_value(var, span, "BIND");
        }
        group.pattern = std::mem::take(&mut group.pattern).extended(var, expr);
        group.scope.define(var);
        Ok(())
    }

    fn lateral(&mut self, group: &mut Group, span: Span) -> Parsed<()> {
        self.link()?;
        let (right, scope) = self.group_pattern()?;
        if let Some(var) = scope.defined.intersection(&group.scope.vars).min() {
            return self.has_value(*var, span, "the group of LATERAL");
        }
        group.pattern = GraphPattern::Lateral { left: group.take(), right: Box::new(right) };
        group.scope.join(scope);
        Ok(())
    }

    /// A variable that gets a value has one already.
    pub(super) fn has_value<T>(&mut self, var: Var, span: Span, giver: &str) -> Parsed<T> {
        let name = self.name(var);
        let message = format!("{giver} gives {name} a value, which it may have before: take another name");
        self.wrong(span, ErrorCode::Scope, message)
    }
}

/// Triples and paths as one pattern.
fn block_of(parts: Vec<Part>) -> GraphPattern {
    let (mut block, mut triples) = (GraphPattern::default(), Vec::new());
    for part in parts {
        match part {
            Part::Triple(triple) => triples.push(triple),
            Part::Path { subject, path, object } => {
                block = block.joined(GraphPattern::Bgp(std::mem::take(&mut triples)));
                block = block.joined(GraphPattern::Path { subject, path, object });
            }
        }
    }
    block.joined(GraphPattern::Bgp(triples))
}
