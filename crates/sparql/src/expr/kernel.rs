//! Operators on ids alone.
//!
//! Each answers from the 64 bits what it can and says "ask the values" ([`Slow`]) otherwise.
//! Within a kind the order of ids is the order of values, so a comparison of two integers is
//! one comparison of two words.

use std::cmp::Ordering;

use snowmelt_graph::{
    DECIMAL, FIRST_REGISTERED, InlineNumber, MICROS, TermId, TermKind, from_boolean, from_double, from_float,
    from_integer, from_micros,
};

use super::column::Col;
use crate::value::Arithmetic;

/// `<`, `<=`, `>`, `>=`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

impl Order {
    pub fn holds(self, ordering: Ordering) -> bool {
        match self {
            Order::Less => ordering.is_lt(),
            Order::LessOrEqual => ordering.is_le(),
            Order::Greater => ordering.is_gt(),
            Order::GreaterOrEqual => ordering.is_ge(),
        }
    }
}

pub(crate) const TRUE: TermId = from_boolean(true);
pub(crate) const FALSE: TermId = from_boolean(false);

/// The ids alone do not give the answer: the values decide.
pub(crate) struct Slow;

const SHIFT: u32 = 60;
const INTEGER: u64 = TermKind::Integer as u64;
const PAYLOAD: u64 = (1 << SHIFT) - 1;
const ZERO: i64 = 1 << 59;

fn bit(kind: TermKind) -> u16 {
    match kind {
        // Its ids look like those of local terms, and are as slow.
        TermKind::Triple => 1 << TermKind::Local as u16,
        kind => 1 << kind as u16,
    }
}

/// Calls `f(row, a, b)` for each row; constants stay in registers.
#[inline(always)]
pub(crate) fn zip(a: &Col<'_>, b: &Col<'_>, rows: usize, mut f: impl FnMut(usize, TermId, TermId)) {
    match (a.slice(), b.slice()) {
        (Ok(a), Ok(b)) => {
            assert!(a.len() == rows && b.len() == rows, "both columns have an id for each row");
            a.iter().zip(b).enumerate().for_each(|(i, (a, b))| f(i, *a, *b));
        }
        (Ok(a), Err(b)) => {
            assert!(a.len() == rows, "the column has an id for each row");
            a.iter().enumerate().for_each(|(i, a)| f(i, *a, b));
        }
        (Err(a), Ok(b)) => {
            assert!(b.len() == rows, "the column has an id for each row");
            b.iter().enumerate().for_each(|(i, b)| f(i, a, *b));
        }
        (Err(a), Err(b)) => (0..rows).for_each(|i| f(i, a, b)),
    }
}

/// `+ - * /` of two numbers, where the result is inline.
#[inline(always)]
pub(crate) fn arithmetic(op: Arithmetic, a: TermId, b: TermId) -> Result<TermId, Slow> {
    if a.0 >> SHIFT == INTEGER && b.0 >> SHIFT == INTEGER {
        let (x, y) = ((a.0 & PAYLOAD) as i64 - ZERO, (b.0 & PAYLOAD) as i64 - ZERO);
        let sum = match op {
            Arithmetic::Add => x + y, // 60 bits each: no overflow of 64
            Arithmetic::Subtract => x - y,
            Arithmetic::Multiply => x.checked_mul(y).ok_or(Slow)?,
            Arithmetic::Divide => return Err(Slow),
        };
        let payload = sum.wrapping_add(ZERO) as u64;
        return if payload <= PAYLOAD { Ok(TermId(INTEGER << SHIFT | payload)) } else { Err(Slow) };
    }
    if a.is_undef() || b.is_undef() {
        return Ok(TermId::UNDEF);
    }
    others(op, a, b)
}

fn number(id: TermId) -> Result<InlineNumber, Slow> {
    id.inline_number().ok_or(Slow)
}

/// An exact number, and the id that it is of.
#[derive(Clone, Copy)]
struct ExactNumber {
    micros: i128,
    id: TermId,
}

/// Two exact numbers, of which not both are xsd:integer.
fn exact(op: Arithmetic, left: ExactNumber, right: ExactNumber) -> Result<TermId, Slow> {
    let (a, b) = (left.micros, right.micros);
    // what derives from integer has a code of its own
    let is_integer = |id: TermId| id.kind() == TermKind::Integer || id.decimal_code() != DECIMAL;
    let micros = match op {
        Arithmetic::Add => a + b,
        Arithmetic::Subtract => a - b,
        Arithmetic::Multiply => match a.checked_mul(b).ok_or(Slow)? {
            product if product % MICROS == 0 => product / MICROS,
            _ => return Err(Slow),
        },
        Arithmetic::Divide => return Err(Slow),
    };
    let whole = is_integer(left.id) && is_integer(right.id);
    let value = i64::try_from(if whole { micros / MICROS } else { micros }).map_err(|_| Slow)?;
    if whole { from_integer(value) } else { from_micros(value) }.ok_or(Slow)
}

