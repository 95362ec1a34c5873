//! The use of texts in expressions: to work one out for a stored term costs a look into the
//! dictionary, which ids, languages and datatypes do not need.

use super::{Expression, Function, VarSet};

impl Expression {
    /// The variables whose texts it needs.
    pub fn text_vars(&self) -> VarSet {
        let mut vars = VarSet::default();
        self.collect_text_vars(false, &mut vars);
        vars
    }

    fn collect_text_vars(&self, is_text: bool, vars: &mut VarSet) {
        let mut all = |list: &[Self], is_text: bool| {
            list.iter().for_each(|part| part.collect_text_vars(is_text, vars));
        };
        match self {
            Self::Var(v) => {
                if is_text {
                    vars.insert(*v);
                }
            }
            Self::Bound(_) | Self::Const(_) | Self::Param(_) => {}
            Self::Or(list) | Self::And(list) => all(list, false),
            Self::Unary(_, part) => all(std::slice::from_ref(part), false),
            Self::Binary(_, pair) => all(&**pair, false),
            Self::In(value, list) => {
                all(list, false);
                all(std::slice::from_ref(value), false);
            }
            Self::Call(function, list) => all(list, takes_text(*function)),
            // casts are mostly of numbers, which are in their ids
            Self::Custom(_, list) => all(list, false),
            Self::Key(part) => all(std::slice::from_ref(part), true),
        }
    }
}

fn takes_text(function: Function) -> bool {
    use Function as F;
    let takes_whole = matches!(
        function,
        F::Str
            | F::StrLen
            | F::SubStr
            | F::UCase
            | F::LCase
            | F::Concat
            | F::EncodeForUri
            | F::StrLang
            | F::StrDt
    );
    let searches = matches!(
        function,
        F::Contains | F::StrStarts | F::StrEnds | F::StrBefore | F::StrAfter | F::Regex | F::Replace
    );
    takes_whole || searches || matches!(function, F::Md5 | F::Sha1 | F::Sha256 | F::Sha384 | F::Sha512)
}
