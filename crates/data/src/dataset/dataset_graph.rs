//! Puts features, labels and masks of a data set into the frames of its graph.

use burn::tensor::{Bool, Device, Int, Tensor, TensorData};
use burn_gnn_files::DataError;
use burn_gnn_graph::{Frame, Graph};

use crate::dataset::{Dataset, Features, Split};

impl Features {
    /// As a dense tensor `[rows, cols]` on a device, in the float type of its settings.
    ///
    /// # Errors
    /// As [`try_to_dense`](Self::try_to_dense).
    ///
    /// # Cost
    /// As [`to_dense`](Self::to_dense), and a copy to the device.
    pub fn to_tensor(&self, device: &Device) -> Result<Tensor<2>, DataError> {
        Ok(Tensor::from_data(
            TensorData::new(self.try_to_dense()?, [self.rows(), self.cols()]),
            device,
        ))
    }
}

impl Dataset {
    /// The graph with everything in its frames, as PyG's `Data` and DGL's data sets have it.
    ///
    /// | column | of | shape, type |
    /// | --- | --- | --- |
    /// | `x` | node types with features | `[nodes, features]`, float |
    /// | `y` | the target type | `[nodes]`, int; -1 without a class |
    /// | `train_mask`, `val_mask`, `test_mask` | the target type, of a set with one split | `[nodes]`, bool |
    /// | `train_mask_<split>`, … | the target type, of a set with several | `[nodes]`, bool |
    ///
    /// ```
    /// use burn::tensor::Device;
    /// use burn_gnn_data::karate_club;
    /// let g = karate_club().to_graph(&Device::flex())?;
    /// let nodes = g.nodes(..)?;
    /// assert_eq!(nodes.get::<2>("x")?.dims(), [34, 34]);
    /// assert_eq!(nodes.get_int::<1>("y")?.dims(), [34]);
    /// assert_eq!(nodes.get_as::<1, burn::tensor::Bool>("train_mask")?.int().sum().into_scalar::<i64>(), 2);
    /// # Ok::<(), burn_gnn_data::DataError>(())
    /// ```
    ///
    /// # Errors
    /// [`GraphError::OutOfMemory`](burn_gnn_graph::GraphError::OutOfMemory) for features whose dense form no memory
    /// holds; a node id of a split that is out of range.
    ///
    /// # Cost
    /// Structure is shared; features are copied to their dense form. Keep [`features`](Self::features) where they are
    /// sparse and wide.
    pub fn to_graph(&self, device: &Device) -> Result<Graph, DataError> {
        let mut g = self.graph.clone();
        for (ntype, features) in &self.features {
            g.nodes_mut(ntype.as_str())?.insert("x", features.to_tensor(device)?)?;
        }
        let nodes = g.nodes_mut(self.target.as_str())?;
        let labels = TensorData::new(self.labels.clone(), [self.labels.len()]);
        nodes.insert("y", Tensor::<1, Int>::from_data(labels, device))?;
        for (name, split) in &self.splits {
            let suffix = if self.splits.len() == 1 { String::new() } else { format!("_{name}") };
            split.insert_named(nodes, &suffix, device)?;
        }
        Ok(g)
    }
}

impl Split {
    /// Adds the columns `train_mask`, `val_mask` and `test_mask` to the nodes it splits, as PyG and DGL keep splits and
    /// `NodeTask::from_columns` reads them.
    ///
    /// ```
    /// use burn::tensor::{Bool, Device};
    /// use burn_gnn_data::Split;
    /// use burn_gnn_graph::Frame;
    /// let mut papers = Frame::new("nodes of `paper`", 4);
    /// Split::by_ratio(&[0, 1, 1, -1], [1.0, 0.0, 0.0], 0)?.insert_masks(&mut papers, &Device::flex())?;
    /// let mask = papers.get_as::<1, Bool>("train_mask")?.into_data();
    /// assert_eq!(mask.iter::<bool>().collect::<Vec<_>>(), [true, true, true, false]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// A node that `nodes` does not have; other columns of `nodes` on another device, a column of that name that is no
    /// mask. Nothing is inserted then.
    pub fn insert_masks(&self, nodes: &mut Frame, device: &Device) -> Result<(), DataError> {
        self.insert_named(nodes, "", device)
    }

    /// The same with a suffix behind each name.
    fn insert_named(
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
        // One that the frame refuses comes first, so that nothing is inserted then.
        let fits = |name: &str, mask: &Tensor<1, Bool>| {
            nodes.column(name).map_or(true, |column| column.dtype() == mask.dtype())
        };
        masks.sort_by_key(|(name, mask)| fits(name, mask));
        for (name, mask) in masks {
            nodes.insert(name, mask)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::karate_club;

    #[test]
    fn frames_hold_what_the_set_holds() {
        let device = Device::flex();
        let mut club = karate_club();
        let g = club.to_graph(&device).unwrap();
        let nodes = g.nodes(..).unwrap();
        assert_eq!(
            nodes.get_int::<1>("y").unwrap().into_data().iter::<i64>().collect::<Vec<_>>(),
            club.labels
        );
        let x = nodes.get::<2>("x").unwrap().into_data().try_to_vec::<f32>().unwrap();
        assert_eq!(x, club.features["_N"].to_dense());
        let mask = |g: &Graph, name: &str| -> Vec<u32> {
            let mask = g.nodes(..).unwrap().get_as::<1, Bool>(name).unwrap().into_data();
            (0..34).filter(|&i| mask.iter::<bool>().nth(i as usize).unwrap()).collect()
        };
        let split = club.splits["public"].clone();
        assert_eq!(
            [mask(&g, "train_mask"), mask(&g, "val_mask"), mask(&g, "test_mask")],
            [split.train, vec![], split.test]
        );
        assert!(
            club.graph.nodes(..).unwrap().columns().next().is_none(),
            "the set's own graph stays as it was"
        );

        // Several splits are distinguished by name, ids out of range are refused.
        club.splits.insert("second".into(), Split { train: vec![5], val: vec![6], test: vec![7] });
        let g = club.to_graph(&device).unwrap();
        assert_eq!(
            [mask(&g, "train_mask_public"), mask(&g, "val_mask_second")],
            [vec![0, 33], vec![6]]
        );
        club.splits.insert("third".into(), Split { train: vec![34], val: vec![], test: vec![] });
        let e = club.to_graph(&device).unwrap_err().to_string();
        assert!(e.contains("train_mask_third") && e.contains("34"), "{e}");
    }

    /// Nothing is inserted where one part is wrong.
    #[test]
    fn wrong_splits_leave_the_frame_as_it_was() {
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
