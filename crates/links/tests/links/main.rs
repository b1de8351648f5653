//! Tests of link prediction through the public interface.

mod decoders;
mod differences;
mod losses;
mod ranking;
