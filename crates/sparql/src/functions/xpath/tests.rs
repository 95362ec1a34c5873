//! Patterns against what XML Schema and XPath say of each construct, and against sets of
//! characters computed the slow way.

use crate::functions::TextPattern;
use crate::value::{Terms, Value};

/// Whether a pattern matches; `None` for a pattern that is malformed.
fn matches(text: &str, pattern: &str, flags: &str) -> Option<bool> {
    let terms = Terms::for_test(1 << 20);
    let found = TextPattern::new(pattern, flags)?.matches(&Value::String(text.into()), &terms);
    Some(found.expect("no limit is met").text() == "true")
}

#[test]
fn patterns_of_other_dialects_are_malformed() {
    let malformed = [
        r"\b",
        r"\bab",
        r"\Ba",
        r"\x41",
        r"\u0041",
        r"\Aa",
        r"a\z",
        r"\<a",
        r"\Qa",
        r"\a",
        r"\f",
        r"\v",
        r"\0",
        r"\h",
        r"\R",
        r"\_",
        r"\/",
        "(?i)a",
        "(?i:a)",
        "(?=a)",
        "(?!a)",
        "(?<=a)b",
        "(?<n>a)",
        "(?P<n>a)",
        "(?>a)",
        "[[:alpha:]]",
        "[a&&[b]]x[",
        "a++",
        "a**",
        "a{2}{3}",
        "a???",
        "?a",
        "*",
        "+a",
        "{2}",
        "a{,3}",
        "a{3,2}",
        "a{x}",
        "a{}",
        "a{-1}",
        "a{2",
        "a}",
        "a]",
        "]",
        "[",
        "[]",
        "[^]",
        "[a",
        "(",
        ")",
        "(a",
        "a)",
        "(?:",
        "[z-a]",
        r"[a-\d]",
        r"[\d-z]x[",
        "[a-c-e]",
        "[a[b]]",
        "[a-[b]c]",
        "[a-[b]",
        "[a-[]]",
        r"\",
        r"[\]",
        r"\p",
        r"\pL",
        r"\p{}",
        r"\p{Xx}",
        r"\p{Greek}",
        r"\p{IsNowhere}",
        r"\p{Cs}",
        r"\p{L",
        r"\p{^L}",
        r"\1",
        r"(a\1)",
        r"\1(a)",
        r"(a)\2",
        r"[\1]",
        r"(a)[\1]",
    ];
    for pattern in malformed {
        assert_eq!(matches("a", pattern, ""), None, "{pattern}");
    }
    assert_eq!(matches("a", "a", "g"), None);
}

