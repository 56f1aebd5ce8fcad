//! Vectors of an embedding model, as the search index stores them: a byte for each dimension.

/// The place of a record in the search index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VectorSlot {
    pub(crate) chunk: i64,
    pub(crate) place: usize,
}

/// A record that has no vector yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnembeddedRecord {
    /// Where its vector belongs.
    pub slot: VectorSlot,
    /// What was said, as far as it is embedded.
    pub text: String,
}

/// The vector of a record.
#[derive(Debug, Clone, PartialEq)]
pub struct RecordVector {
    /// As [`UnembeddedRecord`] said.
    pub slot: VectorSlot,
    /// As the model gave it, of any length.
    pub vector: Vec<f32>,
}

/// The direction of a vector, each dimension from -127 to 127. `None` if its length is 0 or not finite.
pub(crate) fn quantize(vector: &[f32]) -> Option<Vec<u8>> {
    let length = vector.iter().map(|value| value * value).sum::<f32>().sqrt();
    #[allow(clippy::cast_possible_truncation, reason = "it is within the range of a byte")]
    let byte = |value: &f32| (value / length * 127.0).round().clamp(-127.0, 127.0) as i8;
    (length.is_finite() && length > 0.0)
        .then(|| vector.iter().map(|value| byte(value).cast_unsigned()).collect())
}

/// How near two directions are, from -1 to 1.
pub(crate) fn similarity(one: &[u8], other: &[u8]) -> f32 {
    let product = |(one, other): (&u8, &u8)| i32::from(one.cast_signed()) * i32::from(other.cast_signed());
    let sum: i32 = one.iter().zip(other).map(product).sum();
    #[allow(clippy::cast_precision_loss, reason = "a rank needs no more")]
    let similarity = sum as f32 / (127.0 * 127.0);
    similarity
}

#[cfg(test)]
#[path = "vectors_tests.rs"]
mod tests;
