//! Scores of one query, of which most are 0.

use super::past::FEATURES;

/// Scores of one query for all entities. Those of entities that no earlier fact leads to are 0.
pub(super) struct QueryScores {
    pub(super) values: Vec<f32>,
    is_touched: Vec<bool>,
    /// Entities to which earlier facts lead.
    pub(super) touched: Vec<u32>,
    /// Features of the earlier facts, in the order of the score.
    pub(super) features: Vec<[f32; FEATURES]>,
}

impl QueryScores {
    pub(super) fn new(entities: usize) -> Self {
        Self {
            values: vec![0.0; entities],
            is_touched: vec![false; entities],
            touched: vec![],
            features: vec![],
        }
    }

    pub(super) fn add(&mut self, entity: u32, score: f32) {
        let at = entity as usize;
        self.values[at] += score;
        if !self.is_touched[at] {
            self.is_touched[at] = true;
            self.touched.push(entity);
        }
    }

    pub(super) fn clear(&mut self) {
        for v in self.touched.drain(..) {
            self.values[v as usize] = 0.0;
            self.is_touched[v as usize] = false;
        }
        self.features.clear();
    }

    /// Rank of an entity among all; equal scores share their mean rank.
    pub(super) fn rank(&self, entity: u32) -> f64 {
        let of = self.values[entity as usize];
        let untouched = self.values.len() - self.touched.len();
        let (mut above, mut equal) = match of.total_cmp(&0.0) {
            std::cmp::Ordering::Less => (untouched, 0),
            std::cmp::Ordering::Equal => (0, untouched),
            std::cmp::Ordering::Greater => (0, 0),
        };
        for &v in &self.touched {
            let score = self.values[v as usize];
            above += usize::from(score > of);
            equal += usize::from(score == of);
        }
        above as f64 + (equal as f64 + 1.0) / 2.0
    }
}
