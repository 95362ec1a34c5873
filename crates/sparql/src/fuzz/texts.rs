//! Random texts over the whole grammar: bytes decide what comes next, so that a fuzzer can steer.
//!
//! Whatever the bytes are, the text has at most [`MOST_BYTES`] and a few more to close what is
//! open. Constructs are put around each other by loops, up to 255 times at once, so that texts
//! reach every limit on depth and length.

/// The longest text, but for its end.
const MOST_BYTES: usize = 10 << 10;

/// Levels of constructs chosen one by one.
const LEVELS: usize = 24;

/// A query made of bytes.
pub(super) fn query(data: &[u8]) -> String {
    let mut maker = Maker { data: data.iter(), out: String::new() };
    match maker.pick(8) {
        0 => maker.around("ASK ", "", |m| m.group(0)),
        1 => maker.around("CONSTRUCT { ?a ?b ?c . _:x <e:p> [] } WHERE ", "", |m| m.group(0)),
        2 => maker.around("DESCRIBE ?a <e:a> WHERE ", " LIMIT 3", |m| m.group(0)),
        _ => maker.select(0),
    }
    maker.out
}

/// An update made of bytes.
pub(super) fn update(data: &[u8]) -> String {
    let mut maker = Maker { data: data.iter(), out: String::new() };
    for _ in 0..1 + maker.pick(4) {
        match maker.pick(5) {
            0 => maker.around("INSERT DATA { <e:n> <e:q> ", " } ; ", |m| m.list(0, true)),
            1 => maker.around("DELETE WHERE { ?a <e:q> ", " } ; ", |m| m.list(0, true)),
            2 => {
                maker.around("WITH <e:g> DELETE { ?a <e:q> ?b } INSERT { ?b <e:q> ?a } WHERE ", " ; ", |m| {
                    m.group(0)
                })
            }
            3 => maker.around("INSERT { ?a <e:n> ?b } USING <e:g> WHERE ", " ; ", |m| m.group(0)),
            _ => maker.out.push_str("CLEAR SILENT GRAPH <e:g> ; "),
        }
    }
    maker.out
}

struct Maker<'a> {
    data: std::slice::Iter<'a, u8>,
    out: String,
}

