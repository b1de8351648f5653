//! Measures ranking, models of events, and embeddings of knowledge graphs.

pub(crate) mod events;
pub(crate) mod knowledge;
pub(crate) mod ranking;

/// A number in `0..n` of row `row` of column `column`: SplitMix64 of the row, in a stream per column. The scripts in
/// `benches/links` compute the same.
pub(crate) fn draw(row: u64, column: u64, n: u64) -> u64 {
    let mut x = row.wrapping_add(column << 40).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    (x ^ (x >> 31)) % n
}
