//! Message-passing kernels written once in CubeCL, behind the feature `cube`.

#![cfg(feature = "cube")]
