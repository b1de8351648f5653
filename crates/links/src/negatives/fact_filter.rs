//! Tests whether a corrupted triple is a known fact.

use burn_gnn_data::Triple;

use crate::ranking::timed_tails::TimedTails;
use crate::ranking::true_tails::TrueTails;

/// Known facts, looked up by (head, relation) and by (tail, relation): what corruption leaves out.
///
/// With times, a triple is known at a time if it is a fact of exactly that time; facts of other times, and later ones in
/// particular, are not read.
#[derive(Clone, Debug)]
pub struct FactFilter {
    facts: Facts,
}

#[derive(Clone, Debug)]
enum Facts {
    Static { tails: TrueTails, heads: TrueTails },
    Timed { tails: TimedTails, heads: TimedTails },
}

impl FactFilter {
    /// Of facts without times.
    pub fn new(facts: impl IntoIterator<Item = Triple> + Clone) -> Self {
        let heads = TrueTails::new(facts.clone().into_iter().map(|t| t.reciprocal(0)));
        Self { facts: Facts::Static { tails: TrueTails::new(facts), heads } }
    }

    /// Of facts with their times.
    pub fn timed(facts: impl IntoIterator<Item = (Triple, i64)> + Clone) -> Self {
        let reversed = facts.clone().into_iter().map(|(t, time)| (t.reciprocal(0), time));
        let heads = TimedTails::new(reversed);
        Self { facts: Facts::Timed { tails: TimedTails::new(facts), heads } }
    }

    /// Whether facts have times, so that look-ups need one.
    pub fn is_timed(&self) -> bool {
        matches!(self.facts, Facts::Timed { .. })
    }

    /// Tails of facts (head, relation), at `time` if facts have times; ascending.
    pub fn tails(&self, head: u32, relation: u32, time: Option<i64>) -> &[u32] {
        match &self.facts {
            Facts::Static { tails, .. } => tails.of(head, relation),
            Facts::Timed { tails, .. } => time.map_or(&[], |t| tails.at(head, relation, t)),
        }
    }

    /// Heads of facts (relation, tail), at `time` if facts have times; ascending.
    pub fn heads(&self, tail: u32, relation: u32, time: Option<i64>) -> &[u32] {
        match &self.facts {
            Facts::Static { heads, .. } => heads.of(tail, relation),
            Facts::Timed { heads, .. } => time.map_or(&[], |t| heads.at(tail, relation, t)),
        }
    }

    /// Tails of (head, relation) with a fact before `time`, in the order of their first times; none without times.
    pub fn past_tails(&self, head: u32, relation: u32, time: i64) -> &[u32] {
        match &self.facts {
            Facts::Static { .. } => &[],
            Facts::Timed { tails, .. } => tails.before(head, relation, time),
        }
    }

    /// Heads of (relation, tail) with a fact before `time`, in the order of their first times; none without times.
    pub fn past_heads(&self, tail: u32, relation: u32, time: i64) -> &[u32] {
        match &self.facts {
            Facts::Static { .. } => &[],
            Facts::Timed { heads, .. } => heads.before(tail, relation, time),
        }
    }
}