impl Maker<'_> {
    /// The next byte; zeros at the end.
    fn byte(&mut self) -> usize {
        self.data.next().copied().unwrap_or(0).into()
    }

    fn pick(&mut self, of: usize) -> usize {
        self.byte() % of
    }

    fn is_full(&self, level: usize) -> bool {
        level > LEVELS || self.out.len() > MOST_BYTES || self.data.len() == 0
    }

    /// Mostly a few, now and then many.
    fn times(&mut self) -> usize {
        match self.pick(8) {
            0 => self.byte(),
            n => n % 3 + 1,
        }
    }

    fn around(&mut self, open: &str, close: &str, inner: impl FnOnce(&mut Self)) {
        self.out.push_str(open);
        inner(self);
        self.out.push_str(close);
    }

    /// A construct around itself, mostly a few times, now and then many.
    fn nest(&mut self, open: &str, close: &str, inner: impl FnOnce(&mut Self)) {
        let most = MOST_BYTES.saturating_sub(self.out.len()) / (open.len() + close.len());
        let times = self.times().min(most);
        self.out.push_str(&open.repeat(times));
        inner(self);
        self.out.push_str(&close.repeat(times));
    }

    fn row(&mut self, separator: &str, mut part: impl FnMut(&mut Self)) {
        let times = self.times();
        part(self);
        for _ in 1..times {
            if self.out.len() > MOST_BYTES {
                break;
            }
            self.out.push_str(separator);
            part(self);
        }
    }

    fn choose(&mut self, from: &[&str]) {
        let i = self.pick(from.len());
        self.out.push_str(from[i]);
    }

    fn variable(&mut self) {
        self.choose(&["?a", "?b", "?c", "?d", "?e", "$f"]);
    }

    fn term(&mut self) {
        self.choose(&[
            "?a", "?b", "?c", "<e:a>", "<e:b>", "1", "2.5", "'x'@en", "'('", "true", "_:b", "\"{\"", "-3e0",
        ]);
    }

    fn select(&mut self, level: usize) {
        self.choose(&[
            "SELECT * ",
            "SELECT DISTINCT ?a ",
            "SELECT REDUCED ?a ?b ",
            "SELECT (COUNT(*) AS ?n) ",
            "",
        ]);
        if !self.out.ends_with(' ') {
            let wide = self.times();
            self.out.push_str("SELECT ");
            for i in 0..wide.min(60) {
                self.around("(", &format!(" AS ?x{i}) "), |m| m.expression(level + 1));
            }
        }
        self.group(level + 1);
        match self.pick(6) {
            0 => self.around(" ORDER BY DESC(", ")", |m| m.expression(level + 1)),
            1 => self.around(" GROUP BY ?a HAVING(", ")", |m| m.expression(level + 1)),
            2 => self.out.push_str(" LIMIT 5 OFFSET 1"),
            3 => self.out.push_str(" VALUES (?a ?b) { (1 UNDEF) (<e:a> 'x') }"),
            _ => {}
        }
    }

    fn group(&mut self, level: usize) {
        self.out.push_str("{ ");
        if !self.is_full(level) {
            self.row(" ", |m| m.part(level + 1));
        }
        self.out.push_str(" }");
    }

    fn part(&mut self, level: usize) {
        if self.is_full(level) {
            return self.out.push_str("?a <e:p> ?b .");
        }
        match self.pick(14) {
            0 => self.around("OPTIONAL ", "", |m| m.group(level)),
            1 => self.around("MINUS ", "", |m| m.group(level)),
            2 => self.row(" UNION ", |m| m.group(level)),
            3 => self.around("FILTER(", ")", |m| m.expression(level)),
            4 => self.around("FILTER NOT EXISTS ", "", |m| m.group(level)),
            5 => self.around("GRAPH ?g ", "", |m| m.group(level)),
            6 => self.around("BIND(", " AS ?bound)", |m| m.expression(level)),
            7 => self.out.push_str("VALUES ?a { <e:a> 1 'x' UNDEF }"),
            8 => self.around("{ ", " }", |m| m.select(level)),
            9 => self.nest("{ ", " }", |m| m.group(level)),
            10 => self.nest("?a <e:p> ?b OPTIONAL { ", " }", |m| m.group(level)),
            11 => self.around("?a <e:q> ", " .", |m| m.list(level, false)),
            _ => {
                self.variable();
                self.out.push(' ');
                self.path(level);
                self.out.push(' ');
                self.term();
                self.out.push_str(" .");
            }
        }
    }

    fn list(&mut self, level: usize, ground: bool) {
        if self.is_full(level) {
            return self.out.push('1');
        }
        match self.pick(4) {
            0 => self.nest("(", ")", |m| m.list(level + 1, ground)),
            1 => self.nest("[ <e:p> ", " ]", |m| m.list(level + 1, ground)),
            2 => self.row(", ", |m| m.out.push_str("<e:a>")),
            _ => self.out.push_str(if ground { "'x'" } else { "?c" }),
        }
    }

    fn path(&mut self, level: usize) {
        if self.is_full(level) {
            return self.out.push_str("<e:p>");
        }
        match self.pick(9) {
            0 => self.row("/", |m| m.path(level + 1)),
            1 => self.row("|", |m| m.out.push_str("<e:q>")),
            2 => self.nest("(", ")", |m| m.path(level + 1)),
            3 => self.nest("^(", ")", |m| m.path(level + 1)),
            4 => self.around("(", ")*", |m| m.path(level + 1)),
            5 => self.around("(", ")?", |m| m.path(level + 1)),
            6 => self.out.push_str("!(<e:p>|^<e:q>)"),
            _ => self.out.push_str("<e:p>"),
        }
    }

    fn expression(&mut self, level: usize) {
        if self.is_full(level) {
            return self.out.push_str("?a");
        }
        match self.pick(16) {
            0 => self.row(" || ", |m| m.comparison()),
            1 => self.row(" && ", |m| m.comparison()),
            2 => self.row(" + ", |m| m.term()),
            3 => self.row(" / ", |m| m.out.push_str("?b")),
            4 => self.nest("(", ")", |m| m.expression(level + 1)),
            5 => self.nest("!(", ")", |m| m.expression(level + 1)),
            6 => self.nest("STR(", ")", |m| m.expression(level + 1)),
            7 => self.nest("SUBSTR(", ", 1)", |m| m.expression(level + 1)),
            8 => self.nest("IF(?a, ", ", 1)", |m| m.expression(level + 1)),
            9 => self.around("COALESCE(", ")", |m| m.row(", ", |m| m.expression(level + 1))),
            10 => self.around("?a IN (", ")", |m| m.row(", ", |m| m.term())),
            11 => self.around("EXISTS ", "", |m| m.group(level + 1)),
            12 => self.around("REGEX(STR(?a), ", ")", |m| m.choose(&["'x'", "'('", "?b"])),
            13 => self.around("SUM(", ")", |m| m.expression(level + 1)),
            14 => self.around("-", "", |m| m.term()),
            _ => self.comparison(),
        }
    }

    fn comparison(&mut self) {
        self.term();
        self.choose(&[" = ", " != ", "<", " <= ", ">", " >= "]);
        self.term();
    }
}
