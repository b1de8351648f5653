//! Applies a setting of a builder under a condition.

/// Returns `set(value)` if `condition` holds, and `value` otherwise: for tests over all combinations of settings.
///
/// ```
/// let text = burn_gnn_testutil::apply_if(true, String::from("a"), |s| s + "b");
/// assert_eq!(text, "ab");
/// ```
pub fn apply_if<T>(condition: bool, value: T, set: impl FnOnce(T) -> T) -> T {
    if condition { set(value) } else { value }
}
