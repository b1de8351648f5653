//! Options of models of knowledge graphs and of their training.

use std::path::Path;

use burn_gnn_models::ModelError;
use serde::{Deserialize, Serialize};

use crate::losses::link_loss::LinkLoss;

/// Decoder of a [`Kge`](crate::Kge).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum KgeKind {
    /// [`DistMult`](crate::DistMult).
    DistMult,
    /// [`ComplEx`](crate::ComplEx).
    ComplEx,
    /// [`RotatE`](crate::RotatE) with the sum of moduli.
    RotatE,
    /// [`RotatE`](crate::RotatE) with the Euclidean norm.
    #[serde(rename = "rotate_l2")]
    RotatEL2,
    /// [`TransE`](crate::TransE) with the L1 norm.
    #[serde(rename = "transe_l1")]
    TransEL1,
    /// [`TransE`](crate::TransE) with the Euclidean norm.
    #[serde(rename = "transe_l2")]
    TransEL2,
    /// [`Rescal`](crate::Rescal).
    Rescal,
    /// [`TuckEr`](crate::TuckEr) with an embedding size of relations.
    TuckEr {
        /// Embedding size of relations.
        d_relation: usize,
    },
}

/// Training examples of a [`KgeConfig`], and what they are compared with.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum KgeTraining {
    /// An example is a train triple in one direction; its answer competes with all entities by softmax cross entropy.
    OneVsAll,
    /// An example is a pair of entity and relation with all its answers in train, among all entities.
    KvsAll {
        /// Loss.
        objective: KvsAllObjective,
        /// Weight of an example: this power of the number of its answers. With 0, examples have equal weights. With 1, train
        /// triples have equal weights: the softmax objective is then that of [`OneVsAll`](Self::OneVsAll), but computes one
        /// row of scores per example and not one per triple.
        #[serde(default)]
        answer_power: f64,
    },
    /// An example is a train triple in one direction; its answer competes with entities drawn uniformly for the batch.
    Negatives {
        /// Number of entities that are drawn for a batch.
        count: usize,
        /// Loss. [`LinkLoss::SampledSoftmax`] is corrected for the number of drawn entities.
        loss: LinkLoss,
        /// Whether drawn entities that are answers in train are left out.
        filtered: bool,
        /// Whether drawn entities that never occur at this end of the relation in train are left out.
        type_constrained: bool,
    },
}

/// Loss of [`KgeTraining::KvsAll`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum KvsAllObjective {
    /// Cross entropy of the softmax with the uniform distribution over the answers.
    Softmax,
    /// Sum over all entities of the binary cross entropy.
    Bce,
}

/// Optimizer of a [`KgeConfig`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum KgeOptimizer {
    /// Adagrad (Duchi, Hazan, Singer, JMLR 2011).
    Adagrad,
    /// Adam.
    Adam,
}

/// Initial embeddings of entities and relations.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum KgeInit {
    /// The initialization of the decoder, and Glorot for entities.
    Glorot,
    /// Normal with this standard deviation, above 0.
    Normal(f64),
    /// Uniform between minus and plus this bound, above 0.
    Uniform(f64),
}

/// Describes a [`Kge`](crate::Kge) and its training, in Rust or in a JSON file.
///
/// ```
/// use burn_gnn_links::{KgeConfig, KgeKind, KgeTraining};
/// let config = KgeConfig { d: 64, epochs: 20, ..KgeConfig::new(KgeKind::ComplEx) };
/// assert_eq!(config.training, KgeTraining::OneVsAll);
/// let text = r#"{ "kind": "complex", "d": 64, "epochs": 20 }"#;
/// assert_eq!(KgeConfig::from_json(text)?, config);
/// # Ok::<(), burn_gnn_models::ModelError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct KgeConfig {
    /// Decoder.
    pub kind: KgeKind,
    /// Embedding size of entities; for complex numbers, that of real and imaginary parts together.
    pub d: usize,
    /// Initial embeddings of entities and relations. Phases of `RotatE` and the core of `TuckEr` keep theirs.
    pub init: KgeInit,
    /// Training examples.
    pub training: KgeTraining,
    /// Whether heads are ranked by reciprocal relations: each relation gets a second embedding, and a triple `(h, r, t)` the
    /// twin `(t, r⁻¹, h)` (Lacroix, Usunier, Obozinski, ICML 2018). Otherwise both directions share the embedding.
    pub reciprocal: bool,
    /// Optimizer.
    pub optimizer: KgeOptimizer,
    /// Learning rate.
    pub lr: f64,
    /// Factor of the learning rate after each epoch.
    pub lr_decay: f64,
    /// Examples of a step.
    pub batch: usize,
    /// Epochs at most.
    pub epochs: usize,
    /// Share of the targets that is distributed over all entities, `0.0..1.0`; not for training by negatives.
    pub label_smoothing: f64,
    /// Dropout of embeddings of entities, one mask per step.
    pub entity_dropout: f64,
    /// Dropout of queries.
    pub query_dropout: f64,
    /// Exponent of the regularisation, 2 or 3: the mean over examples of `Σ |x|^p` of the embeddings in an example. Complex
    /// numbers count by their moduli; with 3 this is N3 (Lacroix, Usunier, Obozinski, ICML 2018).
    pub regularization_power: u32,
    /// Weight of the regularisation of entities.
    pub entity_regularization: f64,
    /// Weight of the regularisation of relations.
    pub relation_regularization: f64,
    /// Epochs between evaluations on the validation triples.
    pub eval_every: usize,
    /// Number of evaluations without a better MRR after which training stops.
    pub patience: usize,
    /// Validation triples that are ranked during training, at most; the first ones of a fixed permutation.
    pub eval_triples: usize,
    /// Seed of initial embeddings, of the order of examples, of negatives and dropout.
    pub seed: u64,
}

