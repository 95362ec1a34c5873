//! Tables: enums whose variants have a text, in the language or in messages.

/// Declares an enum and the table of its texts, which is in the order of the variants.
macro_rules! named {
    ($(#[$meta:meta])* $vis:vis enum $name:ident { $($variant:ident $text:literal,)+ }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
        #[allow(missing_docs, reason = "each variant stands for its text")]
        $vis enum $name {
            $($variant,)+
        }

        #[allow(dead_code, reason = "not every table is searched")]
        impl $name {
            /// All of them.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)+];

            /// Its text; of words of the language in upper case.
            #[must_use]
            pub fn text(self) -> &'static str {
                match self {
                    $(Self::$variant => $text,)+
                }
            }

            /// The one with a text, in letters of either case.
            #[must_use]
            pub fn named(text: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|one| one.text().eq_ignore_ascii_case(text))
            }
        }
    };
}

pub(crate) use named;
