//! Functions that make terms: IRI, BNODE, STRLANG, STRDT, UUID, STRUUID.

use std::borrow::Cow;

use oxiri::Iri;

use super::string::plain;
use crate::text::iri::resolve;
use crate::value::{Value, iri as iris, parse_literal};

/// IRI: a string resolved against the query's BASE; an error when it is no IRI.
pub(super) fn iri(v: &Value<'_>, base: Option<&Iri<String>>) -> Option<Value<'static>> {
    let text = match v {
        Value::Iri(iri) => return Some(Value::Iri(Cow::Owned(iri.clone().into_owned()))),
        v => plain(v)?,
    };
    let iri = match base {
        Some(base) => resolve(base, text)?,
        None => Iri::parse(text.to_owned()).ok()?,
    };
    Some(Value::Iri(Cow::Owned(iri.into_inner())))
}

/// BNODE(): a fresh blank node.
pub(super) fn blank() -> Value<'static> {
    Value::Blank(Cow::Owned(oxrdf::BlankNode::default().into_string()))
}

/// STRLANG.
pub(super) fn with_language(text: &Value<'_>, lang: &Value<'_>) -> Option<Value<'static>> {
    let literal = oxrdf::Literal::new_language_tagged_literal(plain(text)?, plain(lang)?).ok()?;
    let lang = literal.language()?.to_ascii_lowercase();
    Some(Value::LangString(Cow::Owned(literal.value().to_owned()), Cow::Owned(lang)))
}

/// STRDT. The term is kept as written: `"01"` stays so even as xsd:integer.
pub(super) fn with_datatype(text: &Value<'_>, datatype: &Value<'_>) -> Option<Value<'static>> {
    let text = plain(text)?;
    let Value::Iri(datatype) = datatype else { return None };
    if **datatype == *iris::LANG_STRING {
        return None;
    }
    let value = parse_literal(text, None, datatype);
    if value.text() == text && value.datatype() == Some(datatype) {
        return Some(value.into_owned());
    }
    Some(Value::Other {
        lexical: Cow::Owned(text.to_owned()),
        datatype: Cow::Owned(datatype.clone().into_owned()),
    })
}

/// UUID: a fresh urn:uuid IRI.
pub(super) fn uuid() -> Value<'static> {
    Value::Iri(Cow::Owned(format!("urn:uuid:{}", uuid::Uuid::new_v4())))
}

/// STRUUID: the same as a string.
pub(super) fn uuid_text() -> Value<'static> {
    Value::String(Cow::Owned(uuid::Uuid::new_v4().to_string()))
}
