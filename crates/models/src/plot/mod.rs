//! Draws learning curves as SVG pictures: losses above, accuracies below, over epochs (feature `plot`).
//!
//! ```
//! # #[cfg(feature = "plot")] {
//! # let dir = tempfile::tempdir().unwrap();
//! # let file = dir.path().join("run.svg");
//! use burn_gnn_models::plot::{Panel, Series, write_svg};
//! let loss = Series { name: "training loss".into(), panel: Panel::Loss, values: vec![1.9, 1.2, 0.8] };
//! write_svg(&file, "GCN on Cora", &[loss])?;
//! assert!(std::fs::read_to_string(&file).unwrap().starts_with("<svg"));
//! # }
//! # Ok::<(), burn_gnn_models::ModelError>(())
//! ```

#[cfg(feature = "plot")]
mod svg;

use crate::training::train::Epoch;
#[cfg(feature = "plot")]
pub use svg::write_svg;

/// The part of the picture that a series is drawn in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Panel {
    /// Losses, on an axis from 0 or the smallest value to the largest.
    Loss,
    /// Values in `0.0..=1.0`: accuracies, mean reciprocal ranks.
    Accuracy,
}

/// One curve.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// What the legend says.
    pub name: String,
    /// Where it is drawn.
    pub panel: Panel,
    /// Value `i` belongs to epoch `i + 1`.
    pub values: Vec<f64>,
}

/// Loss and accuracy of training and validation over epochs, as recorded by [`train`](fn@crate::train).
pub fn learning_curves(history: &[Epoch]) -> Vec<Series> {
    let series = |name: &str, panel, value: fn(&Epoch) -> Option<f64>| Series {
        name: name.into(),
        panel,
        values: history.iter().filter_map(value).collect(),
    };
    let mut all = vec![
        series("training loss", Panel::Loss, |e| Some(e.loss)),
        series("validation loss", Panel::Loss, |e| e.val_loss),
        series("training accuracy", Panel::Accuracy, |e| Some(e.train_accuracy)),
        series("validation accuracy", Panel::Accuracy, |e| e.val_accuracy),
    ];
    all.retain(|s| !s.values.is_empty());
    all
}
