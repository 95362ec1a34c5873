//! Base IRIs with segments `.` or `..`.
//!
//! References are resolved by a library, which takes dot segments out of the reference alone. RFC
//! 3986 takes them out of the path that reference and base make together (5.2.2). So a base has
//! none left when something is resolved against it: 5.2.1 allows that. It shows in `<>`, `<?query>`
//! and `<#fragment>`, which have the path of the base.

/// A base IRI without dot segments.
#[must_use]
pub fn plain_base(base: &str) -> String {
    let Some(scheme) = base.find(':') else { return base.to_owned() };
    let rest = &base[scheme + 1..];
    let end_of = |from: usize, signs: &[char]| rest[from..].find(signs).map_or(rest.len(), |at| from + at);
    let path = if rest.starts_with("//") { end_of(2, &['/', '?', '#']) } else { 0 };
    let path_end = end_of(path, &['?', '#']);
    if !has_dot_segments(&rest[path..path_end]) {
        return base.to_owned();
    }
    let plain = without_dot_segments(&rest[path..path_end]);
    format!("{}:{}{plain}{}", &base[..scheme], &rest[..path], &rest[path_end..])
}

/// Whether the path of an IRI has segments `.` or `..`.
#[must_use]
pub fn has_dot_segments(path: &str) -> bool {
    path.contains("/.") && path.split('/').any(|segment| matches!(segment, "." | ".."))
}

/// The path of an IRI without its segments `.` and `..` (RFC 3986, 5.2.4).
#[must_use]
pub fn without_dot_segments(path: &str) -> String {
    let (mut open, mut out) = (path, String::with_capacity(path.len()));
    while !open.is_empty() {
        if let Some(rest) = open.strip_prefix("../").or_else(|| open.strip_prefix("./")) {
            open = rest;
        } else if open.starts_with("/./") {
            open = &open["/.".len()..];
        } else if open.starts_with("/../") || open == "/.." {
            open = if open == "/.." { "/" } else { &open["/..".len()..] };
            out.truncate(out.rfind('/').unwrap_or(0));
        } else if open == "/." {
            open = "/";
        } else if matches!(open, "." | "..") {
            break;
        } else {
            let end = open.char_indices().skip(1).find(|c| c.1 == '/').map_or(open.len(), |c| c.0);
            out.push_str(&open[..end]);
            open = &open[end..];
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dot_segments_go() {
        for (with, without) in [
            ("/a/b/c/./../../g", "/a/g"),
            ("mid/content=5/../6", "mid/6"),
            ("/b/../c", "/c"),
            ("/../../c", "/c"),
            ("/b/..", "/"),
            ("/b/c/../..", "/"),
            ("/b/.", "/b/"),
            ("/b//../c", "/b/c"),
            ("/..b/.c/...", "/..b/.c/..."),
            ("../é/./f", "é/f"),
            ("..", ""),
        ] {
            assert_eq!(without_dot_segments(with), without, "{with}");
        }
        assert!(has_dot_segments("/a/..") && !has_dot_segments("/a/..b/.c"));
    }

    #[test]
    fn a_base_keeps_what_is_no_path() {
        for (base, plain) in [
            ("http://a/bb/ccc/../d;p?q/../r#s/./t", "http://a/bb/d;p?q/../r#s/./t"),
            ("http://a.b/./c", "http://a.b/c"),
            ("http://a.b/../../c", "http://a.b/c"),
            ("http://..a?b/../c", "http://..a?b/../c"),
            ("file:///a/./b", "file:///a/b"),
            ("urn:a/./b", "urn:a/b"),
            ("http://a/b/c", "http://a/b/c"),
            ("no scheme/../", "no scheme/../"),
        ] {
            assert_eq!(plain_base(base), plain);
        }
    }
}
