//! Documents that are deep, long or wrong: they are read in linear work, or refused with a place.

use std::cell::Cell;

use oxrdf::Quad;
use snowmelt_jsonld::{Contexts, Fault, Options, ReadError, Told, read};

fn quads(text: &str) -> Result<Vec<Quad>, Fault> {
    let mut quads = Vec::new();
    let options = Options { base: Some("http://example.org/doc".to_owned()), ..Options::default() };
    let read = read(
        text.as_bytes(),
        &options,
        || Ok::<_, ()>(()),
        |told| {
            if let Told::Quad(quad) = told {
                quads.push(quad);
            }
            Ok(())
        },
    );
    match read {
        Ok(()) => Ok(quads),
        Err(ReadError::Document(fault)) => Err(fault),
        Err(other) => panic!("{other:?}"),
    }
}

/// Looks that reading a text takes: a measure of its work.
fn looks(text: &str) -> usize {
    let looks = Cell::new(0);
    let look = || {
        looks.set(looks.get() + 1);
        Ok::<_, ()>(())
    };
    read(text.as_bytes(), &Options::default(), look, |_| Ok(())).unwrap();
    looks.get()
}

/// A context of `n` terms that each need the next.
fn chain(n: usize, definition: impl Fn(usize) -> String) -> String {
    let terms: Vec<String> = (0..n).map(|i| format!("\"t{i}\": {}", definition(i + 1))).collect();
    format!(
        "{{\"@context\": {{{}, \"t{n}\": \"http://e/\"}}, \"@id\": \"http://e/s\", \"t0\": \"x\"}}",
        terms.join(", ")
    )
}

#[test]
fn terms_may_depend_on_each_other_however_long_the_chain() {
    let n = 100_000;
    let found = quads(&chain(n, |next| format!("\"t{next}\""))).unwrap();
    assert_eq!(found[0].predicate.as_str(), "http://e/");
    let found = quads(&chain(n, |next| format!("{{\"@id\": \"t{next}\"}}"))).unwrap();
    assert_eq!(found[0].predicate.as_str(), "http://e/");
    let typed = chain(n, |next| format!("{{\"@id\": \"http://e/p{next}\", \"@type\": \"t{next}\"}}"));
    assert_eq!(quads(&typed).unwrap()[0].predicate.as_str(), "http://e/p1");
    let found = quads(&chain(1000, |next| format!("\"t{next}:a/\""))).unwrap();
    assert_eq!(found[0].predicate.as_str().len(), "http://e/".len() + 2000);
}

/// A small document cannot stand for large definitions.
#[test]
fn definitions_are_bounded_in_sum() {
    let fault = quads(&chain(20_000, |next| format!("\"t{next}:a/\""))).unwrap_err();
    assert_eq!(fault.code, "limit");
    let terms: Vec<String> = (0..5000).map(|i| format!("\"t{i}\": \"p:{i}\"")).collect();
    let prefix = format!("http://e/{}/", "x".repeat(10_000));
    let fault =
        quads(&format!("{{\"@context\": {{\"p\": \"{prefix}\", {}}}}}", terms.join(", "))).unwrap_err();
    assert_eq!(fault.code, "limit");
    // definitions that are no longer in use do not count
    let node = format!("{{\"@context\": {{\"p\": \"{prefix}\", {}}}}}", terms[..500].join(", "));
    quads(&format!("[{}]", vec![node; 20].join(", "))).unwrap();
}

#[test]
fn circles_are_found() {
    for terms in [
        "\"a\": \"a:b\"",
        "\"a\": \"b\", \"b\": \"a\"",
        "\"a\": {\"@id\": \"b:x\"}, \"b\": \"c\", \"c\": \"a:\"",
    ] {
        let fault = quads(&format!("{{\"@context\": {{{terms}}}}}")).unwrap_err();
        assert_eq!(fault.code, "cyclic IRI mapping", "{terms}");
    }
}

