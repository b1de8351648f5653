//! Earlier facts of entities and of relations, with the features that scores read.

use std::collections::HashMap;
use std::sync::Arc;

use burn_gnn_data::TimedTriple;

/// Features of an earlier fact.
pub(super) const FEATURES: usize = 6;
/// Gaps whose decays are stored.
const TABLE: u32 = 1 << 12;

/// `exp(-gap / τ)` of the scales `τ₁`, `τ₂`, `τ₃` and `2 τ₂`.
#[derive(Debug)]
pub(super) struct Decays {
    scales: [f32; 4],
    /// Decays by gap.
    table: Vec<[f32; 4]>,
}

impl Decays {
    /// Scales for training facts up to the time `last`.
    pub(super) fn new(last: u32) -> Self {
        let long = (last as f32 / 6.0).max(4.0);
        let middle = (2.0 * long).sqrt();
        let mut decays = Self { scales: [2.0, middle, long, 2.0 * middle], table: vec![] };
        decays.table = (0..TABLE).map(|gap| decays.of(gap)).collect();
        decays
    }

    fn of(&self, gap: u32) -> [f32; 4] {
        let stored = self.table.get(gap as usize).copied();
        stored.unwrap_or_else(|| self.scales.map(|scale| (-(gap as f32) / scale).exp()))
    }
}

/// Facts of one relation with one entity.
pub(super) struct Seen {
    pub(super) relation: u32,
    pub(super) other: u32,
    last: u32,
    count: f32,
    /// Number with decaying weights, at the time of the last.
    recent: f32,
}

/// Facts before a time.
pub(super) struct Past {
    pub(super) of_entity: Vec<Vec<Seen>>,
    pub(super) of_relation: Vec<Vec<Seen>>,
    entity_places: HashMap<(u32, u32, u32), usize>,
    relation_places: HashMap<(u32, u32), usize>,
    decays: Arc<Decays>,
}

impl Past {
    pub(super) fn new(entities: usize, relations: usize, decays: &Arc<Decays>) -> Self {
        let lists = |n: usize| (0..n).map(|_| Vec::new()).collect();
        Self {
            of_entity: lists(entities),
            of_relation: lists(2 * relations),
            entity_places: HashMap::new(),
            relation_places: HashMap::new(),
            decays: decays.clone(),
        }
    }

    pub(super) fn add(&mut self, fact: &TimedTriple) {
        let reciprocal = fact.relation + self.of_relation.len() as u32 / 2;
        for (head, relation, other) in
            [(fact.head, fact.relation, fact.tail), (fact.tail, reciprocal, fact.head)]
        {
            let seen = || Seen { relation, other, last: fact.time, count: 0.0, recent: 0.0 };
            let of_entity = &mut self.of_entity[head as usize];
            let of_relation = &mut self.of_relation[relation as usize];
            let place = self.entity_places.entry((head, relation, other)).or_insert_with(|| {
                of_entity.push(seen());
                of_entity.len() - 1
            });
            of_entity[*place].repeat(&self.decays, fact.time);
            let place = self.relation_places.entry((relation, other)).or_insert_with(|| {
                of_relation.push(seen());
                of_relation.len() - 1
            });
            of_relation[*place].repeat(&self.decays, fact.time);
        }
    }

    /// Features of an earlier fact at a time.
    pub(super) fn features(&self, seen: &Seen, time: u32) -> [f32; FEATURES] {
        let [a, b, c, d] = self.decays.of(time - seen.last);
        [1.0, a, b, c, 0.5 * seen.count.ln_1p(), (seen.recent * d).ln_1p()]
    }
}

impl Seen {
    fn repeat(&mut self, decays: &Decays, time: u32) {
        self.recent = self.recent * decays.of(time - self.last)[3] + 1.0;
        self.count += 1.0;
        self.last = time;
    }
}
