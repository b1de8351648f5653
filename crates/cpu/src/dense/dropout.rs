//! Counter-based dropout.
//!
//! A Philox block has the random words of four columns. Blocks are computed in SIMD lanes over the rows of a tile, so that
//! narrow rows fill the lanes too.

use std::ops::Range;

use crate::math::philox::{Keep, draw_rows};
use crate::number::{Acc, Elem};
use crate::parallel::collect::collect_rows;
use crate::parallel::output_buffer::Sink;
use crate::parallel::runs::evenly;
use crate::simd::instruction_sets::{Vectorised, vectorised};
use burn_gnn_plan::DropoutPlan;

/// Blocks per tile; their words fit in the first-level cache.
const TILE: usize = 512;

/// The random words of a tile of rows.
pub(crate) struct Mask<'a> {
    plan: &'a DropoutPlan,
    keep: Keep,
    blocks: usize,
    first: usize,
    words: Vec<[u32; 4]>,
}

impl<'a> Mask<'a> {
    /// A mask for rows of `width` entries.
    pub(crate) fn new(plan: &'a DropoutPlan, width: usize) -> Self {
        Self {
            plan,
            keep: Keep::new(plan.threshold()),
            blocks: width.div_ceil(4),
            first: 0,
            words: Vec::new(),
        }
    }
    /// Number of rows of a tile.
    #[inline(always)]
    pub(crate) fn tile(&self) -> usize {
        (TILE / self.blocks.max(1)).max(1)
    }
    /// Draws for `rows`.
    #[inline(always)]
    pub(crate) fn draw(&mut self, rows: Range<usize>) {
        self.first = rows.start;
        let (plan, first) = (self.plan, rows.start);
        draw_rows(
            plan.stream().key(),
            rows.len(),
            self.blocks,
            |r| plan.id(first + r),
            &mut self.words,
        );
    }
    /// The words of row `r` of the current tile, one per column.
    #[inline(always)]
    pub(crate) fn row(&self, r: usize, width: usize) -> &[u32] {
        &self.words.as_flattened()[4 * self.blocks * (r - self.first)..][..width]
    }
    /// Whether a word keeps its entry.
    #[inline(always)]
    pub(crate) fn keeps(&self, word: u32) -> bool {
        self.keep.keeps(word)
    }
}

/// Applies dropout to rows of `width` entries: sets dropped entries to 0 and scales the others.
pub(crate) fn dropout_rows<T: Elem>(plan: &DropoutPlan, x: &[T], width: usize) -> Vec<T> {
    if x.is_empty() {
        return Vec::new();
    }
    // Drawing a word costs about as much as processing four entries.
    let runs = evenly(x.len() / width, 4 * width);
    collect_rows(&runs, width, &|run, out| vectorised(Dropout { x, width, plan, run, out }))
}

struct Dropout<'a, 's, T> {
    x: &'a [T],
    width: usize,
    plan: &'a DropoutPlan,
    run: Range<usize>,
    out: &'a mut Sink<'s, T>,
}

impl<T: Elem> Vectorised for Dropout<'_, '_, T> {
    type Out = ();

    #[inline(always)]
    fn run(self) {
        let Self { x, width, plan, run, out } = self;
        let scale = T::Acc::of_f64(plan.scale());
        let mut mask = Mask::new(plan, width);
        for from in run.clone().step_by(mask.tile()) {
            let rows = from..(from + mask.tile()).min(run.end);
            mask.draw(rows.clone());
            for r in rows {
                let (x, words) = (&x[r * width..][..width], mask.row(r, width));
                out.put_from(width, |j| {
                    T::of(if mask.keeps(words[j]) { x[j].acc() * scale } else { T::Acc::ZERO })
                });
            }
        }
    }
}