#[test]
fn depth_is_bounded() {
    let nested = |n: usize| format!("{}{}", "[".repeat(n), "]".repeat(n));
    assert!(quads(&nested(256)).is_ok());
    assert_eq!(quads(&nested(257)).unwrap_err().code, "limit");
    assert_eq!(quads(&nested(1_000_000)).unwrap_err().code, "limit");
    let inner = |n: usize| format!("{}1{}", "{\"http://e/p\":".repeat(n), "}".repeat(n));
    assert_eq!(quads(&inner(256)).unwrap().len(), 256);
    let contexts = |n: usize| {
        format!(
            "{}{{}}{}",
            "{\"@context\":{\"t\":{\"@id\":\"http://e/\",\"@context\":".repeat(n),
            "}}}".repeat(n)
        )
    };
    assert_eq!(quads(&contexts(300)).unwrap_err().code, "limit");
}

/// A large context is worked out once, however many nodes it is in force for.
#[test]
fn contexts_cost_what_they_hold_once() {
    let document = |terms: usize, nodes: usize| {
        let terms: Vec<String> = (0..terms).map(|i| format!("\"t{i}\": \"http://e/{i}\"")).collect();
        let node = "{\"a\": {\"b\": 1}, \"@type\": \"T\"}";
        let nodes = vec![node; nodes].join(", ");
        format!(
            "{{\"@context\": {{\"a\": {{\"@id\": \"http://e/a\", \"@context\": {{{terms}}}}}, \"b\": \"http://e/b\", \
             \"T\": {{\"@id\": \"http://e/T\", \"@context\": {{{terms}}}}}}}, \"@graph\": [{nodes}]}}",
            terms = terms.join(", ")
        )
    };
    let (few, many) = (looks(&document(2000, 10)), looks(&document(2000, 1000)));
    assert!(many < few + 10 * 1000, "{few} looks for 10 nodes, {many} for 1000");
    // and one small context over a large one copies only the small one
    let layered = |nodes: usize| {
        let terms: Vec<String> = (0..2000).map(|i| format!("\"t{i}\": \"http://e/{i}\"")).collect();
        let node = "{\"@context\": {\"x\": \"http://e/x\"}, \"x\": 1}";
        let nodes = vec![node; nodes].join(", ");
        format!("{{\"@context\": {{{}}}, \"@graph\": [{nodes}]}}", terms.join(", "))
    };
    let (few, many) = (looks(&layered(10)), looks(&layered(1000)));
    assert!(many < few + 10 * 1000, "{few} looks for 10 nodes, {many} for 1000");
}

#[test]
fn faults_have_their_place() {
    let fault = quads("{\n  \"@context\": {\n    \"@base\": \"http://a b/\"\n  }\n}").unwrap_err();
    assert_eq!((fault.code, fault.line), ("invalid base IRI", 3));
    let fault = quads("{\n\"@id\": 5}").unwrap_err();
    assert_eq!((fault.code, fault.line), ("invalid @id value", 2));
    let fault = quads("{\n\"a\": tru }").unwrap_err();
    assert_eq!((fault.code, fault.line), ("syntax", 2));
    let fault = quads("{\"@context\": \"https://example.org/unknown\"}").unwrap_err();
    assert_eq!(fault.code, "loading remote context failed");
    assert!(fault.message.contains("the context https://example.org/unknown is"), "{}", fault.message);
    assert!(fault.is_of_remote_context());
}

#[test]
fn a_fault_in_a_named_context_names_it() {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), "{\"@context\": {\n\"a\": {\"@id\": 1}}}").unwrap();
    let argument = format!("https://example.org/c={}", file.path().display());
    let options = Options { contexts: Contexts::from_args(&[argument]).unwrap(), ..Options::default() };
    let text = "{\"@context\": \"https://example.org/c\"}";
    let error = read(text.as_bytes(), &options, || Ok::<_, ()>(()), |_| Ok(())).unwrap_err();
    let ReadError::Document(fault) = error else { panic!("{error:?}") };
    assert_eq!((fault.code, fault.line), ("invalid IRI mapping", 2));
    assert_eq!(fault.context.as_deref(), Some("https://example.org/c"));
    assert!(fault.to_string().contains("https://example.org/c"), "{fault}");
}

