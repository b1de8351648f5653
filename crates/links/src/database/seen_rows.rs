//! Counts the rows that refer to an entity and to a destination, up to a time.

use std::collections::BTreeMap;

use burn_gnn_data::DatabaseGraph;
use burn_gnn_graph::Relation;

/// Terms of a pair of foreign keys: logarithm of the number of rows, age of the latest one, whether there is one.
pub(super) const TERMS: usize = 3;
/// Half-life of the term of the age, in days.
const HALF_LIFE: f64 = 180.0;
/// Microseconds of a day.
const DAY: f64 = 86_400e6;

/// Reads the rows of tables with a foreign key to the entities and another to the destinations.
pub(super) struct SeenRows<'a> {
    paths: Vec<SeenPath<'a>>,
}

/// Two foreign keys of a table.
struct SeenPath<'a> {
    /// From the rows of the table to entities, and edge times.
    to_entity: (&'a Relation, &'a [i64]),
    /// From destinations to the rows of the table, and edge times.
    from_destination: (&'a Relation, &'a [i64]),
}

/// Terms of the destinations that an entity has rows with, ascending.
pub(super) type SeenTerms = Vec<(u32, Vec<f32>)>;

impl<'a> SeenRows<'a> {
    /// No pairs of foreign keys, and so no terms.
    pub(super) fn none() -> Self {
        Self { paths: vec![] }
    }

    /// The pairs of foreign keys of tables that refer to both tables.
    pub(super) fn between(graph: &'a DatabaseGraph, entities: &str, destinations: &str) -> Self {
        let mut paths = vec![];
        let edges = |etype: &burn_gnn_graph::EdgeType| {
            let number = graph.graph().schema().etype(etype).ok()?;
            Some((&graph.graph().relations()[number], graph.edge_times(etype).ok()?))
        };
        let keys = graph.keys();
        for (i, own) in keys.iter().enumerate() {
            for (j, other) in keys.iter().enumerate() {
                let is_pair = i != j
                    && own.table == other.table
                    && own.refers_to == entities
                    && other.refers_to == destinations;
                if is_pair {
                    let found = (edges(&own.etypes()[0]), edges(&other.etypes()[1]));
                    if let (Some(to_entity), Some(from_destination)) = found {
                        paths.push(SeenPath { to_entity, from_destination });
                    }
                }
            }
        }
        Self { paths }
    }

    /// Number of terms of a pair.
    pub(super) fn num_terms(&self) -> usize {
        self.paths.len() * TERMS
    }

    /// Terms of the destinations that an entity has rows with at `time`, among rows up to `visible`.
    pub(super) fn of(&self, entity: u32, time: i64, visible: i64) -> SeenTerms {
        let mut found: BTreeMap<u32, Vec<f32>> = BTreeMap::new();
        for (p, path) in self.paths.iter().enumerate() {
            let mut counts: BTreeMap<u32, (u32, i64)> = BTreeMap::new();
            let (relation, times) = path.to_entity;
            let csc = relation.csc();
            for at in csc.row(entity as usize) {
                let of_entity = times[csc.edge_id(at) as usize];
                if of_entity > visible {
                    continue;
                }
                let row = csc.indices()[at];
                let (relation, times) = path.from_destination;
                let csc = relation.csc();
                for at in csc.row(row as usize) {
                    let of_both = times[csc.edge_id(at) as usize].max(of_entity);
                    if of_both <= visible {
                        let count = counts.entry(csc.indices()[at]).or_insert((0, i64::MIN));
                        *count = (count.0 + 1, count.1.max(of_both));
                    }
                }
            }
            for (destination, (n, last)) in counts {
                let terms = found.entry(destination).or_insert_with(|| vec![0.0; self.num_terms()]);
                // Rows without times have no age.
                let days = if last == i64::MIN { 0.0 } else { (time as f64 - last as f64) / DAY };
                let of_path = [f64::from(n).ln_1p(), (-days / HALF_LIFE).exp2(), 1.0];
                let first = p * TERMS;
                for (out, x) in terms[first..first + TERMS].iter_mut().zip(of_path) {
                    *out = x as f32;
                }
            }
        }
        found.into_iter().collect()
    }
}
