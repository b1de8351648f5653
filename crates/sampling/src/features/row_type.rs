//! Defines the element types of stored features.

/// What the numbers of a row are kept as.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum RowType {
    /// 4 bytes.
    F32,
    /// 2 bytes, 11 bits of precision, up to 65504.
    F16,
    /// 2 bytes, 8 bits of precision and the range of f32.
    BF16,
    /// 1 byte: the number is the stored integer, in -127..=127, times `scale`.
    I8 {
        /// Positive and finite.
        scale: f32,
    },
}
