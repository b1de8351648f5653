//! Samplers against what they promise: edges that exist, fan-outs, distributions, the same bits on any number of
//! threads.

mod batch_bytes;
mod blocks;
mod common;
mod custom;
mod distribution;
mod errors;
mod features;
mod links;
mod loaders;
mod repeatable;
mod shared;
mod subgraphs;
mod times;
mod unreadable;
mod walks;