/// Inline numbers that are not both xsd:integer.
fn others(op: Arithmetic, a_id: TermId, b_id: TermId) -> Result<TermId, Slow> {
    let (a, b) = (number(a_id)?, number(b_id)?);
    match (a, b) {
        (InlineNumber::Exact(a), InlineNumber::Exact(b)) => {
            exact(op, ExactNumber { micros: a, id: a_id }, ExactNumber { micros: b, id: b_id })
        }
        (InlineNumber::Double(_), _) | (_, InlineNumber::Double(_)) => {
            let (a, b) = (a.double(), b.double());
            from_double(match op {
                Arithmetic::Add => a + b,
                Arithmetic::Subtract => a - b,
                Arithmetic::Multiply => a * b,
                Arithmetic::Divide => a / b,
            })
            .ok_or(Slow)
        }
        _ => {
            let (a, b) = (a.float(), b.float());
            Ok(from_float(match op {
                Arithmetic::Add => a + b,
                Arithmetic::Subtract => a - b,
                Arithmetic::Multiply => a * b,
                Arithmetic::Divide => a / b,
            }))
        }
    }
}

/// Inline numbers of any two types; NaN is left to the values.
fn numbers(a: TermId, b: TermId) -> Result<Ordering, Slow> {
    number(a)?.compare(number(b)?).ok_or(Slow)
}

/// The order of two ids of one kind whose order is that of the values.
#[inline(always)]
pub(crate) fn order(a: TermId, b: TermId) -> Result<Ordering, Slow> {
    let kind = a.0 >> SHIFT;
    if kind != b.0 >> SHIFT {
        return Err(Slow);
    }
    if kind == INTEGER {
        return Ok(a.cmp(&b));
    }
    let kind = 1_u16 << kind;
    if kind & (bit(TermKind::ShortString) | bit(TermKind::Boolean)) != 0 {
        return Ok(a.cmp(&b));
    }
    // With and without time zone are another time line.
    if kind & (bit(TermKind::Date) | bit(TermKind::DateTime)) != 0 && (a.0 ^ b.0) & 1 == 0 {
        return Ok(a.cmp(&b));
    }
    if kind == bit(TermKind::Decimal) && a.decimal_code() == 0 && b.decimal_code() == 0 {
        return Ok((a.0 >> 3).cmp(&(b.0 >> 3))); // below: digits after the point
    }
    Err(Slow)
}

/// The order of two inline values.
#[inline(always)]
fn order_of_values(a: TermId, b: TermId) -> Result<Ordering, Slow> {
    order(a, b).or_else(|Slow| {
        let numbers_both = NUMBERS & 1 << (a.0 >> SHIFT) != 0 && NUMBERS & 1 << (b.0 >> SHIFT) != 0;
        if numbers_both { numbers(a, b) } else { Err(Slow) }
    })
}

/// One of `< <= > >=` over two columns; rows the ids do not tell are appended to `slow`.
pub(crate) fn compare(op: Order, a: &Col<'_>, b: &Col<'_>, rows: usize, slow: &mut Vec<u32>) -> Vec<TermId> {
    match op {
        Order::Less => compare_with(a, b, rows, slow, Ordering::is_lt),
        Order::LessOrEqual => compare_with(a, b, rows, slow, Ordering::is_le),
        Order::Greater => compare_with(a, b, rows, slow, Ordering::is_gt),
        Order::GreaterOrEqual => compare_with(a, b, rows, slow, Ordering::is_ge),
    }
}

#[inline(always)]
fn compare_with(
    a: &Col<'_>,
    b: &Col<'_>,
    rows: usize,
    slow: &mut Vec<u32>,
    holds: impl Fn(Ordering) -> bool,
) -> Vec<TermId> {
    let mut out = Vec::with_capacity(rows);
    zip(a, b, rows, |i, a, b| {
        out.push(match order_of_values(a, b) {
            Ok(order) => TermId(FALSE.0 | u64::from(holds(order))),
            Err(Slow) => {
                if !a.is_undef() && !b.is_undef() {
                    slow.push(i as u32);
                }
                TermId::UNDEF
            }
        });
    });
    out
}

/// Kinds in which one id is one value and equality never errs: everything but numbers that have
/// several forms or NaN, literals whose datatype may be unknown, and local terms.
const PLAIN: u16 = 1 << TermKind::Iri as u16
    | 1 << TermKind::Blank as u16
    | 1 << TermKind::String as u16
    | 1 << TermKind::ShortString as u16
    | 1 << TermKind::Integer as u16
    | 1 << TermKind::Boolean as u16;
/// Numbers that may equal numbers of another kind.
const NUMBERS: u16 = 1 << TermKind::Integer as u16
    | 1 << TermKind::Decimal as u16
    | 1 << TermKind::Double as u16
    | 1 << TermKind::Float as u16;
/// Resources are never equal to literals.
const RESOURCES: u16 = 1 << TermKind::Iri as u16 | 1 << TermKind::Blank as u16;

