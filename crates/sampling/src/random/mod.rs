//! Random numbers as functions of keys, and the choices made with them.

pub(crate) mod alias;
pub(crate) mod generator;
pub(crate) mod key;
pub(crate) mod subset;
