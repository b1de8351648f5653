//! Masks of dropout on devices.

use burn_cubecl::CubeDevice;
use burn_gnn_cube::{Dropout, Resident, RowIds};

use super::DropoutPlan;

/// Ids of rows on devices, for as long as a caller holds them.
static IDS: Resident<u64, 1, CubeDevice, RowIds> = Resident::new();

/// The draws of a plan, for kernels.
pub(crate) fn draws(plan: &DropoutPlan, device: &CubeDevice) -> Dropout {
    let ids = plan.ids.as_ref().map(|ids| IDS.get_or_insert([ids], device.clone(), || RowIds::upload(ids, device)));
    Dropout { key: plan.stream().key(), threshold: plan.threshold(), scale: plan.scale(), ids }
}
