//! Message-passing kernels written once in CubeCL.
