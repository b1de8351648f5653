//! Partitioning, communicators and halo exchange for distributed graphs.
