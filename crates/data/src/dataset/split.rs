//! Training, validation and test nodes, as lists of node ids or as masks.

use std::path::Path;

use burn::tensor::{Bool, Device, Tensor, TensorData};
use burn_gnn_files::DataError;
use burn_gnn_graph::Frame;

use crate::files::format_error;

/// A node split: training, validation and test nodes of the target type.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Split {
    /// Training nodes.
    pub train: Vec<u32>,
    /// Validation nodes. Empty if the data set defines none; hold out a part of `train` then.
    pub val: Vec<u32>,
    /// Test nodes.
    pub test: Vec<u32>,
}

impl Split {
    /// Inserts the columns `train_mask`, `val_mask` and `test_mask` into a node frame. PyG and DGL store splits like
    /// this, and `NodeTask::from_columns` reads these columns.
    ///
    /// ```
    /// use burn::tensor::{Bool, Device};
    /// use burn_gnn_data::Split;
    /// use burn_gnn_graph::Frame;
    ///
    /// fn main() -> Result<(), Box<dyn std::error::Error>> {
    ///     let mut papers = Frame::new("nodes of `paper`", 4);
    ///     Split::by_ratio(&[0, 1, 1, -1], [1.0, 0.0, 0.0], 0)?.insert_masks(&mut papers, &Device::flex())?;
    ///     let mask = papers.get_as::<1, Bool>("train_mask")?.into_data();
    ///     assert_eq!(mask.iter::<bool>().collect::<Vec<_>>(), [true, true, true, false]);
    ///     Ok(())
    /// }
    /// ```
    ///
    /// # Errors
    /// * A node id that is not in `nodes`.
    /// * `nodes` has columns on another device, or a column of one of these names with another type.
    ///
    /// After an error `nodes` is unchanged.
    pub fn insert_masks(&self, nodes: &mut Frame, device: &Device) -> Result<(), DataError> {
        self.insert_named(nodes, "", device)
    }

    /// [`insert_masks`](Self::insert_masks) with a suffix for the column names.
    pub(super) fn insert_named(
        &self,
        nodes: &mut Frame,
        suffix: &str,
        device: &Device,
    ) -> Result<(), DataError> {
        let names = ["train", "val", "test"].map(|part| format!("{part}_mask{suffix}"));
        for (arg, ids) in names.iter().zip([&self.train, &self.val, &self.test]) {
            burn_gnn_graph::internal::check_ids(arg, nodes.label(), ids, nodes.len())?;
        }
        let mut masks = Vec::with_capacity(names.len());
        for (name, mask) in names.iter().zip(self.masks(nodes.len())) {
            let mask = TensorData::new(mask, [nodes.len()]);
            masks.push((name, Tensor::<1, Bool>::from_data(mask, device)));
        }
        // A mask that the frame rejects is inserted first, so that an error leaves the frame unchanged.
        let fits = |name: &str, mask: &Tensor<1, Bool>| {
            nodes.column(name).map_or(true, |column| column.dtype() == mask.dtype())
        };
        masks.sort_by_key(|(name, mask)| fits(name, mask));
        for (name, mask) in masks {
            nodes.insert(name, mask)?;
        }
        Ok(())
    }

    /// Boolean masks of length `num_nodes` for training, validation and test nodes, as PyG and DGL store splits.
    ///
    /// # Panics
    /// A node id is not below `num_nodes`.
    #[track_caller]
    pub fn masks(&self, num_nodes: usize) -> [Vec<bool>; 3] {
        [&self.train, &self.val, &self.test].map(|part| {
            let mut mask = vec![false; num_nodes];
            part.iter().for_each(|&v| mask[v as usize] = true);
            mask
        })
    }
    /// Creates a split from boolean masks of training, validation and test nodes.
    pub fn from_masks(masks: [&[bool]; 3]) -> Self {
        let part =
            |mask: &[bool]| mask.iter().enumerate().filter(|m| *m.1).map(|m| m.0 as u32).collect();
        let [train, val, test] = masks.map(part);
        Self { train, val, test }
    }
}

/// Returns an error if a node occurs twice in a split or has no label. The ids must be in range.
pub(crate) fn check_split(
    described_in: &Path,
    name: &str,
    split: &Split,
    labels: &[i64],
) -> Result<(), DataError> {
    let mut part_of: Vec<Option<&str>> = vec![None; labels.len()];
    for (part, ids) in [("train", &split.train), ("val", &split.val), ("test", &split.test)] {
        for &v in ids {
            let v = v as usize;
            if let Some(other) = part_of[v].replace(part) {
                let why = format!(
                    "split `{name}`: expected every node once, found node {v} in {other} and again in {part}"
                );
                return Err(format_error(described_in, why));
            }
            if labels[v] < 0 {
                return Err(format_error(
                    described_in,
                    format!(
                        "split `{name}`: expected labelled nodes, found node {v} of {part} without a label"
                    ),
                ));
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// If one mask is wrong, none is inserted.
    #[test]
    fn a_wrong_split_leaves_the_frame_unchanged() {
        let mut nodes = Frame::new("nodes of `a`", 3);
        let split = Split { train: vec![0], val: vec![3], test: vec![] };
        let e = split.insert_masks(&mut nodes, &Device::flex()).unwrap_err().to_string();
        assert!(e.contains("val_mask") && e.contains('3'), "{e}");
        assert_eq!(nodes.columns().count(), 0);
        let taken = Tensor::<1>::zeros([3], &Device::flex());
        nodes.insert("val_mask", taken).unwrap();
        let split = Split { train: vec![0], val: vec![1], test: vec![] };
        assert!(split.insert_masks(&mut nodes, &Device::flex()).is_err());
        assert_eq!(nodes.columns().count(), 1);
    }
}
