//! Unrolls loops at compile time.

/// Repeats `$do` for `$k` in `0..$n`, where `$n` is at most 8.
///
/// Array indices must be constants before the compiler allocates registers. It unrolls a loop with a long body only after
/// that, so the arrays would be kept in memory.
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
