//! The table of methods: how the heights of a file became symbols.

use std::fmt;
use std::str::FromStr;

use crate::{Error, Result};

/// What the records of a method store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stored {
    /// Heights as integers.
    Integers,
    /// Wavelet coefficients, coded by a context model.
    Wavelet,
    /// Tokens, decoded by a network.
    Tokens,
}

/// What is known of one method.
struct Row {
    method: Method,
    code: u8,
    name: &'static str,
    stored: Stored,
    summary: &'static str,
}

/// Makes the enum and its table from the same rows, so that neither can lack one.
macro_rules! methods {
    ($($(#[$doc:meta])* $method:ident { code: $code:literal, name: $name:literal, stored: $stored:ident, summary: $summary:literal })*) => {
        /// How the heights of a file became symbols.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum Method {
            $($(#[$doc])* $method,)*
        }

        const TABLE: &[Row] = &[$(Row {
            method: Method::$method,
            code: $code,
            name: $name,
            stored: Stored::$stored,
            summary: $summary,
        },)*];

        impl Method {
            /// Every method, in the order of the codes.
            pub const ALL: &[Self] = &[$(Self::$method,)*];
        }
    };
}

methods! {
    /// Integers by prediction, without a model.
    Integers { code: 0, name: "integers", stored: Integers, summary: "heights as integers by prediction, without a network" }
    /// TransINR.
    TransInr { code: 1, name: "transinr", stored: Tokens, summary: "TransINR" }
    /// Functa.
    Functa { code: 2, name: "functa", stored: Tokens, summary: "Functa" }
    /// HUVR.
    Huvr { code: 3, name: "huvr", stored: Tokens, summary: "HUVR" }
    /// HUVR+SIREN.
    HuvrSiren { code: 4, name: "huvr-siren", stored: Tokens, summary: "HUVR+SIREN, the paper's method" }
    /// The context codec.
    Context { code: 5, name: "context", stored: Wavelet, summary: "a wavelet, and a small network that predicts the probabilities of its coefficients" }
}

impl Method {
    fn row(self) -> &'static Row {
        // The variants are declared in the order of the rows.
        &TABLE[self as usize]
    }

    /// Its number in a file.
    pub fn code(self) -> u8 {
        self.row().code
    }

    /// The method of a number in a file.
    pub fn from_code(code: u8) -> Result<Self> {
        TABLE
            .iter()
            .find(|row| row.code == code)
            .map(|row| row.method)
            .ok_or_else(|| Error::Unsupported {
                what: "method",
                value: code.to_string(),
            })
    }

    /// Its name, as users type it.
    pub fn name(self) -> &'static str {
        self.row().name
    }

    /// What it is, in a few words.
    pub fn summary(self) -> &'static str {
        self.row().summary
    }

    /// What its records store.
    pub fn stored(self) -> Stored {
        self.row().stored
    }

    /// Whether its records hold tokens, which only a network decodes.
    pub fn has_tokens(self) -> bool {
        self.stored() == Stored::Tokens
    }

    /// Whether its records cannot be decoded without a model.
    pub fn needs_model(self) -> bool {
        matches!(self.stored(), Stored::Wavelet | Stored::Tokens)
    }
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A name that is no method's.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no method {name:?}; methods are {}", names())]
pub struct UnknownMethod {
    /// What was asked for.
    pub name: String,
}

fn names() -> String {
    let names: Vec<_> = TABLE.iter().map(|row| row.name).collect();
    names.join(", ")
}

impl FromStr for Method {
    type Err = UnknownMethod;

    fn from_str(name: &str) -> std::result::Result<Self, UnknownMethod> {
        TABLE
            .iter()
            .find(|row| row.name == name)
            .map(|row| row.method)
            .ok_or_else(|| UnknownMethod {
                name: name.to_owned(),
            })
    }
}

#[cfg(feature = "serde")]
impl serde::Serialize for Method {
    fn serialize<S: serde::Serializer>(
        &self,
        serializer: S,
    ) -> std::result::Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

#[cfg(feature = "serde")]
impl<'de> serde::Deserialize<'de> for Method {
    fn deserialize<D: serde::Deserializer<'de>>(
        deserializer: D,
    ) -> std::result::Result<Self, D::Error> {
        let name = String::deserialize(deserializer)?;
        name.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_method_comes_back_from_its_code_and_its_name() {
        assert_eq!(Method::ALL.len(), TABLE.len());
        for (&method, row) in Method::ALL.iter().zip(TABLE) {
            assert_eq!(method, row.method);
            assert_eq!(Method::from_code(method.code()).unwrap(), method);
            assert_eq!(method.name().parse(), Ok(method));
            assert_eq!(method.to_string(), method.name());
        }
    }

    #[test]
    fn codes_and_names_are_the_specifications() {
        let rows: Vec<_> = Method::ALL
            .iter()
            .map(|method| (method.code(), method.name()))
            .collect();
        let expected = [
            (0, "integers"),
            (1, "transinr"),
            (2, "functa"),
            (3, "huvr"),
            (4, "huvr-siren"),
            (5, "context"),
        ];
        assert_eq!(rows, expected);
    }

    #[test]
    fn only_integers_need_no_model_and_only_networks_have_tokens() {
        for &method in Method::ALL {
            let stored = method.stored();
            assert_eq!(method.has_tokens(), stored == Stored::Tokens);
            assert_eq!(
                method.needs_model(),
                method.has_tokens() || stored == Stored::Wavelet
            );
        }
    }

    #[test]
    fn what_is_unknown_is_refused_with_the_names() {
        assert!(matches!(
            Method::from_code(6),
            Err(Error::Unsupported { what: "method", .. })
        ));
        let error = "Context".parse::<Method>().unwrap_err();
        assert_eq!(
            error.to_string(),
            "there is no method \"Context\"; methods are integers, transinr, functa, huvr, huvr-siren, context"
        );
    }
}
