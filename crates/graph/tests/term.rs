//! Term ids compared with the lexical forms and values they stand for.

use std::cmp::Ordering;
use std::str::FromStr;

use oxsdatatypes::{Date, DateTime, Decimal, Double, Float};
use proptest::prelude::*;
use snowmelt_graph::*;

fn xsd(name: &str) -> String {
    format!("{XSD}{name}")
}

fn id(lexical: &str, datatype: &str) -> Option<TermId> {
    encode(lexical, &xsd(datatype)).id()
}

/// Checks that an inline id gives back the lexical form and datatype it was made from.
fn assert_round_trip(lexical: &str, datatype: &str) -> Option<TermId> {
    let datatype = xsd(datatype);
    let id = encode(lexical, &datatype).id()?;
    assert!(id.kind().is_inline());
    assert_eq!(Lexical::new().write(id), Some(lexical), "{datatype}");
    assert_eq!(id.fixed_datatype(), Some(datatype.as_str()));
    Some(id)
}

const DATATYPES: [&str; 20] = [
    "string",
    "integer",
    "decimal",
    "double",
    "float",
    "boolean",
    "date",
    "dateTime",
    "long",
    "int",
    "short",
    "byte",
    "nonNegativeInteger",
    "positiveInteger",
    "nonPositiveInteger",
    "negativeInteger",
    "unsignedLong",
    "unsignedInt",
    "unsignedShort",
    "unsignedByte",
];

#[test]
fn canonical_forms_are_inline() {
    for (datatype, forms) in [
        ("string", &["", "a", "seven b", "été", "\0", "日本"][..]),
        ("integer", &["0", "-1", "42", "-576460752303423488", "576460752303423487"]),
        (
            "decimal",
            &["0", "-1", "1.5", "1.50", "0.000001", "-281474976.710655", "281474976.71", "1234.50", "0.0"],
        ),
        (
            "double",
            &["1.0E0", "1.05E1", "-0.0E0", "0.0E0", "INF", "-INF", "NaN", "-1.25E-1", "2.5E-1", "1.0E21"],
        ),
        ("float", &["1.0E0", "1.1E0", "-3.4028235E38", "1.0E-45", "INF", "-INF", "NaN", "-0.0E0"]),
        ("boolean", &["true", "false"]),
        ("date", &["0001-01-01", "2008-06-20", "2008-02-29Z", "9999-12-31Z", "2000-02-29"]),
        (
            "dateTime",
            &[
                "2008-06-20T00:00:00",
                "0001-01-01T00:00:00Z",
                "9999-12-31T23:59:59.999",
                "2008-06-20T01:02:03.5Z",
            ],
        ),
        ("byte", &["-128", "127"]),
        ("nonPositiveInteger", &["0", "-2251799813685248"]),
        ("unsignedLong", &["2251799813685247"]),
    ] {
        for form in forms {
            assert!(assert_round_trip(form, datatype).is_some(), "{form:?} of {datatype}");
        }
    }
}

#[test]
fn other_forms_go_to_the_dictionary() {
    for (datatype, kind, forms) in [
        ("string", TermKind::String, &["eight by", "日本語"][..]),
        (
            "integer",
            TermKind::Value,
            &["", "-", "+1", "01", "-0", " 1", "1.0", "1e3", "576460752303423488", "99999999999999999999"],
        ),
        (
            "decimal",
            TermKind::Value,
            &[
                "",
                ".",
                "5.",
                ".5",
                "-0",
                "-0.0",
                "+1",
                "01.5",
                "1.0000001",
                "281474977",
                "1e3",
                "--1",
                "1.-5",
            ],
        ),
        (
            "double",
            TermKind::Value,
            &[
                "1.0E-7", "1.1E0", "1", "1.0", "10.5", "1E0", "1.0e0", "1.0E+0", "10.0E0", "1.10E0",
                "1.01E1", "0.1E1", "+INF", "nan", "1.0E00",
            ],
        ),
        ("float", TermKind::Value, &["1", "1.0", "1E0", "1.00000001E0", "1.0E99", "infinity"]),
        ("boolean", TermKind::Value, &["1", "0", "True", ""]),
        (
            "date",
            TermKind::Value,
            &[
                "2008-6-20",
                "2008-06-31",
                "2007-02-29",
                "1900-02-29",
                "0000-01-01",
                "2008-06-20+00:00",
                "12008-06-20",
                "-0001-01-01",
                "2008-06-20z",
                "",
                "2008-00-01",
            ],
        ),
        (
            "dateTime",
            TermKind::Value,
            &[
                "2008-06-20",
                "2008-06-20T24:00:00",
                "2008-06-20T00:00:00.0",
                "2008-06-20T00:00:00.50",
                "2008-06-20T00:00:00.1234",
                "2008-06-20T00:00:00+01:00",
                "2008-06-20t00:00:00",
                "2008-06-20T00:60:00",
                "2008-06-20T00:00:00.",
            ],
        ),
        ("byte", TermKind::Value, &["128", "-129"]),
        ("unsignedInt", TermKind::Value, &["-1", "4294967296"]),
        ("time", TermKind::Value, &["00:00:00"]),
        ("gYear", TermKind::Value, &["2008"]),
        ("anyURI", TermKind::Literal, &["http://a.example/"]),
    ] {
        for form in forms {
            assert_eq!(encode(form, &xsd(datatype)), Inline::No(kind), "{form:?} of {datatype}");
        }
    }
}

