//! One model of the whole graph out of the ranks' parts.

use burn::module::{Module, Param};
use burn::tensor::{Device, Tensor, TensorData};
use burn_gnn::models::Rgcn;

use crate::common::ranks::RankResult;

/// `model` with the parameters that all ranks share from rank 0, and embedding rows from their owners by original id; on
/// the plain device.
pub(crate) fn assemble(mut model: Rgcn, results: &[RankResult<Rgcn>], device: &Device) -> Rgcn {
    model.net = results[0].trained.model.net.clone();
    let types = model.embedding.ntypes().to_vec();
    for (i, t) in types.into_iter().enumerate() {
        let [n, d] = model.embedding.weights[i].val().dims();
        let mut rows = vec![0f64; n * d];
        for r in results {
            let part = r.trained.model.embedding.weights[i].val().into_data().convert::<f64>();
            for (id, row) in r.owned[t.as_str()].iter().zip(part.iter::<f64>().collect::<Vec<_>>().chunks_exact(d)) {
                rows[*id as usize * d..][..d].copy_from_slice(row);
            }
        }
        model.embedding.weights[i] = Param::from_tensor(Tensor::from_data(TensorData::new(rows, [n, d]), device));
    }
    model.valid()
}
