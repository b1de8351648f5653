//! Computes the dense operators of a training step, which have no edges.
//!
//! | module | reason to exist, compared with Burn's operator |
//! | --- | --- |
//! | [`adam`] | one pass over parameter, gradient and moments, in place; updates of some rows of a table, which Burn lacks |
//! | [`cross_entropy`] | reads chosen rows only and stores no log-softmax; sums losses in one order |
//! | [`dropout`] | masks are functions of original ids, so they do not depend on the number of threads, ranks and parts |
//! | [`epilogue`] | bias, activation and dropout in one pass, in place; backward of a ReLU saves a bit per entry |
//! | [`matmul`] | backward frees `x` before it allocates `d x`; products are added to a sum in place; gradients of weights are computed in runs of rows |
//! | [`precision`] | casts in parallel and vectorised; Burn casts one entry at a time on one thread |

pub(crate) mod adam;
pub(crate) mod cross_entropy;
pub(crate) mod dropout;
pub(crate) mod epilogue;
pub(crate) mod matmul;
pub(crate) mod precision;
