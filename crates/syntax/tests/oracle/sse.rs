//! Trees as the text that spargebra writes of its own: S-expressions, with binary operators.

use std::fmt::Write;

use oxrdf::{BlankNode, Literal as OxLiteral, NamedNode};
use snowmelt_syntax::tree::{
    Aggregate, Blank, Dataset, Expr, Function, GraphPattern, GraphTarget, Literal, LiteralKind, Modify,
    Operation, Path, Quad, Query, QueryForm, Slot, Term, TriplePattern, UpdateOperation, Var, VarNames,
};

/// Writes trees; variables need their table of names.
struct Writer<'a> {
    names: &'a VarNames,
    out: String,
}

pub fn query(query: &Query) -> String {
    let mut writer = Writer { names: &query.names, out: String::new() };
    if let Some(base) = &query.base {
        write!(writer.out, "(base <{base}> ").unwrap();
    }
    match &query.form {
        QueryForm::Select => {}
        QueryForm::Ask => writer.put("(ask "),
        QueryForm::Describe(_) => writer.put("(describe "),
        QueryForm::Construct(template) => {
            writer.put("(construct (");
            writer.list(template, |writer, triple| writer.triple(triple));
            writer.put(") ");
        }
    }
    if let Some(dataset) = &query.dataset {
        writer.put("(dataset ");
        writer.dataset(dataset);
        writer.put(" ");
    }
    match &query.form {
        QueryForm::Describe(named) if !named.is_empty() => {
            writer.pattern(&described(query.pattern.clone(), named, query.names.len() as u32));
        }
        _ => writer.pattern(&query.pattern),
    }
    let closing = usize::from(query.dataset.is_some())
        + usize::from(query.form != QueryForm::Select)
        + usize::from(query.base.is_some());
    writer.out + &")".repeat(closing)
}

/// The pattern of a DESCRIBE where IRIs are the values of columns, as spargebra has it.
fn described(pattern: GraphPattern, named: &[Slot], mut fresh: u32) -> GraphPattern {
    use GraphPattern as P;
    if let P::Slice { inner, start, length } = pattern {
        return P::Slice { inner: Box::new(described(*inner, named, fresh)), start, length };
    }
    let (mut vars, mut iris) = (Vec::new(), Vec::new());
    for slot in named {
        match slot {
            Slot::Var(var) => vars.push(*var),
            iri => {
                vars.push(Var(fresh));
                iris.push((Var(fresh), iri.clone().into()));
                fresh += 1;
            }
        }
    }
    let extended = |inner: Box<P>, iris: Vec<_>| match *inner {
        inner if iris.is_empty() => inner,
        P::Extend { inner, mut values } => {
            values.extend(iris);
            P::Extend { inner, values }
        }
        inner => P::Extend { inner: Box::new(inner), values: iris },
    };
    match pattern {
        P::Project { inner, .. } => {
            let inner = match *inner {
                P::OrderBy { inner, keys } => P::OrderBy { inner: Box::new(extended(inner, iris)), keys },
                inner => extended(Box::new(inner), iris),
            };
            P::Project { inner: Box::new(inner), vars, is_star: false }
        }
        other => other,
    }
}

/// An operation.
pub fn operation(operation: &UpdateOperation) -> String {
    let mut writer = Writer { names: &operation.names, out: String::new() };
    writer.operation(&operation.operation);
    writer.out
}

/// Quads of data, one a line, without an order.
pub fn lines(quads: &[Quad]) -> Vec<String> {
    let names = VarNames::default();
    let line = |quad: &Quad| {
        let mut writer = Writer { names: &names, out: String::new() };
        writer.term(&quad.triple.subject);
        write!(writer.out, " <{}> ", quad.triple.predicate).unwrap();
        writer.term(&quad.triple.object);
        if let Some(graph) = &quad.graph {
            write!(writer.out, " <{graph}>").unwrap();
        }
        writer.out
    };
    quads.iter().map(line).collect()
}