impl Default for KgeConfig {
    fn default() -> Self {
        Self {
            kind: KgeKind::ComplEx,
            d: 128,
            init: KgeInit::Glorot,
            training: KgeTraining::OneVsAll,
            reciprocal: true,
            optimizer: KgeOptimizer::Adagrad,
            lr: 0.1,
            lr_decay: 1.0,
            batch: 512,
            epochs: 100,
            label_smoothing: 0.0,
            entity_dropout: 0.0,
            query_dropout: 0.0,
            regularization_power: 3,
            entity_regularization: 0.0,
            relation_regularization: 0.0,
            eval_every: 5,
            patience: 3,
            eval_triples: usize::MAX,
            seed: 0,
        }
    }
}

impl KgeConfig {
    /// The defaults with a decoder.
    pub fn new(kind: KgeKind) -> Self {
        Self { kind, ..Self::default() }
    }

    /// Parses JSON. Options that are left out have their defaults.
    ///
    /// # Errors
    /// Text that is not JSON, an unknown option, or a value out of range.
    pub fn from_json(text: &str) -> Result<Self, ModelError> {
        let config: Self = serde_json::from_str(text)
            .map_err(|e| ModelError::out_of_range("KgeConfig", "options in JSON", e))?;
        config.check()?;
        Ok(config)
    }

    /// Reads a JSON file, as [`from_json`](Self::from_json).
    ///
    /// # Errors
    /// The file cannot be read, and as [`from_json`](Self::from_json), with the file.
    pub fn load(file: impl AsRef<Path>) -> Result<Self, ModelError> {
        let file = file.as_ref();
        let text = burn_gnn_files::internal::read_file(file)?;
        Self::from_json(&String::from_utf8_lossy(&text)).map_err(|e| {
            ModelError::out_of_range(file.display().to_string(), "options of KgeConfig", e)
        })
    }

    /// Checks options.
    ///
    /// # Errors
    /// An option out of range, or [`KgeTraining::OneVsAll`] and [`KgeTraining::KvsAll`] with a decoder whose scores against
    /// all entities are no matrix product.
    pub fn check(&self) -> Result<(), ModelError> {
        ModelError::check_sizes(
            &[
                ("d", self.d),
                ("batch", self.batch),
                ("epochs", self.epochs),
                ("eval_every", self.eval_every),
                ("patience", self.patience),
                ("eval_triples", self.eval_triples),
            ],
            self.entity_dropout,
        )?;
        let shares =
            [("query_dropout", self.query_dropout), ("label_smoothing", self.label_smoothing)];
        for (arg, x) in shares {
            ModelError::check_range(arg, "0.0..1.0", x, (0.0..1.0).contains(&x))?;
        }
        let above = |x: f64| x.is_finite() && x > 0.0;
        match self.init {
            KgeInit::Glorot => {}
            KgeInit::Normal(x) => {
                ModelError::check_range("init.normal", "numbers above 0", x, above(x))?;
            }
            KgeInit::Uniform(x) => {
                ModelError::check_range("init.uniform", "numbers above 0", x, above(x))?;
            }
        }
        ModelError::check_range("lr", "numbers above 0", self.lr, above(self.lr))?;
        ModelError::check_range(
            "lr_decay",
            "numbers above 0",
            self.lr_decay,
            above(self.lr_decay),
        )?;
        let p = self.regularization_power;
        ModelError::check_range("regularization_power", "2..=3", p, p == 2 || p == 3)?;
        for (arg, x) in [
            ("entity_regularization", self.entity_regularization),
            ("relation_regularization", self.relation_regularization),
        ] {
            ModelError::check_range(arg, "numbers from 0", x, x.is_finite() && x >= 0.0)?;
        }
        match self.training {
            KgeTraining::Negatives { count, loss, .. } => {
                ModelError::check_sizes(&[("training.negatives.count", count)], 0.0)?;
                loss.check()
            }
            KgeTraining::KvsAll { answer_power: p, .. } if !(0.0..=1.0).contains(&p) => {
                Err(ModelError::out_of_range("training.kvs_all.answer_power", "0.0..=1.0", p))
            }
            KgeTraining::OneVsAll | KgeTraining::KvsAll { .. } => ModelError::check_range(
                "training",
                "`negatives` (the distances of this decoder are no matrix product)",
                "all entities",
                !matches!(self.kind, KgeKind::RotatE | KgeKind::TransEL1),
            ),
        }
    }
}
