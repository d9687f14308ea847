//! Enums that know all their variants, each with its words.

/// Declares an enum with `ALL` and `words`.
macro_rules! declare {
    ($(#[$attribute:meta])* $name:ident { $($variant:ident = $words:literal,)+ }) => {
        $(#[$attribute])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum $name {
            $(#[doc = $words] $variant,)+
        }

        impl $name {
            pub(crate) const ALL: [Self; [$($words),+].len()] = [$(Self::$variant),+];

            /// As the page and failures name it.
            pub(crate) fn words(self) -> &'static str {
                match self {
                    $(Self::$variant => $words,)+
                }
            }
        }
    };
}

pub(crate) use declare;
