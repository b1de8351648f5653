//! Recommends without a model: what is popular, and what an entity had last.

use std::collections::BTreeMap;

use burn_gnn_data::{Database, DatabaseTask, Part, Protocol, Targets};
use burn_gnn_models::ModelError;

use crate::database::seen_rows::{SeenRows, TERMS};
use crate::database::train::destination_of;
use crate::database::trained::id_lists;
use crate::ranking::metrics::MetricsAt;
use crate::ranking::top_k::TopK;

/// Lists without a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecommendationBaseline {
    /// The destinations in the most labels of the parts before, equal for all entities: of training for validation, of
    /// training and validation for test.
    Popularity,
    /// The destinations of the latest rows that refer to the entity, as far as the seed sees them, then the popular ones.
    LatestRows,
}

impl RecommendationBaseline {
    /// Metrics of a part of a recommendation task; `None` if no row has a label. Equal scores are ordered by row.
    ///
    /// # Errors
    /// An unknown task, a task of another type.
    pub fn metrics(
        self,
        db: &Database,
        task: &str,
        part: Part,
        protocol: Protocol,
    ) -> Result<Option<MetricsAt>, ModelError> {
        let task = db.task(task)?;
        let (table, k) = destination_of(db, task)?;
        let lists = labels(task, part);
        if lists.iter().all(Vec::is_empty) {
            return Ok(None);
        }
        let before = match part {
            Part::Test => &[Part::Train, Part::Val][..],
            _ => &[Part::Train][..],
        };
        let mut counts: BTreeMap<u32, usize> = BTreeMap::new();
        let all = before.iter().flat_map(|&part| labels(task, part)).flatten();
        all.for_each(|&row| *counts.entry(row).or_default() += 1);
        let popular = sorted(counts.into_iter().map(|(row, n)| (row, n as f64)).collect());
        let graph = match self {
            Self::Popularity => None,
            Self::LatestRows => Some(db.to_graph()?),
        };
        let seen = graph.as_ref().map(|of| SeenRows::between(of, &task.entity_table, table));
        let rows = task.rows(part);
        let list = |i: usize| {
            let time = rows.times[i];
            let visible = protocol.visible_until(part, time, db);
            let of = seen.as_ref().map(|seen| seen.of(rows.entities[i], time, visible));
            let score = |terms: &[f32]| {
                let of_path =
                    terms.chunks(TERMS).map(|of| f64::from(of[1]) + 1e-6 * f64::from(of[0]));
                of_path.sum::<f64>()
            };
            let own = of.unwrap_or_default().into_iter().map(|(row, terms)| (row, score(&terms)));
            let mut list = sorted(own.collect());
            let first: Vec<u32> = list.iter().map(|entry| entry.0).collect();
            list.extend(popular.iter().filter(|(row, _)| !first.contains(row)));
            list.truncate(k);
            list
        };
        let found = (0..rows.len()).map(list).collect();
        Ok(Some(TopK::from_lists(k, found).metrics(&id_lists(lists)?)?))
    }
}

fn labels(task: &DatabaseTask, part: Part) -> &[Vec<u32>] {
    match &task.rows(part).targets {
        Targets::Lists(lists) => lists,
        _ => &[],
    }
}

/// Destinations with their scores, best first.
fn sorted(mut all: Vec<(u32, f64)>) -> Vec<(u32, f64)> {
    all.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    all
}
