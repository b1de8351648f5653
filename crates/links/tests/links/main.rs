//! Tests of link prediction through the public interface.

mod decoders;
mod differences;
mod knowledge;
mod losses;
mod ranking;