#[test]
fn registered_datatypes_keep_their_digits() {
    let usd = "http://www4.wiwiss.fu-berlin.de/bizer/bsbm/v01/vocabulary/USD";
    let body = |lexical| match encode(lexical, usd) {
        Inline::Shaped(body) => body,
        other => panic!("{lexical}: {other:?}"),
    };
    for lexical in ["1234.56", "1234.50", "1234", "-1.5", "0.00"] {
        let id = decimal_like(FIRST_REGISTERED, body(lexical));
        assert_eq!(Lexical::new().write(id), Some(lexical));
        assert_eq!((id.decimal_code(), id.fixed_datatype()), (FIRST_REGISTERED, None));
    }
    assert!(body("2.0") < body("2.00") && body("2.00") < body("2.01") && body("-3") < body("2"));
    assert_eq!(encode("cheap", usd), Inline::No(TermKind::Literal));
}

#[test]
fn payloads_no_term_has_have_no_value() {
    for id in [
        TermId::new(TermKind::Boolean, 2),
        TermId::new(TermKind::ShortString, 0x0123_4567_89AB_CDEF),
        TermId::new(TermKind::Decimal, 13 << 52),
        TermId::new(TermKind::Decimal, 7),
        TermId::new(TermKind::Float, 1 << 32),
        TermId::new(TermKind::Date, 3_652_059 << 1),
        TermId::new(TermKind::DateTime, (1 << 60) - 1),
        TermId::new(TermKind::Iri, 5),
    ] {
        assert_eq!(id.inline_value(), None, "{id:?}");
        assert_eq!(Lexical::new().write(id), None);
    }
}

