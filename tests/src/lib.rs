//! Compiles and runs the examples of the README and the guides.

/// Compiles the examples of the README.
#[doc = include_str!("../../README.md")]
pub struct Readme;

/// Compiles the examples of the guide for users of DGL.
#[doc = include_str!("../../docs/coming-from-dgl.md")]
pub struct ComingFromDgl;

/// Compiles the examples of the page on data.
#[doc = include_str!("../../docs/data.md")]
pub struct Data;

/// Compiles the examples of the guide for users of PyG.
#[doc = include_str!("../../docs/coming-from-pyg.md")]
pub struct ComingFromPyg;

/// Compiles the examples of the page on GPUs.
#[doc = include_str!("../../docs/gpu.md")]
pub struct Gpu;
