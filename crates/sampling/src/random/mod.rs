//! Draws random numbers as functions of keys.

pub(crate) mod alias;
pub(crate) mod generator;
pub(crate) mod key;
pub(crate) mod subset;
