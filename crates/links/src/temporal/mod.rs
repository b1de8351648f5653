//! Streams of events in time, and models of them.
