//! Initial values, storage and loading of parameters.

mod checkpoints;
mod initializers;
mod seeds;
mod storage;
mod training_state;
