//! Defines the element types of stored features.

/// Element type in which feature rows are stored.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum RowType {
    /// 4 bytes per number.
    F32,
    /// 2 bytes per number, 11 bits of precision, up to 65504.
    F16,
    /// 2 bytes per number, 8 bits of precision, the range of f32.
    BF16,
    /// 1 byte per number: the value is the stored integer, in -127..=127, times `scale`.
    I8 {
        /// Positive and finite.
        scale: f32,
    },
}
