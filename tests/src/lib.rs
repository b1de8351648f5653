//! Compiles and runs the examples of the README and of the book in `docs/`.

#[cfg(test)]
mod book;
// The example that draws the pictures needs a feature that no other example needs, so it is compiled here.
#[cfg(test)]
#[allow(dead_code)]
#[path = "../../examples/pictures/main.rs"]
mod pictures;

/// Compiles the examples of the README.
#[doc = include_str!("../../README.md")]
pub struct Readme;

/// Compiles the examples of the chapter "Getting started".
#[doc = include_str!("../../docs/getting-started.md")]
pub struct GettingStarted;

/// Compiles the examples of the chapter on data.
#[doc = include_str!("../../docs/data.md")]
pub struct Data;

/// Compiles the examples of the chapter on tables.
#[doc = include_str!("../../docs/tables.md")]
pub struct Tables;

/// Compiles the examples of the chapter on message passing.
#[doc = include_str!("../../docs/message-passing.md")]
pub struct MessagePassing;

/// Compiles the examples of the chapter on layers.
#[doc = include_str!("../../docs/layers.md")]
pub struct Layers;

/// Compiles the examples of the chapter on models.
#[doc = include_str!("../../docs/models.md")]
pub struct Models;

/// Compiles the examples of the chapter on the training loop.
#[doc = include_str!("../../docs/training-loop.md")]
pub struct TrainingLoop;

/// Compiles the examples of the chapter on evaluation.
#[doc = include_str!("../../docs/evaluation.md")]
pub struct Evaluation;

/// Compiles the examples of the chapter on learning curves.
#[doc = include_str!("../../docs/learning-curves.md")]
pub struct LearningCurves;

/// Compiles the examples of the chapter on graph classification.
#[doc = include_str!("../../docs/graph-classification.md")]
pub struct GraphClassification;

/// Compiles the examples of the chapter on debugging.
#[doc = include_str!("../../docs/debugging.md")]
pub struct Debugging;

/// Compiles the examples of the questions and answers.
#[doc = include_str!("../../docs/faq.md")]
pub struct Faq;

/// Compiles the examples of the chapter on mini-batches.
#[doc = include_str!("../../docs/mini-batches.md")]
pub struct MiniBatches;

/// Compiles the examples of the chapter on link prediction.
#[doc = include_str!("../../docs/link-prediction.md")]
pub struct LinkPrediction;

/// Compiles the examples of the chapter on heterogeneous graphs.
#[doc = include_str!("../../docs/heterogeneous.md")]
pub struct Heterogeneous;

/// Compiles the examples of the chapter on distributed training.
#[doc = include_str!("../../docs/distributed.md")]
pub struct Distributed;

/// Compiles the examples of the chapter on graphs larger than memory.
#[doc = include_str!("../../docs/out-of-core.md")]
pub struct OutOfCore;

/// Compiles the examples of the chapter on GPUs.
#[doc = include_str!("../../docs/gpu.md")]
pub struct Gpu;

/// Compiles the examples of the chapter on custom operators.
#[doc = include_str!("../../docs/custom-operators.md")]
pub struct CustomOperators;

/// Compiles the examples of the chapter on performance.
#[doc = include_str!("../../docs/performance.md")]
pub struct Performance;

/// Compiles the examples of the chapter on slow epochs.
#[doc = include_str!("../../docs/slow-epochs.md")]
pub struct SlowEpochs;

/// Compiles the examples of the chapter on reliability.
#[doc = include_str!("../../docs/reliability.md")]
pub struct Reliability;

/// Compiles the examples of the guide for users of Burn.
#[doc = include_str!("../../docs/coming-from-burn.md")]
pub struct ComingFromBurn;

/// Compiles the examples of the guide for users of PyG.
#[doc = include_str!("../../docs/coming-from-pyg.md")]
pub struct ComingFromPyg;

/// Compiles the examples of the guide for users of DGL.
#[doc = include_str!("../../docs/coming-from-dgl.md")]
pub struct ComingFromDgl;
