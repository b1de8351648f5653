//! Bounds the expansion of compressed files.

/// Bytes that a compressed file may expand to whatever its length.
pub(crate) const FREE: u64 = 16 << 20;
/// Bytes that a byte of a compressed file may expand to, unless a caller says otherwise.
pub(crate) const MAX_EXPANSION: u32 = 256;

/// Bytes that `len` compressed ones may expand to.
pub(crate) fn expansion_limit(len: u64, max_expansion: u32) -> u64 {
    len.saturating_mul(u64::from(max_expansion)).saturating_add(FREE)
}
