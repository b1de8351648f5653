//! Models of databases: encoders, loaders, training, features, and that no future row is read.

mod encoders;
mod features;
mod future;
mod rel_f1;
mod shop;
mod training;
