//! The value of pixels without data in JSON: a number or, where it is none, its name, which JSON has no number for.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Nodata {
    Finite(f64),
    Named(String),
}

#[expect(clippy::ref_option, reason = "serde passes a reference to the field")]
pub(crate) fn serialize<S: Serializer>(
    value: &Option<f64>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    value
        .map(|value| {
            if value.is_finite() {
                Nodata::Finite(value)
            } else {
                Nodata::Named(value.to_string())
            }
        })
        .serialize(serializer)
}

pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<f64>, D::Error> {
    match Option::deserialize(deserializer)? {
        None => Ok(None),
        Some(Nodata::Finite(value)) => Ok(Some(value)),
        Some(Nodata::Named(name)) => name.parse().map(Some).map_err(serde::de::Error::custom),
    }
}
