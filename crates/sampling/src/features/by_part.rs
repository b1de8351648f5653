//! Gathers rows that are distributed over several sources.

use burn::tensor::{Device, Int, Tensor};

use burn_gnn_graph::GraphError;
use burn_gnn_graph::row_index;

/// Rows that were asked for, by the part that has them.
pub(super) struct ByPart {
    /// Rows of each part, in the order asked for.
    pub(super) rows: Vec<Vec<u32>>,
    /// Part of each row asked for, and its place among those of the part.
    pub(super) of: Vec<(usize, usize)>,
}

impl ByPart {
    /// Of the part and the row there of each row asked for.
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

    /// The rows in the order asked for, of what each part that has some gives on `device`; none where no rows were
    /// asked for.
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
            // All from one place, in their order.
            return Ok(found.pop());
        }
        let order = self.of.iter().map(|&(part, row)| starts[part] + row);
        let index: Tensor<1, Int> = row_index(order, device);
        Ok(Some(Tensor::cat(found, 0).select(0, index)))
    }
}

/// Rows of a tensor on `owner`, of which there are some, as a tensor on `device`.
pub(super) fn select(x: &Tensor<2>, rows: &[u32], owner: &Device, device: &Device) -> Tensor<2> {
    let index: Tensor<1, Int> = row_index(rows.iter().map(|&row| row as usize), owner);
    let found = x.clone().select(0, index);
    if owner == device { found } else { found.to_device(device) }
}
