//! Expressions, by the rank of their operators.

use super::errors::EXPRESSION;
use super::{Parsed, Parser};
use crate::lexer::{Kind, Sign};
use crate::shape::Constant;
use crate::tree::{Expr, Function, Literal, Slot, Term};

/// Ranks of operators; those of a higher one bind their operands first.
const OR: u8 = 1;
const AND: u8 = 2;
const COMPARE: u8 = 3;
const ADD: u8 = 4;
const MULTIPLY: u8 = 5;

/// An operator between two operands.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Operator {
    Sign(Sign),
    In,
    NotIn,
    /// a number whose sign stands for the operator
    Signed,
}

impl Parser<'_> {
    pub(super) fn expr(&mut self) -> Parsed<Expr> {
        self.operators(OR)
    }

    /// An expression of operators of at least a rank.
    fn operators(&mut self, least: u8) -> Parsed<Expr> {
        let first = self.unary()?;
        self.operate(first, least)
    }

    fn operate(&mut self, mut left: Expr, least: u8) -> Parsed<Expr> {
        // Behind an operator no one of a higher rank follows, and behind a comparison no other.
        let mut most = MULTIPLY;
        while let Some((rank, operator)) = self.operator(least, most)? {
            most = if rank == COMPARE { AND } else { rank };
            left = match operator {
                Operator::In => Expr::In(Box::new(left), self.arguments()?),
                Operator::NotIn => Expr::Not(Box::new(Expr::In(Box::new(left), self.arguments()?))),
                Operator::Signed => self.signed(left)?,
                Operator::Sign(sign) => {
                    let right = self.operators(rank + 1)?;
                    self.combined(sign, left, right)?
                }
            };
        }
        Ok(left)
    }

    /// Takes an operator whose rank is between two.
    fn operator(&mut self, least: u8, most: u8) -> Parsed<Option<(u8, Operator)>> {
        let rank = match self.cursor.kind() {
            Kind::Sign(Sign::Or) => OR,
            Kind::Sign(Sign::And) => AND,
            Kind::Sign(
                Sign::Equal
                | Sign::NotEqual
                | Sign::Less
                | Sign::LessOrEqual
                | Sign::Greater
                | Sign::GreaterOrEqual,
            ) => COMPARE,
            Kind::Sign(Sign::Plus | Sign::Minus) => ADD,
            Kind::Sign(Sign::Star | Sign::Slash) => MULTIPLY,
            Kind::Number(_) if self.cursor.text().starts_with(['+', '-']) => ADD,
            Kind::Word if (least..=most).contains(&COMPARE) => return self.in_operator(),
            _ => {
                ["&&", "||", "=", "<", "+", "*"].into_iter().for_each(|sign| self.cursor.expect(sign));
                return Ok(None);
            }
        };
        if !(least..=most).contains(&rank) {
            return Ok(None);
        }
        Ok(Some(match self.cursor.kind() {
            Kind::Sign(sign) => {
                self.cursor.advance();
                (rank, Operator::Sign(sign))
            }
            _ => (rank, Operator::Signed),
        }))
    }

    fn in_operator(&mut self) -> Parsed<Option<(u8, Operator)>> {
        if self.cursor.takes_word("IN") {
            return Ok(Some((COMPARE, Operator::In)));
        }
        if self.cursor.takes_word("NOT") {
            self.word("IN")?;
            return Ok(Some((COMPARE, Operator::NotIn)));
        }
        ["&&", "||"].into_iter().for_each(|sign| self.cursor.expect(sign));
        Ok(None)
    }

    /// `a -1 * b`: the sign is the operator, the number the first factor.
    fn signed(&mut self, left: Expr) -> Parsed<Expr> {
        let is_minus = self.cursor.text().starts_with('-');
        let Constant::Fixed(literal) = self.cursor.number() else { return self.unexpected() };
        let value = literal.value.trim_start_matches(['+', '-']).into();
        let number = Expr::Const(Term::Literal(Literal { value, kind: literal.kind }));
        let right = self.operate(number, MULTIPLY)?;
        self.combined(if is_minus { Sign::Minus } else { Sign::Plus }, left, right)
    }

    fn combined(&mut self, sign: Sign, left: Expr, right: Expr) -> Parsed<Expr> {
        match sign {
            Sign::Or | Sign::And => self.branch()?,
            Sign::Plus | Sign::Minus | Sign::Star | Sign::Slash => self.link()?,
            _ => {}
        }
        let negated = |expr| Expr::Not(Box::new(expr));
        Ok(match (sign, left) {
            (Sign::Or, Expr::Or(parts)) => Expr::Or(with(parts, right)),
            (Sign::Or, left) => Expr::Or(vec![left, right]),
            (Sign::And, Expr::And(parts)) => Expr::And(with(parts, right)),
            (Sign::And, left) => Expr::And(vec![left, right]),
            (Sign::Equal, left) => Expr::Equal(Box::new([left, right])),
            (Sign::NotEqual, left) => negated(Expr::Equal(Box::new([left, right]))),
            (Sign::Less, left) => Expr::Less(Box::new([left, right])),
            (Sign::LessOrEqual, left) => Expr::LessOrEqual(Box::new([left, right])),
            (Sign::Greater, left) => Expr::Greater(Box::new([left, right])),
            (Sign::GreaterOrEqual, left) => Expr::GreaterOrEqual(Box::new([left, right])),
            (Sign::Plus, left) => Expr::Add(Box::new([left, right])),
            (Sign::Minus, left) => Expr::Subtract(Box::new([left, right])),
            (Sign::Star, left) => Expr::Multiply(Box::new([left, right])),
            (_, left) => Expr::Divide(Box::new([left, right])),
        })
    }

    fn unary(&mut self) -> Parsed<Expr> {
        if self.cursor.takes(Sign::Not) {
            return self.nested(|parser| Ok(Expr::Not(Box::new(parser.unary()?))));
        }
        if self.cursor.takes(Sign::Plus) {
            return Ok(Expr::UnaryPlus(Box::new(self.primary()?)));
        }
        if self.cursor.takes(Sign::Minus) {
            return Ok(Expr::UnaryMinus(Box::new(self.primary()?)));
        }
        self.primary()
    }

    fn primary(&mut self) -> Parsed<Expr> {
        match self.cursor.kind() {
            Kind::Sign(Sign::OpenParen) => self.bracketed(),
            Kind::Sign(Sign::OpenTriple) => self.triple_expr(),
            Kind::Iri | Kind::Name => {
                let Some(iri) = self.iri_slot()? else { return self.unexpected() };
                self.constant_or_call(iri)
            }
            Kind::Word => {
                if let Some(literal) = self.literal()? {
                    return self.constant(literal);
                }
                match self.built_in()? {
                    Some(call) => Ok(call),
                    None => self.no_expr(),
                }
            }
            _ => match self.operand()? {
                Some(operand) => Ok(operand),
                None => self.no_expr(),
            },
        }
    }

    pub(super) fn no_expr<T>(&mut self) -> Parsed<T> {
        self.cursor.expect(EXPRESSION);
        self.unexpected()
    }

    /// Takes a variable or a literal.
    fn operand(&mut self) -> Parsed<Option<Expr>> {
        if let Some(var) = self.var()? {
            return Ok(Some(Expr::Var(var)));
        }
        match self.literal()? {
            Some(literal) => self.constant(literal).map(Some),
            None => Ok(None),
        }
    }

    fn constant(&mut self, slot: Slot) -> Parsed<Expr> {
        match slot {
            Slot::Term(term) => Ok(Expr::Const(term)),
            Slot::Param(number) => Ok(Expr::Param(number)),
            Slot::Var(var) => Ok(Expr::Var(var)),
            Slot::Triple(_) => self.no_expr(),
        }
    }

    fn constant_or_call(&mut self, iri: Slot) -> Parsed<Expr> {
        match iri {
            Slot::Term(Term::Iri(name)) if self.cursor.sees(Sign::OpenParen) => {
                Ok(Expr::Call(Function::Custom(name), self.arguments()?))
            }
            iri => self.constant(iri),
        }
    }

    /// A function with an IRI for a name, where no other expression may stand.
    pub(super) fn function_call(&mut self) -> Parsed<Expr> {
        let name = self.iri()?;
        if !self.cursor.sees(Sign::OpenParen) {
            return self.unexpected();
        }
        Ok(Expr::Call(Function::Custom(name), self.arguments()?))
    }

    /// `( expression )`
    pub(super) fn bracketed(&mut self) -> Parsed<Expr> {
        self.nested(|parser| {
            parser.sign(Sign::OpenParen)?;
            let expr = parser.expr()?;
            parser.sign(Sign::CloseParen)?;
            Ok(expr)
        })
    }

    /// `( expression, … )`, or none in it.
    pub(super) fn arguments(&mut self) -> Parsed<Vec<Expr>> {
        self.nested(|parser| {
            parser.sign(Sign::OpenParen)?;
            let mut list = Vec::new();
            if parser.cursor.takes(Sign::CloseParen) {
                return Ok(list);
            }
            loop {
                list.push(parser.expr()?);
                if !parser.cursor.takes(Sign::Comma) {
                    break;
                }
            }
            parser.sign(Sign::CloseParen)?;
            Ok(list)
        })
    }

    /// `<<( subject predicate object )>>`
    fn triple_expr(&mut self) -> Parsed<Expr> {
        let span = self.cursor.span();
        self.first.triple_term.get_or_insert(span);
        self.nested(|parser| {
            parser.cursor.advance();
            let subject = parser.var_or_iri()?;
            let subject = parser.constant(subject)?;
            let verb = parser.wanted_verb()?;
            let predicate = parser.constant(verb)?;
            let object = parser.triple_operand()?;
            parser.sign(Sign::CloseTriple)?;
            Ok(Expr::Call(Function::Triple, vec![subject, predicate, object]))
        })
    }

    fn triple_operand(&mut self) -> Parsed<Expr> {
        if self.cursor.sees(Sign::OpenTriple) {
            return self.triple_expr();
        }
        if let Some(iri) = self.iri_slot()? {
            return self.constant(iri);
        }
        match self.operand()? {
            Some(operand) => Ok(operand),
            None => self.unexpected(),
        }
    }
}

fn with(mut parts: Vec<Expr>, part: Expr) -> Vec<Expr> {
    parts.push(part);
    parts
}
