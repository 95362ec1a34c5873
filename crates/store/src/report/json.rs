//! Samples as JSON: their names say where each stands.
//!
//! | name | labels | JSON |
//! |---|---|---|
//! | `pool.frames` | | `{"pool": {"frames": …}}` |
//! | `trees[].reads` | tree = psog | `{"trees": [{"tree": "psog", "reads": …}]}` |
//! | `trees[].rules.*.used` | tree = psog, rule = scan | in it: `"rules": {"scan": {"used": …}}` |

use std::borrow::Cow;

use serde_json::{Map, Value};

use super::sample::{Sample, SampleValue};

/// See the head of the file. Entries of lists are in the order of the samples.
pub fn as_json(samples: &[Sample]) -> Value {
    let mut root = Map::new();
    for sample in samples {
        put(&mut root, &sample.name, &sample.labels, value(&sample.value));
    }
    Value::Object(root)
}

fn put(at: &mut Map<String, Value>, name: &str, labels: &[(Cow<'static, str>, String)], value: Value) {
    let Some((first, rest)) = name.split_once('.') else {
        at.insert(name.to_owned(), value);
        return;
    };
    match (first.strip_suffix("[]"), labels.split_first()) {
        (Some(list), Some((label, labels))) => put(entry(at, list, label), rest, labels, value),
        (None, Some((label, labels))) if first == "*" => put(member(at, &label.1), rest, labels, value),
        _ => put(member(at, first), rest, labels, value),
    }
}

/// The member of that name, made when there is none.
fn member<'a>(at: &'a mut Map<String, Value>, name: &str) -> &'a mut Map<String, Value> {
    let member = at.entry(name).or_insert_with(|| Value::Object(Map::new()));
    member.as_object_mut().expect("a name is that of a value or of an object")
}

/// The entry of a list with that label, made when there is none.
fn entry<'a>(
    at: &'a mut Map<String, Value>,
    list: &str,
    (key, of): &(Cow<'static, str>, String),
) -> &'a mut Map<String, Value> {
    let list = at.entry(list).or_insert_with(|| Value::Array(Vec::new()));
    let list = list.as_array_mut().expect("a name with [] is that of a list");
    let is_it = |entry: &Value| entry.get(key.as_ref()).and_then(Value::as_str) == Some(of);
    let at = list.iter().position(is_it).unwrap_or_else(|| {
        let label = (key.to_string(), Value::String(of.clone()));
        list.push(Value::Object(Map::from_iter([label])));
        list.len() - 1
    });
    list[at].as_object_mut().expect("entries are objects")
}

fn value(value: &SampleValue) -> Value {
    match value {
        SampleValue::Whole(n) => Value::from(*n),
        SampleValue::Real(x) => Value::from(*x),
        SampleValue::Text(text) => Value::from(text.as_str()),
        SampleValue::Absent => Value::Null,
    }
}

#[cfg(test)]
mod tests {
    use super::super::sample::Samples;
    use super::*;

    #[test]
    fn names_become_objects_and_lists() {
        let mut out = Samples::default();
        out.level("pool.frames", "frames", 9);
        for (tree, reads) in [("psog", 1), ("sp", 2)] {
            out.labelled("tree", tree, |out| {
                out.count("trees[].reads", "pages", reads);
                out.labelled("rule", "scan", |out| out.count("trees[].rules.*.used", "pages", 3));
            });
        }
        out.level("journal.poisoned", "text", None::<String>);
        let expected = serde_json::json!({
            "pool": {"frames": 9},
            "trees": [
                {"tree": "psog", "reads": 1, "rules": {"scan": {"used": 3}}},
                {"tree": "sp", "reads": 2, "rules": {"scan": {"used": 3}}},
            ],
            "journal": {"poisoned": null},
        });
        assert_eq!(as_json(&out.into_list()), expected);
    }
}
