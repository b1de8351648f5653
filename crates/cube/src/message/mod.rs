//! The kernels of which the operators on edges consist: they walk the edges of rows, compute messages and reduce them.

#[expect(unsafe_code, reason = "launches kernels")]
pub(crate) mod argmax;
pub(crate) mod broadcast;
#[expect(unsafe_code, reason = "launches kernels")]
pub(crate) mod chunk_sums;
pub(crate) mod contract;
pub(crate) mod edge_sums;
pub(crate) mod formula;
pub(crate) mod layout;
#[expect(unsafe_code, reason = "launches kernels")]
pub(crate) mod message_pass;
#[expect(unsafe_code, reason = "launches kernels")]
pub(crate) mod softmax;
pub(crate) mod walk;
