//! Logarithms and powers of which every bit is the same on every machine.
//!
//! Those of a machine's own library are not: their last bits differ between two processors of one kind, and the steps of a file,
//! and so its bytes, follow from them.

/// The natural logarithm.
pub fn ln(x: f64) -> f64 {
    libm::log(x)
}

/// The logarithm to the base 2.
pub fn log2(x: f64) -> f64 {
    libm::log2(x)
}

/// The power of e.
pub fn exp(x: f64) -> f64 {
    libm::exp(x)
}

/// The power of 2.
pub fn exp2(x: f64) -> f64 {
    libm::exp2(x)
}
