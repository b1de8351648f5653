//! Applies dropout with a counter-based mask: to rows, and inside attention.

use burn::backend::cubecl::dtype_to_storage_type as elem;
use burn::tensor::DType;
use burn_cubecl::CubeDevice;
use burn_cubecl::tensor::CubeTensor;
use burn_gnn_graph::{Bytes, CountBytes};
use burn_gnn_plan::DropoutPlan;
use cubecl::prelude::*;

use crate::check::Call;
use crate::device::{device_bytes, dummy, upload};
use crate::device_cache::Resident;
use crate::launch::{address, arg, empty, features, grid, wide};
use crate::philox::{Draws, DrawsLaunch, keeps, words};

/// The id that each row (or edge) is keyed by, on a device.
#[derive(Clone, Debug)]
struct RowIds {
    /// Two words of each.
    words: CubeTensor,
    len: usize,
}

impl CountBytes for RowIds {
    fn bytes(&self) -> Bytes {
        device_bytes(&self.words)
    }
}

/// Ids of rows on devices, for as long as a caller holds them.
static IDS: Resident<u64, 1, CubeDevice, RowIds> = Resident::new();

/// Which entries a dropout keeps: column `c` of row `r` has word `c % 4` of Philox4x32-10 with counter
/// `(id(r), c / 4)`, and stays, multiplied by `scale`, iff that is at least `threshold`; otherwise it becomes 0.
#[derive(Clone, Debug)]
pub(crate) struct Dropout {
    /// The Philox key.
    key: [u32; 2],
    /// Words of at least this keep their entry, at most 2³².
    threshold: u64,
    /// What kept entries are multiplied by.
    scale: f64,
    /// Ids of rows; `None` stands for `0..rows`.
    ids: Option<RowIds>,
}

impl Dropout {
    /// The draws of a plan.
    ///
    /// # Panics
    /// If its ids are larger than a buffer of the device.
    #[track_caller]
    pub(crate) fn of(plan: &DropoutPlan, device: &CubeDevice) -> Self {
        let upload = |ids: &[u64]| {
            let words: Vec<u32> =
                ids.iter().flat_map(|&id| [id as u32, (id >> 32) as u32]).collect();
            RowIds { words: upload("ids of rows", &words, device), len: ids.len() }
        };
        let ids = plan.ids().map(|ids| IDS.get_or_insert([ids], device.clone(), || upload(ids)));
        Self { key: plan.stream().key(), threshold: plan.threshold(), scale: plan.scale(), ids }
    }
    /// A dropout that takes nothing where there is none: kernels without dropout do not read it but for its scale.
    #[track_caller]
    pub(crate) fn maybe(plan: Option<&DropoutPlan>, device: &CubeDevice) -> Self {
        plan.map_or(Self { key: [0; 2], threshold: 0, scale: 1.0, ids: None }, |plan| {
            Self::of(plan, device)
        })
    }
    /// Refuses fewer ids than rows.
    #[track_caller]
    pub(crate) fn check(&self, call: &Call, rows: usize) {
        if let Some(RowIds { words, len }) = &self.ids {
            call.array("dropout.ids", words, *len, rows);
        }
    }
    /// As a kernel's argument, with sums in `sums`.
    pub(crate) fn launch(&self, sums: DType) -> DrawsLaunch {
        let from = self.threshold.min(u64::from(u32::MAX)) as u32;
        let none = u32::from(self.threshold > u64::from(u32::MAX));
        DrawsLaunch::new(
            self.key[0],
            self.key[1],
            from,
            none,
            InputScalar::new(self.scale, elem(sums)),
            self.ids.is_some(),
        )
    }
    /// Ids, or `dummy`, which is never read.
    pub(crate) fn ids<'a>(&'a self, dummy: &'a CubeTensor) -> &'a CubeTensor {
        self.ids.as_ref().map_or(dummy, |ids| &ids.words)
    }
}

#[cube(launch_unchecked, address_type = "dynamic")]
fn dropout_kernel<F: Float, A: Float>(
    x: &[F],
    ids: &[u32],
    out: &mut [F],
    draws: &Draws,
    rows: usize,
    width: usize,
    blocks: usize,
    #[define(F, A)] _types: [ElemType; 2],
) {
    let pos = ABSOLUTE_POS;
    if pos >= rows * blocks {
        terminate!();
    }
    let row = pos / blocks;
    let block = pos % blocks;
    let words = words(draws, ids, row, block as u32);
    let scale = draws.scale.get::<A>();
    #[unroll]
    for k in 0..4usize {
        let col = block * 4 + k;
        if col < width {
            let at = row * width + col;
            let kept = A::cast_from(x[at]) * scale;
            out[at] = F::cast_from(select(keeps(draws, words.extract(k)), kept, A::new(0.0_f32)));
        }
    }
}

/// `x` with dropped entries 0 and the others scaled. It is linear, so it is its own gradient.
///
/// # Shapes
/// - `x`: `[rows, ..]`; columns are counted through all axes but the first
/// - returns the same shape
///
/// # Semantics
/// A dropped NaN is 0. f16 and bf16 are scaled in f32.
///
/// # Panics
/// If `x` is not made of floats, has no axis, or there are ids, but fewer than rows.
#[track_caller]
pub fn dropout_rows(plan: &DropoutPlan, x: CubeTensor) -> CubeTensor {
    let call = Call::new("dropout_rows", "x", &x);
    let dropout = Dropout::of(plan, &x.device);
    let (rows, width) =
        (x.meta.shape().first().copied().unwrap_or(1), features(&x).iter().product::<usize>());
    let x = call.rows("x", x, rows, width);
    dropout.check(&call, rows);
    if x.meta.num_elements() == 0 {
        return x;
    }
    let out = empty(&x, x.meta.shape().clone(), x.dtype);
    let (blocks, dummy) = (width.div_ceil(4), dummy(&x));
    let (count, dim) = grid(&x.client, rows * blocks);
    // SAFETY: `x` has `rows` rows of `width` columns, and ids are at least as many (checked above). Threads beyond the
    // last block of the last row return early, and columns beyond a row are left out.
    unsafe {
        dropout_kernel::launch_unchecked(
            &out.client,
            count,
            dim,
            address(&[&x], rows * blocks),
            arg(&x),
            arg(dropout.ids(&dummy)),
            arg(&out),
            dropout.launch(wide(x.dtype)),
            rows,
            width,
            blocks,
            [elem(x.dtype), elem(wide(x.dtype))],
        );
    }
    out
}
