//! Expressions, by the rank of their operators.

use super::errors::EXPRESSION;
use super::terms::Rules;
use super::{Parsed, Parser};
use crate::lexer::{Kind, Sign, Span};
use crate::tree::{BinaryOperator, Expr, Literal, Slot, Term, UnaryOperator, Var};

/// Ranks of operators; those of a higher one bind their operands first.
const OR: u8 = 1;
const AND: u8 = 2;
const COMPARE: u8 = 3;
const ADD: u8 = 4;
const MULTIPLY: u8 = 5;

/// The rank of an operator between two operands.
fn rank(sign: Sign) -> Option<u8> {
    match sign {
        Sign::Or => Some(OR),
        Sign::And => Some(AND),
        Sign::Plus | Sign::Minus => Some(ADD),
        Sign::Star | Sign::Slash => Some(MULTIPLY),
        Sign::NotEqual => Some(COMPARE),
        sign => BinaryOperator::named(sign.text()).map(|_| COMPARE),
    }
}

/// Terms of a triple term in an expression.
const OPERANDS: Rules =
    Rules { has_plain_subjects: true, ..Rules::simple(None, Some("an expression has no blank nodes")) };

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
        loop {
            let fits = |rank: &u8| (least..=most).contains(rank);
            match self.cursor.kind() {
                Kind::Sign(sign) if let Some(rank) = rank(sign).filter(fits) => {
                    self.cursor.advance();
                    let right = self.operators(rank + 1)?;
                    left = self.combined(sign, left, right)?;
                    most = if rank == COMPARE { AND } else { rank };
                }
                Kind::Number(_) if fits(&ADD) && self.cursor.text().starts_with(['+', '-']) => {
                    left = self.signed(left)?;
                    most = ADD;
                }
                Kind::Word if fits(&COMPARE) && self.cursor.is_word(&["IN", "NOT"]) => {
                    let is_negated = self.cursor.takes_word("NOT");
                    self.word("IN")?;
                    left = Expr::In(Box::new(left), self.arguments()?);
                    left = if is_negated { left.negated() } else { left };
                    most = AND;
                }
                _ => {
                    self.cursor.expect(["&&", "||", "=", "<", "+", "*", "IN"]);
                    return Ok(left);
                }
            }
        }
    }

    /// `a -1 * b`: the sign is the operator, the number the first factor.
    fn signed(&mut self, left: Expr) -> Parsed<Expr> {
        let Kind::Number(number) = self.cursor.kind() else { return self.unexpected() };
        let (sign, digits) = self.cursor.text().split_at(1);
        let sign = if sign == "-" { Sign::Minus } else { Sign::Plus };
        let number = Expr::Const(Term::Literal(Literal::number(digits, number)));
        self.cursor.advance();
        let right = self.operate(number, MULTIPLY)?;
        self.combined(sign, left, right)
    }

    fn combined(&mut self, sign: Sign, left: Expr, right: Expr) -> Parsed<Expr> {
        match sign {
            Sign::Or | Sign::And => self.branch()?,
            Sign::Plus | Sign::Minus | Sign::Star | Sign::Slash => self.link()?,
            _ => {}
        }
        let binary = |operator, left, right| Expr::Binary(operator, Box::new([left, right]));
        Ok(match BinaryOperator::named(sign.text()) {
            Some(operator) => binary(operator, left, right),
            None if sign == Sign::Or => left.or(right),
            None if sign == Sign::And => left.and(right),
            None => binary(BinaryOperator::Equal, left, right).negated(),
        })
    }

    fn unary(&mut self) -> Parsed<Expr> {
        if self.cursor.takes(Sign::Not) {
            return self.nested(|parser| Ok(parser.unary()?.negated()));
        }
        for (sign, operator) in [(Sign::Plus, UnaryOperator::Plus), (Sign::Minus, UnaryOperator::Minus)] {
            if self.cursor.takes(sign) {
                return Ok(Expr::Unary(operator, Box::new(self.primary()?)));
            }
        }
        self.primary()
    }

    fn primary(&mut self) -> Parsed<Expr> {
        let primary = match self.cursor.kind() {
            Kind::Sign(Sign::OpenParen) => return self.bracketed(),
            Kind::Iri | Kind::Name => return self.iri_or_call(),
            Kind::Word if !self.is_boolean() => self.built_in()?,
            Kind::Blank => None,
            _ => self.under(OPERANDS, Self::simple_term)?.map(Expr::from),
        };
        self.wanted(primary, EXPRESSION)
    }

    fn iri_or_call(&mut self) -> Parsed<Expr> {
        let iri = self.iri_slot()?;
        match self.wanted(iri, EXPRESSION)? {
            Slot::Term(Term::Iri(name)) if self.cursor.sees(Sign::OpenParen) => {
                Ok(Expr::Custom(name, self.arguments()?))
            }
            iri => Ok(iri.into()),
        }
    }

    /// An expression as FILTER and HAVING take it, without more brackets.
    pub(super) fn constraint(&mut self) -> Parsed<Expr> {
        match self.cursor.kind() {
            Kind::Sign(Sign::OpenParen) => self.bracketed(),
            Kind::Iri | Kind::Name => Ok(Expr::Custom(self.iri()?, self.arguments()?)),
            Kind::Word => {
                let call = self.built_in()?;
                self.wanted(call, EXPRESSION)
            }
            _ => {
                self.cursor.expect(["(", "a function"]);
                self.unexpected()
            }
        }
    }

    /// Whether a constraint may go on a list of them.
    pub(super) fn begins_constraint(&self) -> bool {
        match self.cursor.kind() {
            Kind::Sign(Sign::OpenParen) | Kind::Iri | Kind::Name => true,
            _ => self.begins_call(),
        }
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

    /// `( expression AS ?name )`, or without a name where that may be; the place of the name.
    pub(super) fn named_expr(&mut self, is_named: bool) -> Parsed<(Expr, Option<(Var, Span)>)> {
        self.nested(|parser| {
            parser.sign(Sign::OpenParen)?;
            let expr = parser.expr()?;
            let mut name = None;
            if parser.cursor.takes_word("AS") {
                let span = parser.cursor.span();
                name = Some((parser.wanted_var()?, span));
            } else if is_named {
                return parser.unexpected();
            }
            parser.sign(Sign::CloseParen)?;
            Ok((expr, name))
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
            list.push(parser.expr()?);
            while parser.cursor.takes(Sign::Comma) {
                list.push(parser.expr()?);
            }
            parser.sign(Sign::CloseParen)?;
            Ok(list)
        })
    }
}
