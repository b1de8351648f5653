//! Values of a metric, and which metric is defined for some targets.

use std::fmt;

use burn::serde::{Deserialize, Serialize};
use burn_gnn_data::{Targets, TaskType};

use crate::metrics::metric::Metric;

/// The metric of a part of a task.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(crate = "burn::serde")]
pub struct TaskScore {
    /// Name of the metric: [`TaskType::metric`](burn_gnn_data::TaskType::metric), or `loss` where the targets do not
    /// define it.
    pub metric: String,
    /// Its value.
    pub value: f64,
}

/// `roc_auc 0.8420`.
impl fmt::Display for TaskScore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {:.4}", self.metric, self.value)
    }
}

impl TaskScore {
    /// A value of a metric of tasks of a type.
    pub(crate) fn new(task_type: TaskType, metric: &Metric, value: f64) -> Self {
        let is_loss = metric.name() == Metric::loss().name();
        let metric = if is_loss { metric.name() } else { task_type.metric() };
        Self { metric: metric.to_owned(), value }
    }
}

/// Whether any seed has a target.
pub(crate) fn labelled(targets: Option<&Targets>) -> bool {
    match targets {
        None => false,
        Some(Targets::Classes(v)) => v.iter().any(|class| *class >= 0),
        Some(Targets::Values(v)) => v.iter().any(|x| x.is_finite()),
        Some(Targets::Labels { values, .. }) => values.iter().any(|x| !x.is_nan()),
        Some(Targets::Lists(v)) => v.iter().any(|list| !list.is_empty()),
    }
}

/// The metric, or the loss where it is not defined for these targets: the area under the ROC curve needs both classes.
pub(crate) fn defined(metric: Metric, targets: Option<&Targets>) -> Metric {
    let both = |has: &dyn Fn(bool) -> bool| has(true) && has(false);
    let is_defined = match targets {
        Some(Targets::Classes(v)) => both(&|positive| v.iter().any(|y| *y == i64::from(positive))),
        Some(Targets::Labels { columns, values }) => (0..*columns).any(|column| {
            let of = || values.iter().skip(column).step_by(*columns);
            both(&|positive| of().any(|y| *y == f32::from(u8::from(positive))))
        }),
        _ => true,
    };
    if metric.name() == Metric::roc_auc().name() && !is_defined { Metric::loss() } else { metric }
}