/// Lexical forms near the canonical ones of every datatype, and far from them.
fn forms() -> impl Strategy<Value = String> {
    prop_oneof![
        "-?[0-9]{1,20}",
        "[+-]?[0-9]{0,10}(\\.[0-9]{0,8})?",
        "-?[0-9]\\.[0-9]{1,4}E-?[0-9]{1,3}",
        "[0-9]{4}-[01][0-9]-[0-3][0-9](T[0-2][0-9]:[0-6][0-9]:[0-6][0-9](\\.[0-9]{0,4})?)?(Z|[+-]01:00)?",
        ".{0,9}",
        any::<f64>().prop_map(|value| format!("{value:E}")),
        any::<f32>().prop_map(|value| format!("{value:E}")),
        Just("true".to_owned()),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(4000) })]

    #[test]
    fn whatever_is_inline_is_given_back(form in forms()) {
        for datatype in DATATYPES {
            assert_round_trip(&form, datatype);
        }
        if let Inline::Shaped(body) = encode(&form, "http://a.example/unit") {
            let mut lexical = Lexical::new();
            prop_assert_eq!(lexical.write(decimal_like(200, body)), Some(form.as_str()));
        }
    }

    #[test]
    fn integers_order(a in -(1i64 << 59)..1 << 59, b in -(1i64 << 59)..1 << 59, near in -2i64..3) {
        let value = |id: TermId| id.inline_value();
        prop_assert_eq!(value(from_integer(a).unwrap()), Some(InlineValue::Integer(a)));
        prop_assert_eq!(id(&a.to_string(), "integer"), from_integer(a));
        prop_assert_eq!(from_integer(a).cmp(&from_integer(b)), a.cmp(&b));
        if let Some(next) = from_integer(a + near) {
            prop_assert_eq!(from_integer(a).unwrap().cmp(&next), 0.cmp(&near));
        }
    }

    #[test]
    fn decimals_order(a in -(1i64 << 48)..1 << 48, b in -(1i64 << 48)..1 << 48) {
        for (a, b) in [(a, b), (a / 1000, b / 1000), (a, a + 1), (a, a - 1)] {
            let (Some(left), Some(right)) = (from_micros(a), from_micros(b)) else { continue };
            prop_assert_eq!(left.cmp(&right), a.cmp(&b));
            let mut lexical = Lexical::new();
            prop_assert_eq!(id(lexical.write(left).unwrap(), "decimal"), Some(left));
        }
    }

    #[test]
    fn reals_order(a in any::<f64>(), b in any::<f64>(), c in any::<f32>(), d in any::<f32>()) {
        let rounded = |value: f64| f64::from_bits(value.to_bits() & !0xF);
        let (a, b) = (rounded(a), rounded(b));
        let (left, right) = (from_double(a).unwrap(), from_double(b).unwrap());
        if let Some(order) = a.partial_cmp(&b).filter(|order| order.is_ne()) {
            prop_assert_eq!(left.cmp(&right), order);
        }
        if let Some(order) = c.partial_cmp(&d).filter(|order| order.is_ne()) {
            prop_assert_eq!(from_float(c).cmp(&from_float(d)), order);
        }
        if let Some(InlineValue::Double(back)) = left.inline_value() {
            prop_assert!(back.to_bits() == a.to_bits() || a.is_nan());
        }
        let mut lexical = Lexical::new();
        prop_assert_eq!(id(lexical.write(left).unwrap(), "double"), Some(left));
        let float = from_float(c);
        prop_assert_eq!(id(lexical.write(float).unwrap(), "float"), Some(float));
    }

    #[test]
    fn strings_order(a in "\\PC{0,7}", b in "\\PC{0,7}", nul in "[a\0]{0,7}", other in "[a\0]{0,7}") {
        for (a, b) in [(&a, &b), (&nul, &other), (&a, &nul)] {
            if let (Some(left), Some(right)) = (short_string(a.as_bytes()), short_string(b.as_bytes())) {
                prop_assert_eq!(left.cmp(&right), a.cmp(b));
            }
        }
    }

    #[test]
    fn dates_order(a in 0u32..3_652_059, b in 0u32..3_652_059, ms in 0u64..86_400_000, zones in any::<[bool; 2]>()) {
        let (left, right) = (from_date(a, zones[0]).unwrap(), from_date(b, zones[1]).unwrap());
        if a != b {
            prop_assert_eq!(left.cmp(&right), a.cmp(&b));
        }
        let mut lexical = Lexical::new();
        prop_assert_eq!(id(lexical.write(left).unwrap(), "date"), Some(left));
        let at = |days: u32| u64::from(days) * 86_400_000 + ms;
        let (left, right) = (from_date_time(at(a), zones[0]).unwrap(), from_date_time(at(b), zones[1]).unwrap());
        if a != b {
            prop_assert_eq!(left.cmp(&right), a.cmp(&b));
        }
        prop_assert_eq!(id(lexical.write(left).unwrap(), "dateTime"), Some(left));
    }
}

/// A value of oxsdatatypes, for comparing without our code.
enum Value {
    Decimal(Decimal),
    Float(Float),
    Double(Double),
    Boolean(bool),
    String(String),
    Date(Date),
    DateTime(DateTime),
}

impl Value {
    fn parse(lexical: &str, datatype: &str) -> Option<Value> {
        Some(match datatype {
            "string" => Value::String(lexical.to_owned()),
            "double" => Value::Double(Double::from_str(lexical).ok()?),
            "float" => Value::Float(Float::from_str(lexical).ok()?),
            "boolean" => Value::Boolean(lexical == "true"),
            "date" => Value::Date(Date::from_str(lexical).ok()?),
            "dateTime" => Value::DateTime(DateTime::from_str(lexical).ok()?),
            _ => Value::Decimal(Decimal::from_str(lexical).ok()?),
        })
    }

    fn compare(&self, other: &Value) -> Option<Ordering> {
        use Value::*;
        match (self, other) {
            (Decimal(a), Decimal(b)) => a.partial_cmp(b),
            (Decimal(a), Float(b)) => nearest::<f32>(*a).partial_cmp(&f32::from(*b)),
            (Float(a), Decimal(b)) => f32::from(*a).partial_cmp(&nearest::<f32>(*b)),
            (Decimal(a), Double(b)) => nearest::<f64>(*a).partial_cmp(&f64::from(*b)),
            (Double(a), Decimal(b)) => f64::from(*a).partial_cmp(&nearest::<f64>(*b)),
            (Float(a), Float(b)) => a.partial_cmp(b),
            (Float(a), Double(b)) => oxsdatatypes::Double::from(*a).partial_cmp(b),
            (Double(a), Float(b)) => a.partial_cmp(&oxsdatatypes::Double::from(*b)),
            (Double(a), Double(b)) => a.partial_cmp(b),
            (Boolean(a), Boolean(b)) => a.partial_cmp(b),
            (String(a), String(b)) => a.partial_cmp(b),
            (Date(a), Date(b)) => a.partial_cmp(b),
            (DateTime(a), DateTime(b)) => a.partial_cmp(b),
            _ => None,
        }
    }