#[test]
fn constructs_mean_what_xpath_says() {
    let table: &[(&str, &str, &[&str], &[&str])] = &[
        // anchors without flags are those of the whole text
        ("^a$", "", &["a"], &["a\n", "\na", "b\na"]),
        ("^a$", "m", &["a", "b\na", "a\nb", "b\na\nb", "a\n"], &["ba", "a b"]),
        // a line feed at the very end begins no line
        ("^$", "m", &["", "\n\n", "a\n\nb"], &["a", "a\n", "a\nb"]),
        ("^", "m", &["", "a", "a\n", "\n"], &[]),
        ("a^b", "", &[], &["ab", "a^b"]),
        // the dot
        (r"^.$", "", &["a", "é", "𝄞", "\u{85}", "\u{2028}"], &["\n", "\r", "", "ab"]),
        (r"^.$", "s", &["a", "\n", "\r"], &["", "ab"]),
        // white space, digits, words
        (r"^\s$", "", &[" ", "\t", "\n", "\r"], &["\u{a0}", "\u{b}", "\u{c}", "\u{2003}", "a"]),
        (r"^\S$", "", &["\u{a0}", "\u{b}", "a"], &[" ", "\t", "\n", "\r"]),
        (r"^\d$", "", &["0", "9", "٣"], &["a", "½", "Ⅳ"]),
        (r"^\D$", "", &["a", "½"], &["0", "٣"]),
        (r"^\w$", "", &["a", "Z", "5", "é", "+", "$", "\u{301}"], &["_", "-", ".", " ", "\u{0}", "\u{e000}"]),
        (r"^\W$", "", &["_", "-", ".", " "], &["a", "5", "+"]),
        // names
        (
            r"^\i$",
            "",
            &["a", "_", ":", "é", "\u{200c}", "𐀀"],
            &["1", "-", ".", "\u{b7}", "\u{d7}", "\u{37e}"],
        ),
        (r"^\c$", "", &["a", "1", "-", ".", "\u{b7}", "\u{300}", ":"], &[" ", "\u{d7}", "+", "/"]),
        (r"^\I\C$", "", &["1 ", "-+"], &["a ", "1a"]),
        (r"^[\i-[:]][\c-[:]]*$", "", &["a", "_b1", "é-"], &["a:b", ":a", "1a"]),
        // categories and blocks
        (r"^\p{Lu}$", "", &["A", "É"], &["a", "1"]),
        (r"^\P{Lu}$", "", &["a", "1"], &["A"]),
        (r"^\p{L}\p{Nd}\p{Sc}$", "", &["a1€"], &["11€"]),
        (r"^\p{IsBasicLatin}+$", "", &["ab\u{7f}"], &["é", ""]),
        (r"^\P{IsBasicLatin}+$", "", &["é"], &["a"]),
        (r"^\p{IsGreek}\p{IsGreekandCoptic}$", "", &["αβ"], &["ab"]),
        (r"^\p{IsLatin-1Supplement}$", "", &["é", "ÿ"], &["e", "Ā"]),
        (r"^[\p{IsCyrillic}\d]+$", "", &["Ж1"], &["Z1"]),
        (r"^[^\p{IsCyrillic}\d]+$", "", &["Z"], &["Ж", "1"]),
        // classes
        (r"^[a-c]$", "", &["a", "b", "c"], &["d", "-"]),
        (r"^[-a]$", "", &["-", "a"], &["b"]),
        (r"^[a-]$", "", &["-", "a"], &["b"]),
        (r"^[^-a]$", "", &["b", "^"], &["-", "a"]),
        (r"^[a^]$", "", &["^", "a"], &["b"]),
        (r"^[\^\-\]\[\\]$", "", &["^", "-", "]", "[", "\\"], &["a"]),
        (r"^[\n\t]$", "", &["\n", "\t"], &["n", "t"]),
        (r"^[.*+?(){}|$&~#]$", "", &[".", "*", "$", "&", "~", "#", "|"], &["a", "^"]),
        (r"^[a-z-[aeiou]]+$", "", &["xyz"], &["xaz", "-"]),
        (r"^[^a-z-[0-9]]$", "", &["A", "-", "é"], &["a", "5"]),
        (r"^[a-z-[b-y-[m]]]+$", "", &["amz"], &["b", "n"]),
        (r"^[\w-[\d]]$", "", &["a"], &["1", "-"]),
        (r"^[a--[a]]$", "", &["-"], &["a"]),
        // quantifiers
        ("^a{2}$", "", &["aa"], &["a", "aaa"]),
        ("^a{2,}$", "", &["aa", "aaa"], &["a"]),
        ("^a{1,2}?$", "", &["a", "aa"], &["", "aaa"]),
        ("^a{0}b$", "", &["b"], &["ab"]),
        ("^(?:ab|c)*$", "", &["", "abc", "cab"], &["a"]),
        ("^(|a)b$", "", &["b", "ab"], &["aab"]),
        // back-references
        (r"^(a|b)\1$", "", &["aa", "bb"], &["ab", "a"]),
        (r"^(a)|b\1$", "", &["a", "b"], &["c"]),
        (r"^(a*)b\1$", "", &["b", "aba"], &["ab"]),
        (r"^((.)(.))\3\2\1$", "", &["abbaab"], &["ababab"]),
        (r"^(.)(.)(.)(.)(.)(.)(.)(.)(.)(.)\10$", "", &["abcdefghijj"], &["abcdefghija0"]),
        (r"^(a)\10$", "", &["aa0"], &["aa"]),
        (r"^(a)\1$", "i", &["aA", "Aa"], &["ab"]),
        // case
        ("^a[b-d]$", "i", &["AB", "aD"], &["AE"]),
        ("^k$", "i", &["k", "K", "\u{212a}"], &["c"]),
        ("^[^a]$", "i", &["b"], &["a", "A"]),
        ("^[A-Z-[IO]]$", "i", &["A", "b"], &["i", "I", "o"]),
        (r"^\p{Lu}$", "i", &["A"], &["a"]),
        (r"^[\p{Lu}x]$", "i", &["A", "x", "X"], &["a"]),
        (r"^[^\p{Lu}x]$", "i", &["a"], &["A", "x", "X"]),
        // white space in patterns
        ("^ a\tb\n$", "x", &["ab"], &[" ab"]),
        ("^a #b$", "x", &["a#b"], &["a"]),
        ("^[a b]$", "x", &["a", " ", "b"], &["\t"]),
        (r"^\p{ L u }a { 2 } $", "x", &["Baa"], &["baa"]),
        (r"^a\ n$", "x", &["a\n"], &["an"]),
        // literal
        ("a.[", "q", &["xa.[y"], &["ab["]),
        ("A.", "qi", &["a."], &["ab"]),
        ("a b", "qx", &["a b"], &["ab"]),
    ];
    for (pattern, flags, good, bad) in table {
        for text in *good {
            assert_eq!(matches(text, pattern, flags), Some(true), "{text:?} {pattern} {flags}");
        }
        for text in *bad {
            assert_ne!(matches(text, pattern, flags), Some(true), "{text:?} {pattern} {flags}");
        }
    }
}

