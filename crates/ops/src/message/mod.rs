//! Passes messages by field names, as in DGL, and by a trait of layers, as in PyG.
//!
//! | module | content |
//! | --- | --- |
//! | [`function`] | message and reduce functions: builtins, closures, [`by_degree`](function::by_degree) |
//! | [`ops`] | the calls: `update_all`, `pull`, `push`, `apply_edges`, `multi_update_all` |
//! | [`data`] | features of relations, graphs and blocks that calls read and write |
//! | [`reduce`] | a call along one edge type |
//! | [`hetero`] | calls over several edge types |
//! | [`batch`] | edges, nodes and mailboxes that closures get; selections of edges |
//! | [`builtin`], [`expression`] | builtin messages, and their evaluation by fused operators |
//! | [`columns`], [`fields`] | operators on columns of any rank; named results of closures |
//! | [`layer`] | `MessagePassing`, `EdgeTensor` |

pub(crate) mod batch;
pub(crate) mod builtin;
pub(crate) mod columns;
pub(crate) mod data;
pub(crate) mod expression;
pub(crate) mod fields;
pub mod function;
pub(crate) mod hetero;
pub(crate) mod layer;
pub(crate) mod ops;
pub(crate) mod reduce;
