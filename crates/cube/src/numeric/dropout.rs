//! The counter-based mask of dropout, for rows and for attention.

use burn::backend::cubecl::dtype_to_storage_type as elem;
use burn::tensor::DType;
use burn_cubecl::CubeDevice;
use burn_cubecl::tensor::CubeTensor;
use burn_gnn_graph::{Bytes, CountBytes};
use burn_gnn_plan::DropoutPlan;
use cubecl::prelude::InputScalar;

use crate::device::check::Call;
use crate::device::launch::arg;
use crate::device::resident::Resident;
use crate::device::upload::{device_bytes, upload};
use crate::numeric::philox::DrawsLaunch;

/// The ids that key the draws of rows or edges, on a device.
#[derive(Clone, Debug)]
struct RowIds {
    /// Two words per id.
    words: CubeTensor,
    len: usize,
}

impl CountBytes for RowIds {
    fn bytes(&self) -> Bytes {
        device_bytes(&self.words)
    }
}

/// Device copies of ids, as long as a caller holds the array of ids.
static IDS: Resident<u64, 1, CubeDevice, RowIds> = Resident::new();

/// The mask of a dropout. Column `c` of row `r` has word `c % 4` of Philox4x32-10 with counter `(id(r), c / 4)`. If the
/// word is at least `threshold`, the entry is multiplied by `scale`; otherwise it is set to 0.
#[derive(Clone, Debug)]
pub(crate) struct Dropout {
    /// The Philox key.
    key: [u32; 2],
    /// Smallest word that keeps its entry, at most 2³².
    threshold: u64,
    /// Factor of kept entries.
    scale: f64,
    /// Ids of rows; `None` for `0..rows`.
    ids: Option<RowIds>,
}

impl Dropout {
    /// The mask of a plan.
    ///
    /// # Panics
    /// If the ids are larger than a buffer of the device.
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
    /// Panics if there are fewer ids than rows.
    #[track_caller]
    pub(crate) fn check(&self, call: &Call, rows: usize) {
        if let Some(RowIds { words, len }) = &self.ids {
            call.array("dropout.ids", words, *len, rows);
        }
    }
    /// The kernel argument, for accumulators of type `sums`.
    pub(crate) fn launch(&self, sums: DType) -> DrawsLaunch {
        let from = self.threshold.min(u64::from(u32::MAX)) as u32;
        let none = u32::from(self.threshold > u64::from(u32::MAX));
        let scale = InputScalar::new(self.scale, elem(sums));
        let ids = self.ids.as_ref().map(|ids| arg(&ids.words));
        DrawsLaunch::new(self.key[0], self.key[1], from, none, scale, ids.into())
    }
}
