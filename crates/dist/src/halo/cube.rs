//! Gathers and scatter-adds halo features by GPU kernels.

use std::sync::Arc;

use burn::backend::ops::FloatTensorOps;
use burn::backend::tensor::FloatTensor;
use burn_cubecl::CubeBackend;
use burn_gnn_cube::{Resident, RowIndex, gather_rows, scatter_add_rows};

use super::backend::HaloBackend;

/// Rows that plans name, by the number of rows there are, for as long as the plan is there.
static ROWS: Resident<u32, 1, usize, RowIndex> = Resident::new();

fn index(ids: &Arc<[u32]>, rows: usize) -> RowIndex {
    let make = || match RowIndex::new(ids, rows) {
        Ok(index) => index,
        Err(e) => unreachable!("a plan names rows that a rank has: {e}"),
    };
    ROWS.get_or_insert([ids], rows, make)
}

/// Kernels of `burn-gnn-cube`: Burn's own sum by index goes through all rows once for every column.
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
