//! Masks of dropout on devices.

use burn_cubecl::{CubeBackend, CubeDevice};
use burn_gnn_cube::{self as cube, Dropout, Resident, RowIds};

use super::DropoutPlan;
use crate::operator::{OnCube, Tensors};

/// Ids of rows on devices, for as long as a caller holds them.
static IDS: Resident<u64, 1, CubeDevice, RowIds> = Resident::new();

/// The draws of a plan, for kernels.
pub(crate) fn draws(plan: &DropoutPlan, device: &CubeDevice) -> Dropout {
    let ids = plan.ids.as_ref().map(|ids| IDS.get_or_insert([ids], device.clone(), || RowIds::upload(ids, device)));
    Dropout { key: plan.stream().key(), threshold: plan.threshold(), scale: plan.scale(), ids }
}

impl OnCube for DropoutPlan {
    fn cube(&self, inputs: Tensors<CubeBackend>) -> Tensors<CubeBackend> {
        let [x] = inputs.take();
        let dropout = draws(self, &x.device);
        Tensors::one(cube::dropout_rows(x, &dropout))
    }
}
