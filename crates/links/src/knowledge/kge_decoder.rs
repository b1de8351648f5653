//! Decoders that options choose.

use burn::module::Module;
use burn::tensor::{Device, Int, Tensor};
use burn_gnn_models::ModelError;

use super::config::KgeKind;
use crate::decoders::comparison::Comparison;
use crate::decoders::compl_ex::{ComplEx, ComplExConfig};
use crate::decoders::decoder::{Decoder, Side};
use crate::decoders::dist_mult::{DistMult, DistMultConfig};
use crate::decoders::rescal::{Rescal, RescalConfig};
use crate::decoders::rotat_e::{RotatE, RotatEConfig, RotatENorm};
use crate::decoders::trans_e::{TransE, TransEConfig, TransENorm};
use crate::decoders::tuck_er::{TuckEr, TuckErConfig};

/// The decoder of a [`KgeConfig`](crate::KgeConfig).
#[derive(Module, Debug)]
pub enum KgeDecoder {
    /// DistMult.
    DistMult(DistMult),
    /// ComplEx.
    ComplEx(ComplEx),
    /// RotatE.
    RotatE(RotatE),
    /// TransE.
    TransE(TransE),
    /// RESCAL.
    Rescal(Rescal),
    /// TuckER.
    TuckEr(TuckEr),
}

impl KgeDecoder {
    /// Initializes the decoder of `kind`.
    ///
    /// # Errors
    /// A size of 0 or an odd size of complex numbers.
    pub fn try_new(
        kind: KgeKind,
        num_relations: usize,
        d: usize,
        device: &Device,
    ) -> Result<Self, ModelError> {
        let rotate = |norm| RotatEConfig::new(num_relations, d).with_norm(norm).try_init(device);
        let trans = |norm| TransEConfig::new(num_relations, d).with_norm(norm).try_init(device);
        Ok(match kind {
            KgeKind::DistMult => {
                Self::DistMult(DistMultConfig::new(num_relations, d).try_init(device)?)
            }
            KgeKind::ComplEx => {
                Self::ComplEx(ComplExConfig::new(num_relations, d).try_init(device)?)
            }
            KgeKind::RotatE => Self::RotatE(rotate(RotatENorm::Moduli)?),
            KgeKind::RotatEL2 => Self::RotatE(rotate(RotatENorm::L2)?),
            KgeKind::TransEL1 => Self::TransE(trans(TransENorm::L1)?),
            KgeKind::TransEL2 => Self::TransE(trans(TransENorm::L2)?),
            KgeKind::Rescal => Self::Rescal(RescalConfig::new(num_relations, d).try_init(device)?),
            KgeKind::TuckEr { d_relation } => {
                Self::TuckEr(TuckErConfig::new(num_relations, d, d_relation).try_init(device)?)
            }
        })
    }
}

macro_rules! each {
    ($self:expr, $decoder:ident => $call:expr) => {
        match $self {
            KgeDecoder::DistMult($decoder) => $call,
            KgeDecoder::ComplEx($decoder) => $call,
            KgeDecoder::RotatE($decoder) => $call,
            KgeDecoder::TransE($decoder) => $call,
            KgeDecoder::Rescal($decoder) => $call,
            KgeDecoder::TuckEr($decoder) => $call,
        }
    };
}

impl Decoder for KgeDecoder {
    #[track_caller]
    fn query(
        &self,
        given: Tensor<2>,
        relations: Option<Tensor<1, Int>>,
        replaced: Side,
    ) -> Tensor<2> {
        each!(self, decoder => decoder.query(given, relations, replaced))
    }
    fn comparison(&self) -> Comparison {
        each!(self, decoder => decoder.comparison())
    }
    fn is_complex(&self) -> bool {
        each!(self, decoder => decoder.is_complex())
    }
    fn relation_embeddings(&self) -> Option<Tensor<2>> {
        each!(self, decoder => decoder.relation_embeddings())
    }
}
