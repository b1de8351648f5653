//! Tests of link prediction through the public interface.

mod database;
mod decoders;
mod differences;
mod inductive;
mod knowledge;
mod losses;
mod negatives;
mod pairs;
mod ranking;
mod recommend;
mod temporal;