/// `=`.
#[inline(always)]
pub(crate) fn equal(a: TermId, b: TermId) -> Result<TermId, Slow> {
    let (ka, kb) = (1_u16 << (a.0 >> SHIFT), 1_u16 << (b.0 >> SHIFT));
    if a == b {
        // NaN differs from itself; a local or out-of-line double may be one.
        let doubtful = bit(TermKind::Double)
            | bit(TermKind::Float)
            | bit(TermKind::Value)
            | bit(TermKind::Local)
            | bit(TermKind::Special);
        return match () {
            () if ka & doubtful == 0 => Ok(TRUE),
            () if a.is_undef() => Ok(TermId::UNDEF),
            () => Err(Slow),
        };
    }
    let both = ka | kb;
    if both & bit(TermKind::Special) != 0 {
        return Ok(TermId::UNDEF);
    }
    if both & !PLAIN == 0 {
        return Ok(FALSE); // different ids of plain kinds: different values
    }
    if both & bit(TermKind::Local) == 0 && both & RESOURCES != 0 {
        return Ok(FALSE); // a resource and any literal
    }
    if both & !NUMBERS == 0 && ka == kb && ka == bit(TermKind::Decimal) {
        let (ca, cb) = (a.decimal_code(), b.decimal_code());
        if ca == 0 && cb == 0 {
            return Ok(if a.0 >> 3 == b.0 >> 3 { TRUE } else { FALSE });
        }
        if ca >= FIRST_REGISTERED || cb >= FIRST_REGISTERED {
            return Ok(TermId::UNDEF); // unknown datatype, different terms
        }
    }
    if ka == kb && both & (bit(TermKind::Date) | bit(TermKind::DateTime)) != 0 && (a.0 ^ b.0) & 1 == 0 {
        return Ok(FALSE);
    }
    if both & !NUMBERS == 0 {
        return numbers(a, b).map(|order| if order.is_eq() { TRUE } else { FALSE });
    }
    Err(Slow)
}

/// sameTerm. Ids name terms one to one, except that a local term may also be stored.
#[inline(always)]
pub(crate) fn same_term(a: TermId, b: TermId) -> Result<TermId, Slow> {
    if a.is_undef() || b.is_undef() {
        return Ok(TermId::UNDEF);
    }
    if a == b {
        return Ok(TRUE);
    }
    if a.kind() != TermKind::Local && b.kind() != TermKind::Local {
        return Ok(FALSE);
    }
    // Local terms are not inline, so they are no inline term.
    if a.kind().is_inline() && b.kind() == TermKind::Local
        || b.kind().is_inline() && a.kind() == TermKind::Local
    {
        let inline = if a.kind().is_inline() { a } else { b };
        // Literals of registered datatypes are inline only to those who know the table.
        if inline.kind() != TermKind::Decimal || inline.decimal_code() < FIRST_REGISTERED {
            return Ok(FALSE);
        }
    }
    Err(Slow)
}

/// The effective boolean value.
#[inline(always)]
pub(crate) fn truth(id: TermId) -> Result<TermId, Slow> {
    match id.kind() {
        TermKind::Boolean => Ok(id),
        TermKind::Special | TermKind::Iri | TermKind::Blank | TermKind::Date | TermKind::DateTime => {
            Ok(TermId::UNDEF)
        }
        TermKind::String => Ok(TRUE), // the empty string is inline
        TermKind::ShortString => Ok(if id.payload() == 0 { FALSE } else { TRUE }),
        TermKind::Integer => Ok(if id.payload() == ZERO as u64 { FALSE } else { TRUE }),
        _ => Err(Slow),
    }
}

/// `&&` of truth values: false wins over error.
pub(crate) fn and(a: TermId, b: TermId) -> TermId {
    match (a, b) {
        (FALSE, _) | (_, FALSE) => FALSE,
        (TRUE, TRUE) => TRUE,
        _ => TermId::UNDEF,
    }
}

/// `||` of truth values: true wins over error.
pub(crate) fn or(a: TermId, b: TermId) -> TermId {
    match (a, b) {
        (TRUE, _) | (_, TRUE) => TRUE,
        (FALSE, FALSE) => FALSE,
        _ => TermId::UNDEF,
    }
}

/// `!` of a truth value.
pub(crate) fn not(a: TermId) -> TermId {
    if a.is_undef() { a } else { TermId(a.0 ^ 1) }
}

/// The rows of `selected` (None: all) whose truth is true.
pub(crate) fn select(truth: &Col<'_>, selected: Option<&[u32]>, rows: usize) -> Vec<u32> {
    let count = selected.map_or(rows, <[u32]>::len);
    let truth = match truth.slice() {
        Ok(truth) => truth,
        Err(TRUE) => return selected.map_or_else(|| (0..rows as u32).collect(), <[u32]>::to_vec),
        Err(_) => return Vec::new(),
    };
    assert!(truth.len() == count, "a truth value for each selected row");
    // Every row is written, the cursor moves only for a true one: no branch to mispredict.
    let mut out = vec![0; count];
    let mut len = 0;
    match selected {
        Some(selected) => {
            for (row, truth) in selected.iter().zip(truth) {
                out[len] = *row;
                len += usize::from(*truth == TRUE);
            }
        }
        None => {
            for (row, truth) in truth.iter().enumerate() {
                out[len] = row as u32;
                len += usize::from(*truth == TRUE);
            }
        }
    }
    out.truncate(len);
    out
}
