//! Closed lists of reasons: for each a word for logs and metrics, and perhaps a sentence.

/// Declares an enumeration of reasons: `Name => "label";` or `Name => "label", "sentence";`, with documentation above each. `with
/// method -> Type` adds a constant of that type to each, in front of the label, and a method that returns it.
#[macro_export]
macro_rules! reasons {
    (
        $(#[$about:meta])+
        $reasons:ident {
            $($(#[$doc:meta])+ $name:ident => $label:literal;)*
        }
    ) => {
        $(#[$about])+
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum $reasons {
            $($(#[$doc])+ $name,)*
        }

        impl $reasons {
            /// All of them, in their order, for tables of metrics.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];

            /// One word for logs and metrics.
            pub const fn label(self) -> &'static str {
                match self {
                    $(Self::$name => $label,)*
                }
            }
        }
    };
    (
        $(#[$about:meta])+
        $reasons:ident {
            $($(#[$doc:meta])+ $name:ident => $label:literal, $text:literal;)*
        }
    ) => {
        $crate::reasons! {
            $(#[$about])+
            $reasons {
                $($(#[$doc])+ $name => $label;)*
            }
        }

        impl ::std::fmt::Display for $reasons {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                f.write_str(match self {
                    $(Self::$name => $text,)*
                })
            }
        }

        impl ::std::error::Error for $reasons {}
    };
    (
        $(#[$about:meta])+
        $reasons:ident with $(#[$about_constant:meta])+ $constant_of:ident -> $constant:ident {
            $($(#[$doc:meta])+ $name:ident => $value:ident, $label:literal, $text:literal;)*
        }
    ) => {
        $crate::reasons! {
            $(#[$about])+
            $reasons {
                $($(#[$doc])+ $name => $label, $text;)*
            }
        }

        impl $reasons {
            $(#[$about_constant])+
            pub const fn $constant_of(self) -> $constant {
                match self {
                    $(Self::$name => $constant::$value,)*
                }
            }
        }
    };
}
