//! Computes the dense operators of a training step, which know no graph.
//!
//! | module | why it exists beside Burn's own |
//! | --- | --- |
//! | [`adam`] | one pass over parameter, gradient and moments, in place; steps of some rows of a table, which Burn has not |
//! | [`cross_entropy`] | reads chosen rows only and stores no log-softmax; losses add up in one order |
//! | [`dropout`] | masks belong to original ids, so they are the same on any number of threads, ranks and parts |
//! | [`epilogue`] | bias, activation and dropout in one pass, in place; of a relu backward keeps a bit per entry |
//! | [`matmul`] | backward frees `x` before it makes `d x`; results go onto a sum in place; gradients of weights run by rows |
//! | [`precision`] | the cast runs on all threads and in vectors; Burn's takes one entry at a time on one thread |

pub(crate) mod adam;
pub(crate) mod cross_entropy;
pub(crate) mod dropout;
pub(crate) mod epilogue;
pub(crate) mod matmul;
pub(crate) mod precision;
