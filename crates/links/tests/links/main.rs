//! Tests of link prediction through the public interface.
