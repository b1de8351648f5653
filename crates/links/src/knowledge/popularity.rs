//! Ranks entities by popularity: the baseline of knowledge graphs.

use burn::tensor::{DType, Device, Tensor, TensorData};
use burn_gnn_data::{KnowledgeGraph, Triple};
use burn_gnn_models::ModelError;

use super::kge::KgeRanks;
use super::queries::check_triples;
use crate::ranking::links::filtered_ranks;
use crate::ranking::true_tails::TrueTails;

/// Scores of a block of triples.
const BLOCK: usize = 1 << 22;

/// Filtered ranks of triples by popularity: entities are sorted by the number of train triples in which they are at this
/// end of the relation, then by their degree in train. The given entity of a query is not used.
///
/// # Errors
/// A triple in train or in `triples` has an entity or relation that the graph does not have.
///
/// ```
/// use burn::tensor::Device;
/// use burn_gnn_data::{KnowledgeGraph, Triple};
/// use burn_gnn_links::{known_both_ways, popularity_ranks};
/// let triple = |head, tail| Triple { head, relation: 0, tail };
/// let kg = KnowledgeGraph {
///     entities: (0..4).map(|i| i.to_string()).collect(),
///     relations: vec!["follows".into()],
///     train: vec![triple(0, 1), triple(2, 1), triple(0, 3)],
///     test: vec![triple(2, 3)],
///     ..KnowledgeGraph::default()
/// };
/// let ranks = popularity_ranks(&kg, &kg.test, &known_both_ways(&kg), &Device::flex())?;
/// assert_eq!((&ranks.tails[..], &ranks.heads[..]), (&[1.0][..], &[1.0][..])); // tail 1 and head 0 are filtered
/// # Ok::<(), burn_gnn_models::ModelError>(())
/// ```
pub fn popularity_ranks(
    kg: &KnowledgeGraph,
    triples: &[Triple],
    known: &TrueTails,
    device: &Device,
) -> Result<KgeRanks, ModelError> {
    let (n, count) = (kg.entities.len(), kg.relations.len());
    check_triples("train", &kg.train, n, count)?;
    check_triples("triples", triples, n, count)?;
    // The sum of the scaled degrees is below 1, so that degrees only order entities of equal counts.
    let mut degree = vec![0.0; n];
    for t in &kg.train {
        degree[t.head as usize] += 1.0;
        degree[t.tail as usize] += 1.0;
    }
    let share = 1.0 / (2.0 * kg.train.len() as f64 + 1.0);
    let base: Vec<f64> = degree.iter().map(|d| d * share).collect();
    let mut scores = vec![base; 2 * count];
    for t in &kg.train {
        scores[t.relation as usize][t.tail as usize] += 1.0;
        scores[t.relation as usize + count][t.head as usize] += 1.0;
    }
    let one_way = |triples: &[Triple]| -> Result<Vec<f64>, ModelError> {
        let mut ranks = vec![];
        for part in triples.chunks((BLOCK / n.max(1)).max(1)) {
            let mut rows = Vec::with_capacity(part.len() * n);
            part.iter().for_each(|t| rows.extend_from_slice(&scores[t.relation as usize]));
            let data = TensorData::new(rows, [part.len(), n]);
            let rows = Tensor::<2>::from_data(data, (device, DType::F64));
            ranks.extend(filtered_ranks(rows, part, known)?);
        }
        Ok(ranks)
    };
    let heads: Vec<Triple> = triples.iter().map(|t| t.reciprocal(count as u32)).collect();
    Ok(KgeRanks { tails: one_way(triples)?, heads: one_way(&heads)? })
}
