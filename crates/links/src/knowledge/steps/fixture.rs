//! Steps on a small graph, for tests.

use burn::module::Module;
use burn::tensor::Device;
use burn_gnn_data::Triple;

use super::state::Steps;
use crate::knowledge::config::KgeConfig;
use crate::knowledge::kge::Kge;
use crate::knowledge::kge_decoder::KgeDecoder;

const TRAIN: [Triple; 4] = [
    Triple { head: 0, relation: 0, tail: 1 },
    Triple { head: 0, relation: 0, tail: 2 },
    Triple { head: 3, relation: 1, tail: 1 },
    Triple { head: 4, relation: 1, tail: 5 },
];

/// Steps of a model of six entities and two relations.
pub(super) fn steps(config: &KgeConfig) -> Steps<'_, KgeDecoder> {
    let model = Kge::try_new(config, 6, 2, &Device::flex()).unwrap();
    let entities = model.entities.val().detach();
    Steps::new(config, entities, model.decoder.train(), [6, 2], &TRAIN)
}
