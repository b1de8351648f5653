//! Gathers and scatter-adds halo features by GPU kernels.

use std::sync::Arc;

use burn::backend::ops::FloatTensorOps;
use burn::backend::tensor::FloatTensor;
use burn_cubecl::CubeBackend;
use burn_gnn_cube::{Resident, RowIndex, gather_rows, scatter_add_rows};

use super::backend::HaloBackend;

/// Row indices on the device, by the ids of a plan and the number of rows. They are freed with the plan.
static INDICES: Resident<u32, 1, usize, RowIndex> = Resident::new();

fn index(ids: &Arc<[u32]>, rows: usize) -> RowIndex {
    let make = || match RowIndex::new(ids, rows) {
        Ok(index) => index,
        Err(e) => unreachable!("rows of a plan are in range: {e}"),
    };
    INDICES.get_or_insert([ids], rows, make)
}

/// Uses the kernels of `burn-gnn-cube`, because Burn's scatter-add reads all rows once for every column.
impl HaloBackend for CubeBackend {
    fn halo_gather(x: FloatTensor<Self>, ids: Arc<[u32]>) -> FloatTensor<Self> {
        let rows = index(&ids, x.meta.shape()[0]);
        gather_rows(x, &rows)
    }
    fn halo_add(
        x: FloatTensor<Self>,
        rows: FloatTensor<Self>,
        ids: Arc<[u32]>,
    ) -> FloatTensor<Self> {
        let index = index(&ids, x.meta.shape()[0]);
        Self::float_add(x, scatter_add_rows(rows, &index))
    }
}
