//! Limits the size of decompressed files, as a defence against decompression bombs.

/// Bytes to which a compressed file of any length may expand.
pub(crate) const FREE: u64 = 16 << 20;
/// Default for the bytes to which each compressed byte may expand.
pub(crate) const MAX_EXPANSION: u32 = 256;

/// Bytes to which `len` compressed bytes may expand.
pub(crate) fn expansion_limit(len: u64, max_expansion: u32) -> u64 {
    len.saturating_mul(u64::from(max_expansion)).saturating_add(FREE)
}