#[test]
fn the_caller_can_end_it() {
    let text = format!("[{}1]", "{\"http://e/p\": 1},".repeat(10_000));
    let read = read(text.as_bytes(), &Options::default(), || Err("enough"), |_| Ok(()));
    assert!(matches!(read, Err(ReadError::Caller("enough"))));
    let mut taken = 0;
    let read = snowmelt_jsonld::read(
        text.as_bytes(),
        &Options::default(),
        || Ok(()),
        |_| {
            taken += 1;
            if taken < 5 { Ok(()) } else { Err("enough") }
        },
    );
    assert!(matches!(read, Err(ReadError::Caller("enough"))));
    assert_eq!(taken, 5);
}

/// A few letters that stand for a long name, in each place that can have one, many times.
#[test]
fn a_small_document_does_not_stand_for_large_nodes() {
    let long = "x".repeat(50_000);
    let many = |one: &dyn Fn(usize) -> String| (0..2000).map(one).collect::<Vec<_>>().join(", ");
    let vocabulary = format!("\"@vocab\": \"http://e/{long}\"");
    let term = |definition: &str| format!("\"@vocab\": \"http://e/\", \"t\": {definition}");
    let base = format!("\"@base\": \"http://e/{long}/\", \"@vocab\": \"http://e/\"");
    let documents = [
        ("properties", &vocabulary, many(&|n| format!("{{\"p{n}\": 1}}"))),
        ("properties of one", &vocabulary, format!("{{{}}}", many(&|n| format!("\"p{n}\": 1")))),
        ("types", &vocabulary, format!("{{\"@type\": [{}]}}", many(&|n| format!("\"T{n}\"")))),
        ("ids", &base, many(&|n| format!("{{\"@id\": \"{n}\", \"p\": 1}}"))),
        (
            "references",
            &format!("{base}, \"t\": {{\"@type\": \"@id\"}}"),
            format!("{{\"t\": [{}]}}", many(&|n| format!("\"{n}\""))),
        ),
        (
            "datatypes",
            &term(&format!("{{\"@type\": \"http://e/{long}\"}}")),
            format!("{{\"t\": [{}]}}", many(&|n| format!("\"{n}\""))),
        ),
        (
            "ids of a map",
            &format!("{base}, \"t\": {{\"@container\": \"@id\"}}"),
            format!("{{\"t\": {{{}}}}}", many(&|n| format!("\"{n}\": {{\"p\": 1}}"))),
        ),
        (
            "types of a map",
            &format!("{vocabulary}, \"t\": {{\"@id\": \"http://e/t\", \"@container\": \"@type\"}}"),
            format!("{{\"t\": {{{}}}}}", many(&|n| format!("\"{n}\": {{\"@id\": \"http://e/{n}\"}}"))),
        ),
    ];
    for (name, context, nodes) in documents {
        let text = format!("{{\"@context\": {{{context}}}, \"@graph\": [{nodes}]}}");
        let fault = quads(&text).expect_err(name);
        assert_eq!(fault.code, "limit", "{name}: {fault}");
        // some of them are what they are
        let few = format!("{{\"@context\": {{{context}}}, \"@graph\": [{{\"@id\": \"s\", \"p\": 1}}]}}");
        assert_eq!(quads(&few).unwrap().len(), 1, "{name}");
    }
    // elements of an outermost list are read one after the other
    let apart =
        (0..400).map(|n| format!("{{\"@context\": {{{vocabulary}}}, \"p{n}\": 1}}")).collect::<Vec<_>>();
    assert_eq!(quads(&format!("[{}]", apart.join(", "))).unwrap().len(), 400);
}
