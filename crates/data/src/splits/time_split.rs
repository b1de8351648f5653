//! Cuts rows by time: earlier rows train, later rows validate and test.

use burn_gnn_files::DataError;

use crate::splits::node_split::{Share, shuffled, wrong};

/// Positions before a cut and from it on: of `n` rows, about `share` are held out, at random or, with times, the latest.
/// Both lists ascend.
pub(crate) fn hold_out(
    n: usize,
    times: Option<&[i64]>,
    share: f64,
    seed: u64,
) -> Result<(Vec<usize>, Vec<usize>), DataError> {
    let held = Share::Ratio(share).of("share", n)?;
    let mut is_held = vec![false; n];
    match times {
        Some(times) => {
            let mut order: Vec<usize> = (0..n).collect();
            order.sort_by_key(|&row| times[row]);
            let cut = cut_between_times(n - held, n, |at| times[order[at]]);
            order[cut..].iter().for_each(|&row| is_held[row] = true);
        }
        None => {
            let rows = u32::try_from(n)
                .map_err(|_| wrong("share", format!("at most {} rows, got {n}", u32::MAX)))?;
            let order = shuffled(0..rows, seed);
            order[n - held..].iter().for_each(|&row| is_held[row as usize] = true);
        }
    }
    Ok((0..n).partition(|&row| !is_held[row]))
}

/// The first position from `cut` on whose time differs from the one before, so that rows of one time are in one part.
pub(crate) fn cut_between_times(cut: usize, n: usize, time: impl Fn(usize) -> i64) -> usize {
    let same = |&at: &usize| at > 0 && at < n && time(at) == time(at - 1);
    (cut..=n).find(|at| !same(at)).unwrap_or(n)
}
