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

use crate::training::history::Epoch;
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

/// Loss and metric of training and validation over epochs, as recorded by [`fit`](fn@crate::fit).
pub fn learning_curves(history: &[Epoch]) -> Vec<Series> {
    let metric = history.first().map_or("loss", |e| e.metric);
    let panel = match metric {
        "loss" | "RMSE" | "MAE" => Panel::Loss,
        _ => Panel::Accuracy,
    };
    let series = |name: String, panel, value: fn(&Epoch) -> Option<f64>| Series {
        name,
        panel,
        values: history.iter().filter_map(value).collect(),
    };
    let mut all = vec![
        series("training loss".into(), Panel::Loss, |e| Some(e.loss)),
        series("validation loss".into(), Panel::Loss, |e| e.val_loss),
    ];
    if metric != "loss" {
        all.push(series(format!("training {metric}"), panel, |e| e.train_score));
        all.push(series(format!("validation {metric}"), panel, |e| e.val_score));
    }
    all.retain(|s| !s.values.is_empty());
    all
}
