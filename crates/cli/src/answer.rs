//! Formats of answers, by the short names that `query --format` and the prompt take.

use std::io::Write;

use anyhow::bail;
use snowmelt_graph::Namespaces;
use snowmelt_sparql::{DescribeForm, QueryKind, QueryResult, RdfVersion, ResultFormat, TableStyle};

/// The form of descriptions.
#[derive(Clone, Copy, clap::Args)]
pub struct DescribeArgs {
    /// The triples by which DESCRIBE describes a thing: cbd, those that it is the subject of, and
    /// of blank nodes among their objects; symmetric, also those that it is the object of;
    /// labelled, cbd and the rdfs:label of each IRI in it
    #[arg(long, value_name = "FORM", value_parser = form, default_value = "cbd")]
    describe: DescribeForm,
}

impl DescribeArgs {
    /// The form.
    pub fn form(self) -> DescribeForm {
        self.describe
    }
}

fn form(name: &str) -> Result<DescribeForm, String> {
    DescribeForm::named(name).ok_or_else(|| {
        let names = DescribeForm::NAMES.map(|(name, _)| name);
        format!("use {}", names.join(", "))
    })
}

/// A format of answers by its short name.
#[derive(Clone, Copy, clap::ValueEnum)]
#[allow(missing_docs)]
pub enum AnswerFormat {
    Table,
    Json,
    Xml,
    Csv,
    Tsv,
    Nt,
    Ttl,
    Jsonld,
    Nq,
    Trig,
}

impl AnswerFormat {
    /// The format of a short name.
    pub fn named(name: &str) -> Option<Self> {
        <Self as clap::ValueEnum>::from_str(name, true).ok()
    }

    /// Writes an answer; a table in the style that is given, Turtle and TriG with these prefixes.
    ///
    /// # Errors
    /// A format that does not fit the kind of answer; those of running the query and of writing.
    pub fn write(
        format: Option<Self>,
        result: QueryResult,
        style: TableStyle,
        prefixes: &Namespaces,
        out: &mut dyn Write,
    ) -> anyhow::Result<()> {
        match Self::choose(format, result.kind())? {
            ResultFormat::Table => result.write_table(&style, out)?,
            other => result.write_with(other, RdfVersion::default(), prefixes, out)?,
        };
        Ok(())
    }

    /// The writer for this format, if it fits the kind of answer.
    fn choose(format: Option<Self>, kind: QueryKind) -> anyhow::Result<ResultFormat> {
        let graph = matches!(kind, QueryKind::Graph);
        Ok(match (format, graph) {
            (None | Some(Self::Table), false) => ResultFormat::Table,
            (Some(Self::Json), false) => ResultFormat::Json,
            (Some(Self::Xml), false) => ResultFormat::Xml,
            (Some(Self::Csv), false) => ResultFormat::Csv,
            (Some(Self::Tsv), false) => ResultFormat::Tsv,
            (None | Some(Self::Nt | Self::Table), true) => ResultFormat::NTriples,
            (Some(Self::Ttl), true) => ResultFormat::Turtle,
            (Some(Self::Xml), true) => ResultFormat::RdfXml,
            (Some(Self::Jsonld), true) => ResultFormat::JsonLd,
            (Some(Self::Nq), true) => ResultFormat::NQuads,
            (Some(Self::Trig), true) => ResultFormat::TriG,
            (_, false) => {
                bail!("this format is for graphs: use table, json, xml, csv or tsv for SELECT and ASK")
            }
            (_, true) => bail!(
                "this format is for solutions: use nt, ttl, xml, jsonld, nq or trig for CONSTRUCT and DESCRIBE"
            ),
        })
    }
}
