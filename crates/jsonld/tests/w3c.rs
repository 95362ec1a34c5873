//! The W3C's tests of JSON-LD to RDF, but for those of version 1.0 alone and of generalised RDF.

use std::convert::Infallible;
use std::fs;
use std::path::{Path, PathBuf};

use oxrdf::Dataset;
use oxrdf::dataset::CanonicalizationAlgorithm;
use serde_json::Value;
use snowmelt_jsonld::{Contexts, Direction, OddNames, Options, ReadError, Told, read};

const BASE: &str = "https://w3c.github.io/json-ld-api/tests/";

/// Tests that do not hold, each with its reason.
const EXCEPTIONS: [(&str, &str); 2] = [
    ("#ter56", "its input is not part of this suite"),
    ("#tli12", "an @base that is no IRI is an error here: what is relative to it would be lost silently"),
];

fn shared() -> PathBuf {
    let folder = std::env::var_os("SNOWMELT_SHARED").map(PathBuf::from);
    folder.unwrap_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared"))
}

/// The tests as a folder of contexts: the address of each is a path in it.
fn contexts(suite: &Path) -> (tempfile::TempDir, Contexts) {
    let folder = tempfile::tempdir().expect("a folder for the test");
    let host = folder.path().join("w3c.github.io/json-ld-api");
    fs::create_dir_all(&host).expect("a folder in it");
    std::os::unix::fs::symlink(suite.canonicalize().expect("the suite is there"), host.join("tests"))
        .expect("a link in it");
    let contexts = Contexts::from_args(&[folder.path().display().to_string()]).expect("a folder is given");
    (folder, contexts)
}

fn quads(text: &[u8], options: &Options) -> Result<Dataset, ReadError<Infallible>> {
    let mut quads = Dataset::new();
    read(
        text,
        options,
        || Ok(()),
        |told| {
            if let Told::Quad(quad) = told {
                quads.insert(&quad);
            }
            Ok(())
        },
    )?;
    Ok(quads)
}

fn expected(path: &Path) -> Result<Dataset, String> {
    let text = fs::read(path).map_err(|e| format!("{}: {e}", path.display()))?;
    let parser = oxttl::NQuadsParser::new();
    parser.for_slice(&text).collect::<Result<_, _>>().map_err(|e| format!("{}: {e}", path.display()))
}

fn run(suite: &Path, test: &Value, contexts: &Contexts) -> Result<(), String> {
    let text = |name: &str| test[name].as_str();
    let option = |name: &str| test["option"][name].as_str();
    let input = text("input").ok_or("no input")?;
    let options = Options {
        base: Some(option("base").map_or_else(|| format!("{BASE}{input}"), str::to_owned)),
        context: option("expandContext").map(|path| format!("{BASE}{path}")),
        contexts: contexts.clone(),
        direction: match option("rdfDirection") {
            Some("i18n-datatype") => Direction::Datatype,
            Some("compound-literal") => Direction::Compound,
            _ => Direction::Dropped,
        },
        odd: OddNames::LeftOut,
    };
    let input = fs::read(suite.join(input)).map_err(|e| format!("{input}: {e}"))?;
    let found = quads(&input, &options);
    if let Some(code) = text("expectErrorCode") {
        return match found {
            Err(ReadError::Document(fault)) if fault.code == code => Ok(()),
            Err(error) => Err(format!("refused with {error}, expected {code}")),
            Ok(_) => Err(format!("read, expected {code}")),
        };
    }
    let mut found = found.map_err(|error| error.to_string())?;
    let Some(path) = text("expect") else { return Ok(()) };
    let mut expected = expected(&suite.join(path))?;
    found.canonicalize(CanonicalizationAlgorithm::Unstable);
    expected.canonicalize(CanonicalizationAlgorithm::Unstable);
    if found == expected { Ok(()) } else { Err(format!("read\n{found}expected\n{expected}")) }
}

#[test]
fn documents_become_the_expected_quads() {
    let suite = shared().join("w3c/json-ld");
    let manifest = suite.join("toRdf-manifest.jsonld");
    let Ok(text) = fs::read(&manifest) else {
        eprintln!("skipped: {} is not there", manifest.display());
        return;
    };
    let manifest: Value = serde_json::from_slice(&text).expect("the manifest is JSON");
    let (_folder, contexts) = contexts(&suite);
    let (mut tried, mut wrong, mut left_out) = (0, Vec::new(), 0);
    for test in manifest["sequence"].as_array().expect("the manifest is a list") {
        let option = &test["option"];
        let is_of_1_0 = option["specVersion"] == "json-ld-1.0" || option["processingMode"] == "json-ld-1.0";
        let id = test["@id"].as_str().expect("a test has a name");
        if is_of_1_0 || option["produceGeneralizedRdf"] == true || EXCEPTIONS.iter().any(|(e, _)| *e == id) {
            left_out += 1;
            continue;
        }
        tried += 1;
        if let Err(message) = run(&suite, test, &contexts) {
            wrong.push(format!("{id} {}: {message}", test["name"]));
        }
    }
    eprintln!("{tried} tests, {left_out} left out");
    assert!(wrong.is_empty(), "{} of {tried}:\n{}", wrong.len(), wrong.join("\n"));
    assert!(tried > 440, "{tried}");
}