/// Nested subtractions of random groups, against membership told by the definition.
#[test]
fn random_classes_hold_what_they_say() {
    let mut random = snowmelt_base::test_seed(1);
    let mut below = |n: usize| {
        snowmelt_base::random::lcg(&mut random);
        (random >> 33) as usize % n
    };
    let texts: Vec<char> = ('!'..='~').chain("éßſK€Ⅳ٣ \n".chars()).collect();
    for _ in 0..300 {
        let mut pattern = String::new();
        let mut tests: Vec<(bool, Vec<(char, char)>)> = Vec::new();
        let depth = 1 + below(3);
        for level in 0..depth {
            pattern.push_str(if level > 0 { "-[" } else { "[" });
            let is_negated = below(3) == 0;
            pattern.push_str(if is_negated { "^" } else { "" });
            let mut ranges = Vec::new();
            for _ in 0..1 + below(3) {
                let (a, b) = (texts[below(texts.len())], texts[below(texts.len())]);
                let (a, b) = (a.min(b), a.max(b));
                for (i, c) in [a, b].into_iter().enumerate() {
                    pattern.push_str(if i > 0 { "-" } else { "" });
                    pattern.push_str(if r"\[]-^".contains(c) { r"\" } else { "" });
                    pattern.push(c);
                }
                ranges.push((a, b));
            }
            tests.push((is_negated, ranges));
        }
        pattern.push_str(&"]".repeat(depth));
        for &c in &texts {
            let inside = tests.iter().rev().fold(false, |subtracted, (is_negated, ranges)| {
                (ranges.iter().any(|(a, b)| (*a..=*b).contains(&c)) != *is_negated) && !subtracted
            });
            let found = matches(&c.to_string(), &pattern, "");
            assert_eq!(found, Some(inside), "{c:?} {pattern}");
        }
    }
}

#[test]
fn depth_and_length_are_bounded() {
    let nested = |n: usize| "(".repeat(n) + "a" + &")".repeat(n);
    assert_eq!(matches("a", &nested(100), ""), Some(true));
    assert_eq!(matches("a", &nested(1_000_000), ""), None);
    assert_eq!(matches("a", &nested(30_000), ""), None);
    let subtracted = |n: usize| "[a".to_owned() + &"-[b".repeat(n) + &"]".repeat(n + 1);
    assert_eq!(matches("a", &subtracted(10), ""), Some(true));
    assert_eq!(matches("a", &subtracted(10_000), ""), None);
    assert_eq!(matches("a", &r"\p{L}".repeat(10_000), ""), None);
    assert_eq!(matches("a", "a{1000}{1000}", ""), None);
    assert_eq!(matches("a", "(?:(?:a{1000}){1000}){1000}", ""), None);
    assert_eq!(matches("a", "a{99999999999}", ""), None);
    assert_eq!(matches("a", r"(a)((?:(?:\1{1000}){1000}){1000})", ""), Some(false));
}
