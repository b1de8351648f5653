//! Models of databases: encoders, loaders, training, features, and that no future row is read.

mod edges;
mod encoders;
mod features;
mod future;
mod linear;
mod options;
mod rel_f1;
mod shop;
mod training;
