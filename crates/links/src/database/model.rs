//! Defines the model of a recommendation task: two towers over the rows of a database.

use burn::module::{Module, Param};
use burn::tensor::{Device, Tensor, TensorData};
use burn_gnn_models::{DatabaseBatch, RelationalModel, select_rows};

use crate::database::seen_rows::TERMS;

/// Scores pairs of an entity and a destination at a time.
///
/// ```text
/// u[s]    = head(relational model of row s at the time)
/// v[d]    = head(relational model of row d at the time) + e[d]
/// y[s, d] = ⟨u[s], v[d]⟩ / √hidden + Σ over terms f of the rows that refer to both  w_f x_f[s, d]
/// ```
/// `e` are learned rows of the destinations that training has seen, 0 for others. A term is the logarithm of a number of
/// rows, the age of the latest one, or whether there is one.
///
/// # Source
/// Robinson et al., "RelBench: a benchmark for deep learning on relational databases", NeurIPS 2024 (two towers); the terms
/// of earlier rows replace the labels of ID-GNN (You et al., AAAI 2021).
#[derive(Module, Debug)]
pub struct RecommendationModel {
    /// Of the entities.
    pub entities: RelationalModel,
    /// Of the destinations.
    pub destinations: RelationalModel,
    /// `e`, `[keys, hidden]`; none without destinations before the end of training.
    pub embeddings: Option<Param<Tensor<2>>>,
    /// `w`, `[terms, 1]`; none where no table refers to both.
    pub terms: Option<Param<Tensor<2>>>,
}

impl RecommendationModel {
    pub(super) fn new(
        towers: [RelationalModel; 2],
        [keys, hidden]: [usize; 2],
        terms: usize,
        device: &Device,
    ) -> Self {
        let [entities, destinations] = towers;
        let zeros = || Param::from_tensor(Tensor::zeros([keys, hidden], device));
        // At first, what an entity has referred to often and recently has a high score.
        let weights = || {
            let first = [1.0f32, 1.0, 0.0];
            let values: Vec<f32> = first.iter().copied().cycle().take(terms).collect();
            debug_assert_eq!(terms % TERMS, 0);
            Param::from_tensor(Tensor::from_data(TensorData::new(values, [terms, 1]), device))
        };
        Self {
            entities,
            destinations,
            embeddings: (keys > 0).then(zeros),
            terms: (terms > 0).then(weights),
        }
    }

    /// `u / √hidden`, `[entities, hidden]`.
    pub(super) fn embed_entities(&self, batch: &DatabaseBatch) -> Tensor<2> {
        let u = self.entities.forward(batch, 0);
        let scale = 1.0 / (u.dims()[1] as f64).sqrt();
        u * scale
    }

    /// `v`, `[destinations, hidden]`; `rows` are rows of `e`, `None` for a destination without one.
    pub(super) fn embed_destinations(
        &self,
        batch: &DatabaseBatch,
        rows: &[Option<u32>],
    ) -> Tensor<2> {
        let v = self.destinations.forward(batch, 0);
        let Some(embeddings) = &self.embeddings else { return v };
        let e = embeddings.val();
        if rows.is_empty() {
            return v;
        }
        let known: Vec<u32> = rows.iter().map(|row| row.unwrap_or(0)).collect();
        let mask: Vec<f32> = rows.iter().map(|row| f32::from(u8::from(row.is_some()))).collect();
        let n = mask.len();
        let mask = like(Tensor::from_data(TensorData::new(mask, [n, 1]), &v.device()), &e);
        v + select_rows(e, &known) * mask
    }
}

/// A constant on the device of a parameter, with autodiff if the parameter has it.
pub(super) fn like<const D: usize>(x: Tensor<D>, param: &Tensor<2>) -> Tensor<D> {
    match (x.is_autodiff(), param.is_autodiff()) {
        (false, true) => Tensor::from_inner(x),
        _ => x,
    }
}
