//! Unrolls loops.

/// `$do` for `$k` from 0 to below `$n`, which is at most 8, written out.
///
/// Indices must be constants before the compiler decides what lives in registers; it unrolls a loop with
/// a long body too late for that, and sums would go through memory.
macro_rules! each {
    ($k:ident < $n:expr, $do:block) => {
        each!(@ $k, $n, $do, 0, 1, 2, 3, 4, 5, 6, 7)
    };
    (@ $k:ident, $n:expr, $do:block, $($index:literal),*) => {{
        $(if $index < $n {
            let $k: usize = $index;
            $do
        })*
    }};
}
pub(crate) use each;
