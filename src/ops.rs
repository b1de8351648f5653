//! Message-passing operators with gradients, and the view of a graph that layers take.
//!
//! Operators take a [`Relation`](crate::graph::Relation) and tensors, run where the tensors are, and panic on invalid
//! arguments; their `try_` forms return an [`OpsError`]. The [chapter on message
//! passing](https://github.com/burn-gnn/burn-gnn/blob/main/docs/message-passing.md) explains them.
//!
//! | operators | description |
//! | --- | --- |
//! | [`gspmm`]; [`copy_u_sum`], [`u_mul_e_sum`], … | messages, reduced at destinations |
//! | [`gsddmm`]; [`u_dot_v`], [`u_add_v`], … | edge features from endpoints |
//! | [`edge_softmax`] ([`NormBy`]) | softmax over the in-edges of a node |
//! | [`segment_reduce`], [`segment_softmax`], [`segment_logsumexp`], [`readout_nodes`] ([`Segments`]) | rows by segment: nodes of each graph of a batch |
//! | [`segment_mm`], [`gather_mm`] | a matrix per segment or row |
//! | [`gat_attention`], [`attention`], [`relational_aggregate`], [`weighted_aggregate`] | fused layers |
//! | [`cross_entropy_rows`], [`dropout`], [`bias_activation`], [`adam_step`], [`matmul_rows`] | dense |
//! | [`with_precision`] ([`Precision`]) | 16-bit messages |
//!
//! | for layers | description |
//! | --- | --- |
//! | [`GraphView`] | interface between layers and graphs, blocks and parts |
//! | [`Edges`], [`EdgeTypes`] | the edges of one type, of all types, with weights and features |
//! | [`MessagePassing`] ([`EdgeTensor`], [`Reduce`]) | a trait for custom layers |
//! | [`MessageOps`], [`function`] ([`EdgeBatch`], [`NodeBatch`], [`Fields`]) | message passing by field names, as in DGL |
//! | [`seeded`], [`next_stream`], [`glorot_uniform`], [`DropoutKey`] | initial weights and dropout masks |
//!
//! With a GPU feature `DeviceSampler` and others sample on the device.

pub use burn_gnn_ops::*;
