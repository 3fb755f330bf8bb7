//! What a configuration may say of a network, checked before anything is made of it.

/// A value that no network can have.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{key} must {must}, and is {value}")]
pub struct SettingError {
    /// The key, as `method.encoder.width`.
    pub key: String,
    /// What the value must do or be.
    pub must: String,
    /// The value.
    pub value: String,
}

/// Whether a value can be used.
pub type Check = Result<(), SettingError>;

/// The maximum width of a layer, and the maximum side of a tile.
const MOST: usize = 16_384;
/// The most layers, and the most steps of an inner loop.
const MAX_LAYERS: usize = 1024;

impl SettingError {
    /// A value that is not as it must be.
    pub fn new(key: &str, must: impl Into<String>, value: impl ToString) -> Self {
        Self {
            key: key.to_owned(),
            must: must.into(),
            value: value.to_string(),
        }
    }
}

/// Refuses sizes that are zero or beyond all reason.
pub(crate) fn are_sizes(sizes: &[(&str, usize)]) -> Check {
    are_within(sizes, MOST)
}

/// Refuses numbers of layers that are zero or beyond all reason.
pub(crate) fn are_depths(depths: &[(&str, usize)]) -> Check {
    are_within(depths, MAX_LAYERS)
}

fn are_within(values: &[(&str, usize)], most: usize) -> Check {
    match values.iter().find(|(_, value)| !(1..=most).contains(value)) {
        Some((key, value)) => Err(SettingError::new(
            key,
            format!("be from 1 to {most}"),
            value,
        )),
        None => Ok(()),
    }
}

/// Refuses a value that is no multiple of another, which is not zero.
pub(crate) fn is_multiple((key, value): (&str, usize), of: usize, what: &str) -> Check {
    if value.is_multiple_of(of) {
        Ok(())
    } else {
        Err(SettingError::new(
            key,
            format!("be a multiple of {what} ({of})"),
            value,
        ))
    }
}

/// Refuses a value that does not divide another; neither is zero.
pub(crate) fn divides((key, value): (&str, usize), (other, whole): (&str, usize)) -> Check {
    if whole.is_multiple_of(value) {
        Ok(())
    } else {
        Err(SettingError::new(
            key,
            format!("divide {other} ({whole})"),
            value,
        ))
    }
}

/// Refuses a factor of frequencies that makes no waves.
pub(crate) fn is_frequency(key: &str, value: f64) -> Check {
    if value.is_finite() && value > 0.0 {
        Ok(())
    } else {
        Err(SettingError::new(key, "be a number above 0", value))
    }
}