impl Writer<'_> {
    fn put(&mut self, text: &str) {
        self.out.push_str(text);
    }

    fn list<T>(&mut self, items: &[T], mut each: impl FnMut(&mut Self, &T)) {
        for (number, item) in items.iter().enumerate() {
            if number > 0 {
                self.put(" ");
            }
            each(self, item);
        }
    }

    fn var(&mut self, var: Var) {
        match self.names.name(var) {
            Some(name) => write!(self.out, "?{name}").unwrap(),
            None => write!(self.out, "?{:f>32}", var.0).unwrap(),
        }
    }

    fn slot(&mut self, slot: &Slot) {
        match slot {
            Slot::Var(var) => self.var(*var),
            Slot::Term(term) => self.term(term),
            Slot::Param(number) => write!(self.out, "$$param{number}").unwrap(),
            Slot::Triple(triple) => self.triple(triple),
        }
    }

    /// A place in VALUES, whose triple terms are written as terms.
    fn cell(&mut self, slot: &Slot) {
        let Slot::Triple(triple) = slot else { return self.slot(slot) };
        self.put("<<( ");
        self.cell(&triple.subject);
        self.put(" ");
        self.cell(&triple.predicate);
        self.put(" ");
        self.cell(&triple.object);
        self.put(" )>>");
    }

    fn term(&mut self, term: &Term) {
        match term {
            Term::Iri(iri) => write!(self.out, "{}", NamedNode::new_unchecked(&**iri)).unwrap(),
            Term::Blank(Blank::Label(label)) => {
                write!(self.out, "{}", BlankNode::new_unchecked(&**label)).unwrap();
            }
            Term::Blank(Blank::Fresh(number)) => write!(self.out, "_:{number:f>32}").unwrap(),
            Term::Literal(literal) => write!(self.out, "{}", ox_literal(literal)).unwrap(),
            Term::Triple(triple) => {
                self.put("<<( ");
                self.term(&triple.subject);
                write!(self.out, " <{}> ", triple.predicate).unwrap();
                self.term(&triple.object);
                self.put(" )>>");
            }
        }
    }

    fn triple(&mut self, triple: &TriplePattern) {
        self.put("(triple ");
        self.list(&triple.slots(), |writer, slot| writer.slot(slot));
        self.put(")");
    }

    fn dataset(&mut self, dataset: &Dataset) {
        self.put("(");
        self.list(&dataset.default, |writer, iri| write!(writer.out, "<{iri}>").unwrap());
        for (number, iri) in dataset.named.iter().flatten().enumerate() {
            if !dataset.default.is_empty() || number > 0 {
                self.put(" ");
            }
            write!(self.out, "(named <{iri}>)").unwrap();
        }
        self.put(")");
    }

    /// `(name a b)` of parts, read from the left.
    fn folded<T>(&mut self, name: &str, parts: &[T], mut each: impl FnMut(&mut Self, &T)) {
        self.put(&format!("({name} ").repeat(parts.len() - 1));
        for (number, part) in parts.iter().enumerate() {
            each(self, part);
            self.put([" ", ") "][usize::from(number > 0)]);
        }
        self.out.pop();
    }

    fn within(&mut self, name: &str, inner: &GraphPattern) {
        write!(self.out, "({name} ").unwrap();
        self.pattern(inner);
        self.put(")");
    }

    fn pattern(&mut self, pattern: &GraphPattern) {
        use GraphPattern as P;
        match pattern {
            P::Bgp(triples) => {
                self.put("(bgp");
                for triple in triples {
                    self.put(" ");
                    self.triple(triple);
                }
                self.put(")");
            }
            P::Path { subject, path, object } => {
                self.put("(path ");
                self.slot(subject);
                self.put(" ");
                self.path(path);
                self.put(" ");
                self.slot(object);
                self.put(")");
            }
            P::Join(parts) => self.folded("join", parts, |writer, part| writer.pattern(part)),
            P::Union(parts) => self.folded("union", parts, |writer, part| writer.pattern(part)),
            P::Lateral { left, right } => {
                self.folded("lateral", &[left, right], |writer, part| writer.pattern(part));
            }
            P::Minus { left, right } => {
                self.folded("minus", &[left, right], |writer, part| writer.pattern(part));
            }
            P::LeftJoin { left, right, condition } => {
                self.folded("leftjoin", &[left, right], |writer, part| writer.pattern(part));
                if let Some(condition) = condition {
                    self.out.pop();
                    self.put(" ");
                    self.expr(condition);
                    self.put(")");
                }
            }
            _ => self.modified(pattern),
        }
    }

    fn modified(&mut self, pattern: &GraphPattern) {
        use GraphPattern as P;
        match pattern {
            P::Filter { condition, inner } => {
                self.put("(filter ");
                self.expr(condition);
                self.put(" ");
                self.pattern(inner);
                self.put(")");
            }
            P::Graph { name, inner } => {
                self.put("(graph ");
                self.slot(name);
                self.put(" ");
                self.pattern(inner);
                self.put(")");
            }
            P::Service { name, inner, is_silent } => {
                self.put(if *is_silent { "(service silent " } else { "(service " });
                self.slot(name);
                self.put(" ");
                self.pattern(inner);
                self.put(")");
            }
            P::Extend { inner, values } => {
                for (var, expr) in values.iter().rev() {
                    self.put("(extend ((");
                    self.var(*var);
                    self.put(" ");
                    self.expr(expr);
                    self.put(")) ");
                }
                self.pattern(inner);
                self.put(&")".repeat(values.len()));
            }
            P::Values(values) => {
                self.put("(table (vars");
                for var in &values.vars {
                    self.put(" ");
                    self.var(*var);
                }
                self.put(")");
                for row in &values.rows {
                    self.put(" (row");
                    for (cell, var) in row.iter().zip(&values.vars) {
                        if let Some(cell) = cell {
                            self.put(" (");
                            self.var(*var);
                            self.put(" ");
                            self.cell(cell);
                            self.put(")");
                        }
                    }
                    self.put(")");
                }
                self.put(")");
            }
            _ => self.selected(pattern),
        }
    }

    fn selected(&mut self, pattern: &GraphPattern) {
        use GraphPattern as P;
        match pattern {
            P::OrderBy { inner, keys } => {
                self.put("(order (");
                self.list(keys, |writer, key| {
                    writer.put(if key.is_descending { "(desc " } else { "(asc " });
                    writer.expr(&key.expr);
                    writer.put(")");
                });
                self.put(") ");
                self.pattern(inner);
                self.put(")");
            }
            P::Project { inner, vars, is_star } => {
                let mut vars = vars.clone();
                if *is_star {
                    vars.sort_by_key(|var| self.names.name(*var));
                }
                self.put("(project (");
                self.list(&vars, |writer, var| writer.var(*var));
                self.put(") ");
                self.pattern(inner);
                self.put(")");
            }
            P::Distinct(inner) => self.within("distinct", inner),
            P::Reduced(inner) => self.within("reduced", inner),
            P::Slice { inner, start, length } => {
                let length = length.map_or("_".to_owned(), |length| length.to_string());
                self.within(&format!("slice {start} {length}"), inner);
            }
            P::Group { inner, vars, aggregates } => {
                self.put("(group (");
                self.list(vars, |writer, var| writer.var(*var));
                self.put(") (");
                self.list(aggregates, |writer, (var, aggregate)| {
                    writer.put("(");
                    writer.aggregate(aggregate);
                    writer.put(" ");
                    writer.var(*var);
                    writer.put(")");
                });
                self.put(") ");
                self.pattern(inner);
                self.put(")");
            }
            _ => unreachable!("the others are above"),
        }
    }

    fn aggregate(&mut self, aggregate: &Aggregate) {
        write!(self.out, "({}", aggregate.function.text().to_ascii_lowercase()).unwrap();
        if aggregate.is_distinct {
            self.put(" distinct");
        }
        if let Some(argument) = &aggregate.argument {
            self.put(" ");
            self.expr(argument);
        }
        if let Some(separator) = &aggregate.separator {
            write!(self.out, " {}", OxLiteral::new_simple_literal(&**separator)).unwrap();
        }
        self.put(")");
    }

    fn expr(&mut self, expr: &Expr) {
        use Expr as E;
        match expr {
            E::Var(var) => self.var(*var),
            E::Const(term) => self.term(term),
            E::Param(number) => write!(self.out, "$$param{number}").unwrap(),
            E::Or(parts) => self.folded("||", parts, |writer, part| writer.expr(part)),
            E::And(parts) => self.folded("&&", parts, |writer, part| writer.expr(part)),
            E::Binary(operator, pair) => self.call(operator.text(), &pair[..]),
            E::Unary(operator, inner) => self.call(operator.text(), std::slice::from_ref(&**inner)),
            E::In(value, list) => {
                self.put("(in ");
                self.expr(value);
                for part in list {
                    self.put(" ");
                    self.expr(part);
                }
                self.put(")");
            }
            E::Exists(pattern) => self.within("exists", pattern),
            E::Call(function, parts) => {
                let name = match function {
                    Function::SameTerm => "sameTerm".to_owned(),
                    Function::Bound | Function::If | Function::Coalesce => {
                        function.text().to_ascii_lowercase()
                    }
                    function => format!(" {}", function.text().to_ascii_lowercase()),
                };
                self.call(&name, parts);
            }
            E::Custom(name, parts) => self.call(&format!(" <{name}>"), parts),
        }
    }

    fn call(&mut self, name: &str, parts: &[Expr]) {
        write!(self.out, "({name}").unwrap();
        for part in parts {
            self.put(" ");
            self.expr(part);
        }
        self.put(")");
    }

    fn path(&mut self, path: &Path) {
        match path {
            Path::Predicate(slot) => self.slot(slot),
            Path::Reverse(inner) => self.around("reverse", inner),
            Path::ZeroOrMore(inner) => self.around("path*", inner),
            Path::OneOrMore(inner) => self.around("path+", inner),
            Path::ZeroOrOne(inner) => self.around("path?", inner),
            Path::Sequence(parts) => self.folded("seq", parts, |writer, part| writer.path(part)),
            Path::Alternative(parts) => self.folded("alt", parts, |writer, part| writer.path(part)),
            Path::Negated(slots) => {
                self.put("(notoneof ");
                self.list(slots, |writer, slot| writer.slot(slot));
                self.put(")");
            }
        }
    }

    fn around(&mut self, name: &str, inner: &Path) {
        write!(self.out, "({name} ").unwrap();
        self.path(inner);
        self.put(")");
    }

    fn operation(&mut self, operation: &Operation) {
        match operation {
            Operation::InsertData(_) | Operation::DeleteData(_) => {}
            Operation::Modify(Modify { delete, insert, using, pattern, .. }) => {
                self.put("(modify ");
                if let Some(using) = using {
                    self.put(" (using ");
                    self.dataset(using);
                    self.put(" ");
                }
                self.pattern(pattern);
                if using.is_some() {
                    self.put(")");
                }
                for (name, quads) in [("delete", delete), ("insert", insert)] {
                    if quads.is_empty() {
                        continue;
                    }
                    write!(self.out, " ({name} (").unwrap();
                    self.list(quads, |writer, quad| {
                        writer.graph(quad.graph.as_ref());
                        writer.triple(&quad.triple);
                        writer.put(["", "))"][usize::from(quad.graph.is_some())]);
                    });
                    self.put("))");
                }
                self.put(")");
            }
            Operation::Load { is_silent, source, into } => {
                self.put(if *is_silent { "(load silent " } else { "(load " });
                let into = into.as_ref().map_or("default".to_owned(), |iri| format!("<{iri}>"));
                write!(self.out, "<{source}> {into})").unwrap();
            }
            Operation::Clear { is_silent, target } => self.target("clear", *is_silent, target),
            Operation::Drop { is_silent, target } => self.target("drop", *is_silent, target),
            Operation::Create { is_silent, graph } => {
                self.target("create", *is_silent, &GraphTarget::Named(graph.clone()));
            }
        }
    }

    fn target(&mut self, name: &str, is_silent: bool, target: &GraphTarget) {
        let target = match target {
            GraphTarget::Named(iri) => format!("<{iri}>"),
            GraphTarget::Default => "default".to_owned(),
            GraphTarget::AllNamed => "named".to_owned(),
            GraphTarget::All => "all".to_owned(),
        };
        write!(self.out, "({name}{} {target})", ["", " silent"][usize::from(is_silent)]).unwrap();
    }

    fn graph(&mut self, graph: Option<&Slot>) {
        if let Some(graph) = graph {
            self.put("(graph ");
            self.slot(graph);
            self.put(" (");
        }
    }
}

fn ox_literal(literal: &Literal) -> OxLiteral {
    let value = &*literal.value;
    match &literal.kind {
        LiteralKind::Simple => OxLiteral::new_simple_literal(value),
        LiteralKind::Tagged(tag) => OxLiteral::new_language_tagged_literal_unchecked(value, &**tag),
        LiteralKind::Typed(datatype) => {
            OxLiteral::new_typed_literal(value, NamedNode::new_unchecked(&**datatype))
        }
        LiteralKind::Directed(tag, direction) => {
            let direction = match direction {
                snowmelt_syntax::tree::Direction::LeftToRight => oxrdf::BaseDirection::Ltr,
                snowmelt_syntax::tree::Direction::RightToLeft => oxrdf::BaseDirection::Rtl,
            };
            OxLiteral::new_directional_language_tagged_literal_unchecked(value, &**tag, direction)
        }
    }
}
