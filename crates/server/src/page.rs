//! The page for people: a form that sends a query and shows its answer, without scripts.

use snowmelt_graph::Namespaces;

/// The page of a dataset below `mount`; its form sends to `/sparql` there, `endpoint` is shown.
/// The query that it begins with declares some of the prefixes.
pub fn form(mount: &str, endpoint: &str, prefixes: &Namespaces) -> String {
    /// Prefixes, each a line of the query.
    const MOST: usize = 12;
    let escaped = |text: &str| text.replace('&', "&amp;").replace('<', "&lt;").replace('"', "&quot;");
    let declared = prefixes.iter().take(MOST).map(|(name, iri)| format!("PREFIX {name}: <{iri}>\n"));
    let form = FORM.replace("{mount}", mount).replace("{endpoint}", &escaped(endpoint));
    form.replace("{prefixes}", &escaped(&declared.collect::<String>()))
}

const FORM: &str = r#"<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>Snowmelt</title>
<style>
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60em; margin: 2em auto; padding: 0 1em; color: #1d2733; background: #fff; }
textarea { width: 100%; box-sizing: border-box; font: 15px/1.5 ui-monospace, monospace; padding: .6em; border: 1px solid #8a99a8; border-radius: 4px; }
button, select { font: inherit; padding: .3em .8em; }
code { font: 15px ui-monospace, monospace; }
@media (prefers-color-scheme: dark) { body { color: #dde5ec; background: #14191f; } textarea { color: inherit; background: #1d252d; } a { color: #7fb8e8; } }
</style>
<h1>Snowmelt</h1>
<form action="{mount}/sparql" method="get">
<p><label for="query">A SPARQL query for <code>{endpoint}</code>:</label>
<textarea id="query" name="query" rows="12" autofocus>{prefixes}SELECT * WHERE {
  ?subject ?predicate ?object
}
LIMIT 20</textarea>
<p><button>Run</button>
<label>as <select name="format">
<option value="html">a table</option>
<option value="json">JSON</option>
<option value="xml">XML</option>
<option value="csv">CSV</option>
<option value="tsv">TSV</option>
</select></label>
<label>or <select name="explain">
<option value="none">its answer</option>
<option value="plan">its plan</option>
<option value="analyze">what it does</option>
</select></label>
</form>
<p><a href="{mount}/sparql?format=ttl">What is stored</a> · <a href="{mount}/stats?format=table">What was read</a> · <a href="/requests">What runs</a> · <a href="/metrics">Metrics</a>
</html>
"#;

#[cfg(test)]
mod tests {
    #[test]
    fn an_address_is_shown_and_no_more() {
        let mut prefixes = snowmelt_graph::Namespaces::default();
        prefixes.set("e", "http://e/?a&b#").unwrap();
        let page = super::form("", "http://h/<script>\"&", &prefixes);
        assert!(page.contains("autofocus>PREFIX e: &lt;http://e/?a&amp;b#>\nSELECT *"), "{page}");
        assert!(page.contains("http://h/&lt;script>&quot;&amp;</code>"), "{page}");
    }
}
