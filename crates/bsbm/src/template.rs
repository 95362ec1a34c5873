//! Query templates: files of SPARQL with `%name%` for each parameter, and a list that says how each
//! parameter is drawn.
//!
//! The files of a use case, under `queries/`:
//! * `qNN.rq`: the text of query NN;
//! * `parameters.txt`: a line `number kind name=class ...` for each query;
//! * `mix.txt`: the numbers of one mix in their order.

use std::fmt;

use serde::Serialize;

/// Query form, which decides the form of the result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum QueryKind {
    /// A table.
    Select,
    /// Triples about a resource.
    Describe,
    /// Triples made from a table.
    Construct,
    /// Nothing: it changes the data.
    Update,
}

impl fmt::Display for QueryKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Select => "select",
            Self::Describe => "describe",
            Self::Construct => "construct",
            Self::Update => "update",
        })
    }
}

/// How a parameter's value is drawn. The rules are in `parameters`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Class {
    /// A leaf type, uniformly.
    ProductType,
    /// A type whose level is drawn first, uniformly from `top_level` (0 is the root) to the
    /// leaves'.
    ProductTypeOfLevel {
        top_level: u32,
    },
    /// A feature of the query's product type or of an ancestor. Drawn after all other parameters.
    ProductFeature,
    /// A number for comparison with a numeric property.
    NumericValue,
    Product,
    Producer,
    Offer,
    Review,
    Country,
    CurrentDate,
    /// A day of the year before, plus so many times 28 days; one day for the whole query.
    ConsecutiveMonth(i64),
    /// The data of the next update transaction.
    UpdateTransaction,
}

impl Class {
    /// The names of the original's description files.
    fn parse(name: &str) -> Option<Self> {
        Some(match name {
            "ProductTypeURI" => Self::ProductType,
            "ProductTypeRangeURI_0_0_lvleq" => Self::ProductTypeOfLevel { top_level: 0 },
            "ProductTypeRangeURI_1_0_lvleq" => Self::ProductTypeOfLevel { top_level: 1 },
            "ProductFeatureURI" => Self::ProductFeature,
            "ProductPropertyNumericValue" => Self::NumericValue,
            "ProductURI" => Self::Product,
            "ProducerURI" => Self::Producer,
            "OfferURI" => Self::Offer,
            "ReviewURI" => Self::Review,
            "CountryURI" => Self::Country,
            "CurrentDate" => Self::CurrentDate,
            "ConsecutiveMonth_0" => Self::ConsecutiveMonth(0),
            "ConsecutiveMonth_1" => Self::ConsecutiveMonth(1),
            "ConsecutiveMonth_2" => Self::ConsecutiveMonth(2),
            "UpdateTransactionData" => Self::UpdateTransaction,
            _ => return None,
        })
    }
}

/// One query with holes.
#[derive(Clone, Debug)]
pub(crate) struct Template {
    pub number: u32,
    pub kind: QueryKind,
    /// Classes of the parameters, in the order of the description.
    pub classes: Vec<Class>,
    /// Text before each hole, and the parameter that fills it.
    holes: Vec<(String, usize)>,
    end: String,
}

impl Template {
    /// Reads a line of `parameters.txt`, and the text from the numbered texts.
    ///
    /// These files are part of the crate, so a fault in them is a bug:
    /// it panics.
    pub(crate) fn parse(line: &str, texts: &[(u32, &str)]) -> Self {
        let mut fields = line.split_whitespace();
        let mut field = || fields.next().unwrap_or_else(|| panic!("too few fields: {line}"));
        let number = field().parse().unwrap_or_else(|_| panic!("not a number: {line}"));
        let kind = match field() {
            "select" => QueryKind::Select,
            "describe" => QueryKind::Describe,
            "construct" => QueryKind::Construct,
            "update" => QueryKind::Update,
            kind => panic!("no kind of query: {kind}"),
        };
        let (mut names, mut classes) = (Vec::new(), Vec::new());
        for parameter in fields {
            let (name, class) = parameter.split_once('=').unwrap_or_else(|| panic!("no class: {parameter}"));
            names.push(name);
            classes.push(Class::parse(class).unwrap_or_else(|| panic!("no such class: {class}")));
        }
        let text = texts.iter().find(|text| text.0 == number).unwrap_or_else(|| panic!("no text: {line}")).1;
        let (holes, end) = holes(text.trim(), &names);
        Self { number, kind, classes, holes, end }
    }

    /// The text with its holes filled; values are in the order of the classes.
    pub(crate) fn fill(&self, values: &[String]) -> String {
        assert_eq!(values.len(), self.classes.len(), "one value for each parameter");
        let mut text = String::new();
        for (before, parameter) in &self.holes {
            text.push_str(before);
            text.push_str(&values[*parameter]);
        }
        text + &self.end
    }
}

/// Cuts a text at its parameters.
fn holes(text: &str, names: &[&str]) -> (Vec<(String, usize)>, String) {
    let mut parts = text.split('%');
    let mut before = parts.next().expect("a split has a first part");
    let mut holes = Vec::new();
    while let Some(name) = parts.next() {
        let parameter = names.iter().position(|known| *known == name);
        holes.push((before.to_owned(), parameter.unwrap_or_else(|| panic!("undeclared parameter {name}"))));
        before = parts.next().unwrap_or_else(|| panic!("% without its pair after {name}"));
    }
    (holes, before.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fills_every_hole() {
        let template = Template::parse(
            "7 describe a=ProductURI b=CountryURI unused=CurrentDate",
            &[(7, "  DESCRIBE %b%\n%a% %b%\n")],
        );
        assert_eq!((template.number, template.kind), (7, QueryKind::Describe));
        assert_eq!(template.classes, [Class::Product, Class::Country, Class::CurrentDate]);
        assert_eq!(template.fill(&["<a>".into(), "<b>".into(), "now".into()]), "DESCRIBE <b>\n<a> <b>");
    }

    #[test]
    #[should_panic(expected = "undeclared parameter b")]
    fn refuses_a_hole_without_a_rule() {
        Template::parse("1 select a=ProductURI", &[(1, "%a% %b%")]);
    }
}
