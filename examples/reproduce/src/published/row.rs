//! A row of the table of published figures.

use serde_json::json;

/// A figure of a model on a set, next to the published one and a cheap baseline.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    pub(crate) set: String,
    pub(crate) model: String,
    pub(crate) protocol: String,
    pub(crate) metric: String,
    /// `None` if no paper has it.
    pub(crate) published: Option<f64>,
    pub(crate) baseline: Option<f64>,
    /// One figure per seed.
    pub(crate) ours: Vec<f64>,
    /// Seconds of all seeds.
    pub(crate) seconds: f64,
}

impl Row {
    pub(crate) const HEADER: &str = "set              model            metric     published  baseline  ours               seeds  seconds  protocol";

    /// Mean over seeds.
    pub(crate) fn mean(&self) -> f64 {
        self.ours.iter().sum::<f64>() / self.ours.len() as f64
    }

    /// Standard deviation over seeds, of a sample; 0 for one seed.
    pub(crate) fn deviation(&self) -> f64 {
        let (mean, n) = (self.mean(), self.ours.len());
        let squares: f64 = self.ours.iter().map(|x| (x - mean).powi(2)).sum();
        (squares / (n.max(2) - 1) as f64).sqrt()
    }

    pub(crate) fn json(&self) -> String {
        json!({
            "set": self.set,
            "model": self.model,
            "protocol": self.protocol,
            "metric": self.metric,
            "published": self.published,
            "baseline": self.baseline,
            "ours": self.mean(),
            "deviation": self.deviation(),
            "seeds": self.ours.len(),
            "seconds": self.seconds,
        })
        .to_string()
    }

    pub(crate) fn text(&self) -> String {
        let some = |x: Option<f64>| x.map_or_else(|| "–".to_owned(), |x| format!("{x:.3}"));
        format!(
            "{:<16} {:<16} {:<10} {:<10} {:<9} {:<18} {:<6} {:<8.0} {}",
            self.set,
            self.model,
            self.metric,
            some(self.published),
            some(self.baseline),
            format!("{:.4} ± {:.4}", self.mean(), self.deviation()),
            self.ours.len(),
            self.seconds,
            self.protocol
        )
    }
}
