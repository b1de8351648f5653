//! Recommends items to users.
