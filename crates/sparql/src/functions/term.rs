//! Functions that make terms: IRI, BNODE, STRLANG, STRLANGDIR, STRDT, UUID, STRUUID; and those that
//! ask for the language and base direction of one.

use std::borrow::Cow;

use oxiri::Iri;

use snowmelt_graph::{RDF_DIR_LANG_STRING, split_direction};

use super::Func;
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

/// STRLANGDIR. The direction is `ltr` or `rtl`, in lower case.
pub(super) fn with_direction(
    text: &Value<'_>,
    lang: &Value<'_>,
    direction: &Value<'_>,
) -> Option<Value<'static>> {
    let Value::LangString(text, lang) = with_language(text, lang)? else { return None };
    let direction = plain(direction)?;
    let lang = format!("{lang}--{direction}");
    split_direction(&lang).1?;
    Some(Value::LangString(text, Cow::Owned(lang)))
}

/// LANGDIR, hasLANG and hasLANGDIR; LANGDIR is an error of what is no literal.
pub(super) fn language(func: Func, v: &Value<'_>) -> Option<Value<'static>> {
    let tag = if let Value::LangString(_, tag) = v { Some(&**tag) } else { None };
    let direction = tag.and_then(|tag| split_direction(tag).1);
    match func {
        Func::HasLang => Some(Value::Boolean(tag.is_some())),
        Func::HasLangDir => Some(Value::Boolean(direction.is_some())),
        _ if !v.is_literal() => None,
        _ => Some(Value::String(direction.map_or_else(String::new, |d| d.to_string()).into())),
    }
}

/// STRDT. The term is kept as written: `"01"` stays so even as xsd:integer.
pub(super) fn with_datatype(text: &Value<'_>, datatype: &Value<'_>) -> Option<Value<'static>> {
    let text = plain(text)?;
    let Value::Iri(datatype) = datatype else { return None };
    if **datatype == *iris::LANG_STRING || **datatype == *RDF_DIR_LANG_STRING {
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
