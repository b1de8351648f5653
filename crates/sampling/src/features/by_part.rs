//! Splits a gather over several parts, and restores the order of rows.

use burn::tensor::{Device, Int, Tensor};

use burn_gnn_graph::GraphError;
use burn_gnn_graph::row_index;

/// Requested rows, grouped by the part that stores them.
pub(super) struct ByPart {
    /// Rows to read from each part, in request order.
    pub(super) rows: Vec<Vec<u32>>,
    /// Part of each requested row, and its position among the rows of the part.
    pub(super) of: Vec<(usize, usize)>,
}

impl ByPart {
    /// Groups requested rows, given as `(part, row in the part)`.
    pub(super) fn new(parts: usize, asked: impl Iterator<Item = (usize, u32)>) -> Self {
        let mut rows = vec![vec![]; parts];
        let place = |(part, row): (usize, u32)| {
            let rows: &mut Vec<u32> = &mut rows[part];
            rows.push(row);
            (part, rows.len() - 1)
        };
        let of = asked.map(place).collect();
        Self { rows, of }
    }

    /// Concatenates the tensors of all parts on `device`, and reorders the rows to request order. `None` if no rows were
    /// requested.
    pub(super) fn gather(
        &self,
        device: &Device,
        mut of_part: impl FnMut(usize, &[u32]) -> Result<Tensor<2>, GraphError>,
    ) -> Result<Option<Tensor<2>>, GraphError> {
        let mut found = vec![];
        let mut starts = vec![0];
        for (part, rows) in self.rows.iter().enumerate() {
            if !rows.is_empty() {
                found.push(of_part(part, rows)?);
            }
            starts.push(starts[part] + rows.len());
        }
        if found.len() < 2 {
            // One part only: its rows are in request order already.
            return Ok(found.pop());
        }
        let order = self.of.iter().map(|&(part, row)| starts[part] + row);
        let index: Tensor<1, Int> = row_index(order, device);
        Ok(Some(Tensor::cat(found, 0).select(0, index)))
    }
}

/// Selects rows (at least one) of a tensor on `owner`, and moves them to `device`.
pub(super) fn select(x: &Tensor<2>, rows: &[u32], owner: &Device, device: &Device) -> Tensor<2> {
    let index: Tensor<1, Int> = row_index(rows.iter().map(|&row| row as usize), owner);
    let found = x.clone().select(0, index);
    if owner == device { found } else { found.to_device(device) }
}