    fn constant(&self, id: Option<TermId>) -> Option<CompareValue<'_>> {
        Some(match self {
            Value::Decimal(value) => exact(*value),
            Value::Float(value) => CompareValue::Float((*value).into()),
            Value::Double(value) => CompareValue::Double((*value).into()),
            Value::Boolean(value) => CompareValue::Boolean(*value),
            Value::String(value) => CompareValue::String(value),
            Value::Date(_) | Value::DateTime(_) => Option::from(id?.inline_value()?)?,
        })
    }
}

/// The float or double nearest to the digits of a number.
fn nearest<T: FromStr<Err: std::fmt::Debug>>(value: Decimal) -> T {
    value.to_string().parse().unwrap()
}

/// The constant for a value of up to 18 digits after the point.
fn exact(value: Decimal) -> CompareValue<'static> {
    const UNITS_PER_MICRO: i128 = 1_000_000_000_000;
    let units = i128::from_be_bytes(value.to_be_bytes());
    CompareValue::Exact {
        micros: units.div_euclid(UNITS_PER_MICRO),
        above: units.rem_euclid(UNITS_PER_MICRO) != 0,
        float: nearest(value),
        double: nearest(value),
    }
}

fn small_values() -> impl Strategy<Value = (String, &'static str)> {
    let number = prop_oneof![-20i64..20, any::<i64>()];
    prop_oneof![
        (number.clone(), prop::sample::select(&DATATYPES[8..]))
            .prop_map(|(n, datatype)| (n.to_string(), datatype)),
        number.prop_map(|n| (n.to_string(), "integer")),
        "-?[0-9]{1,2}\\.[0-9]{1,3}".prop_map(|form| (form, "decimal")),
        "-?[0-9]{1,20}\\.[0-9]{5,18}".prop_map(|form| (form, "decimal")),
        (-30i64..30).prop_map(|n| (format!("{:E}", n as f64 / 8.0), "double")),
        any::<f64>().prop_map(|n| (format!("{n:E}"), "double")),
        (-30i64..30).prop_map(|n| (format!("{:E}", n as f32 / 8.0), "float")),
        (0u32..2).prop_map(|n| ((n == 1).to_string(), "boolean")),
        "[ab]{0,9}".prop_map(|form| (form, "string")),
        "2008-06-[12][0-9]Z?".prop_map(|form| (form, "date")),
        "2008-06-1[0-3]T[01][0-9]:00:00Z?".prop_map(|form| (form, "dateTime")),
    ]
}

/// Writes `1E0` as `1.0E0`.
fn canonical((form, datatype): (String, &'static str)) -> (String, &'static str) {
    match form.split_once('E') {
        Some((mantissa, exponent)) if !mantissa.contains('.') => {
            (format!("{mantissa}.0E{exponent}"), datatype)
        }
        _ => (form, datatype),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(3000) })]

    #[test]
    fn ranges_are_the_comparison(
        values in prop::collection::vec(small_values().prop_map(canonical), 20),
        constant in small_values().prop_map(canonical),
    ) {
        let constant_id = id(&constant.0, constant.1);
        let Some(right) = Value::parse(&constant.0, constant.1) else { return Ok(()) };
        let Some(constant) = right.constant(constant_id) else { return Ok(()) };
        for op in [CompareOp::Eq, CompareOp::Lt, CompareOp::Le, CompareOp::Gt, CompareOp::Ge] {
            let ranges = id_ranges_for_comparison(op, constant);
            let mut all: Vec<_> = ranges.exact.iter().chain(&ranges.check).collect();
            all.sort_by_key(|range| *range.start());
            prop_assert!(all.iter().all(|range| range.start() <= range.end()));
            prop_assert!(all.windows(2).all(|pair| pair[0].end() < pair[1].start()), "{:?}", all);
            for (lexical, datatype) in &values {
                let Some(id) = id(lexical, datatype) else { continue };
                let left = Value::parse(lexical, datatype).unwrap();
                let holds = left.compare(&right).is_some_and(|ordering| op.holds(ordering));
                let exact = ranges.exact.iter().any(|range| range.contains(&id.0));
                let check = ranges.check.iter().any(|range| range.contains(&id.0));
                let context = format!("{lexical} {datatype} {op:?} {constant:?} {ranges:?}");
                prop_assert!(holds || !exact, "not to be found: {}", context);
                prop_assert!(!holds || exact || check, "lost: {}", context);
                // Only dates of the other form may need a check by value.
                prop_assert!(!check || datatype.starts_with("date"), "exact is possible: {}", context);
            }
        }
    }
}
